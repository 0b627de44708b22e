// Loads the wasm builds (tests/wasm.sh): node tests/wasm.js SOL.wasm PROBE.wasm NATIVE.txt
'use strict';
const fs = require('fs');
const assert = require('assert');
const [solFile, probeFile, nativeFile] = process.argv.slice(2);

const load = file => {
  const module = new WebAssembly.Module(fs.readFileSync(file));
  assert.deepStrictEqual(WebAssembly.Module.imports(module), [], file + ' wants something of its host');
  return new WebAssembly.Instance(module, {}).exports;
};
const text = (sol, at, length) => {
  const bytes = new Uint8Array(sol.memory.buffer);
  if (length === undefined) length = bytes.indexOf(0, at) - at;
  return Buffer.from(bytes.buffer, at, length).toString();
};
const place = (sol, bytes) => { // room past the program's own data
  const at = (sol.__heap_base.value + 15) & ~15;
  const lack = at + bytes - sol.memory.buffer.byteLength;
  if (lack > 0) sol.memory.grow(Math.ceil(lack / 65536));
  return at;
};

// Exported: every public function, and nothing else but memory.
// The library's operations need a machine: they are no part of the accountant.
const hostOnly = ['context.h', 'ops.h', 'dlpack.h', 'collective.h'];
const declared = fs.readdirSync('include/sol').filter(name => !hostOnly.includes(name)).flatMap(name =>
  [...fs.readFileSync('include/sol/' + name, 'utf8').matchAll(/^SOL_API [^;(]*?(sol_\w+)\(/gm)].map(m => m[1]));
const exported = Object.keys(load(solFile)).filter(name => name !== 'memory' && name !== '__heap_base');
assert.deepStrictEqual(exported.sort(), declared.sort());

// The C API as a page would call it: names in, a struct out, all through memory.
const sol = load(solFile);
const native = fs.readFileSync(nativeFile, 'utf8');
assert.strictEqual(text(sol, sol.sol_version()), native.split('\n')[0]);
assert(sol.sol_device_count() > 0);
const at = place(sol, 4096);
const view = () => new DataView(sol.memory.buffer);
new Uint8Array(sol.memory.buffer).set(Buffer.from('h100\0'), at);
assert.strictEqual(sol.sol_device_find(at, at + 64, 0), 0);
const device = view().getUint32(at + 64, true);
assert.match(text(sol, view().getUint32(device, true)), /^h100/);
// SolWork: 40 MB and 5 MFLOP in one launch; SolRoofline's first fields give them back, time_us is the 12th double.
const [work, roofline] = [at + 128, at + 256];
new Uint8Array(sol.memory.buffer).fill(0, work, roofline);
[40e6, 5e6, 1].forEach((value, i) => view().setFloat64(work + 8 * i, value, true));
assert.strictEqual(sol.sol_roofline(device, work, 0, roofline, 0), 0);
const field = i => view().getFloat64(roofline + 8 * i, true);
assert.strictEqual(field(0), 40e6);
assert.strictEqual(field(5), 0.125); // intensity
assert(Math.abs(field(9) - 40e12 / field(3)) < 1e-9 * field(9)); // memory_us = bytes / bandwidth
assert(Math.abs(field(12) - (Math.max(field(9), field(10)) + field(11))) < 1e-9 * field(12));
// Not found: a status and a message, no trap.
new Uint8Array(sol.memory.buffer).set(Buffer.from('none\0'), at);
assert.strictEqual(sol.sol_device_find(at, at + 64, at + 512), 2);

// Everything else: the same text from both builds.
const probe = load(probeFile);
const cap = 1 << 22;
const out = place(probe, cap);
const length = probe.sol_probe(out, cap);
assert(length > 0 && length < cap);
const [got, want] = [text(probe, out, length).split('\n'), native.split('\n')];
for (let i = 0; i < want.length; i++) assert.strictEqual(got[i], want[i], `line ${i + 1} differs`);
assert.strictEqual(got.length, want.length);
console.log(`${want.length} lines agree with the native build`);
