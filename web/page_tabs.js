// The questions of the page: the fields of each, and what is shown for an answer. Figures are those of the answer alone.

const deviceField = cuda => ({name: 'device', label: 'GPU', value: 'h100-sxm', choices: known.devices.filter(d => d.cuda || !cuda).map(d => [d.id, d.id + ': ' + d.name])});
const dtypeField = (name, label, value) => ({name, label, value, choices: [...(value ? [] : [['', 'default']]), ...known.dtypes.map(d => [d, d])]});
const yesField = (name, label) => ({name, label, value: '', choices: [['', 'no'], ['yes', 'yes']]});
// Values of a slider: powers of two.
const doubled = (from, to) => { const out = []; for (let v = from; v <= to; v *= 2) out.push(String(v)); return out; };

const TABS = {
  roofline: {
    title: 'Roofline',
    fields: () => [deviceField(),
      {name: 'bandwidth', label: 'bandwidth (B/s), if not its own', size: 8}, {name: 'peak', label: 'peak (FLOP/s), if not its own', size: 8}, {name: 'launch_us', label: 'launch cost (us), if not its own', size: 5, steps: evenly(0, 20, 0.25)},
      {name: 'op', label: 'operation', value: 'rmsnorm', choices: [['', 'none: bytes and FLOPs'], ...known.ops.map(op => [op.name, op.name + ' ' + op.shape])]},
      {name: 'shape', label: 'shape', value: '8192x4096', size: 12, when: state => state.op}, {name: 'tile', label: 'tile (MxNxK)', size: 10, when: state => state.op === 'gemm'}, dtypeField('dtype', 'type', 'bf16'),
      {name: 'bytes', label: 'bytes', value: '40e6', size: 8, when: state => !state.op}, {name: 'flops', label: 'FLOPs', value: '5e6', size: 8, when: state => !state.op}, {name: 'launches', label: 'launches', value: '1', size: 4, when: state => !state.op},
      {name: 'unit', label: 'units', value: 'default', choices: ['default', 'tensor', 'vector'].map(u => [u, u]), when: state => !state.op},
      {name: 'level', label: 'memory', value: 'hbm', choices: [['hbm', 'DRAM'], ['l2', 'L2'], ['smem', 'shared']]}],
    show: showRoofline,
  },
  model: {
    title: 'Model',
    fields: () => [{name: 'model', label: 'model', value: 'llama-3-8b', choices: [['', 'a config.json, pasted'], ...known.models.map(m => [m.name, m.name])]}, deviceField(),
      {name: 'phase', label: 'phase', value: 'decode', choices: [['prefill', 'prefill'], ['decode', 'decode']]},
      {name: 'batch', label: 'batch', value: '32', size: 5, steps: doubled(1, 1024)}, {name: 'context', label: 'context', value: '4096', size: 7, steps: doubled(128, 1 << 20)},
      ...[['tp', 'GPUs, tensor parallel'], ['ep', 'expert parallel'], ['pp', 'pipeline stages'], ['cp', 'context parallel'], ['dp', 'data parallel']].map(([name, label]) => ({name, label, value: '1', size: 3, steps: doubled(1, 64)})),
      {name: 'fabric', label: 'fabric, if not its own (nvlink4,ib400)', size: 12},
      dtypeField('dtype', 'arithmetic'), dtypeField('weight_dtype', 'weights'), dtypeField('kv_dtype', 'KV cache'), yesField('fused', 'fused'), yesField('graph', 'CUDA graph'),
      {name: 'config', label: 'config.json', rows: 8, wide: true, when: state => !state.model}],
    show: showModel,
  },
  memory: {
    title: 'Lanes and memory',
    fields: () => [{name: 'space', label: 'memory', value: 'global', choices: [['global', 'global'], ['shared', 'shared']]},
      {name: 'op', label: 'access', value: 'load', choices: [['load', 'load'], ['store', 'store']]},
      {name: 'index', label: 'element that a lane accesses', value: 'lane * 32', size: 24},
      {name: 'width', label: 'bytes a lane', value: '4', choices: ['1', '2', '4', '8', '16'].map(w => [w, w])},
      {name: 'lanes', label: 'active lanes', value: '32', size: 3}, {name: 'block', label: 'block', value: '0', size: 4}, {name: 'tile', label: 'tile', value: '0', size: 4}, {name: 'offset', label: 'start (bytes)', value: '0', size: 5}],
    show: showMemory,
  },
  occupancy: {
    title: 'Occupancy',
    fields: () => [deviceField(true), {name: 'threads', label: 'threads per block', value: '256', size: 5, steps: evenly(32, 1024, 32)},
      {name: 'regs', label: 'registers per thread', value: '64', size: 4, steps: [...evenly(0, 248, 8), '255']}, {name: 'smem', label: 'shared memory per block (bytes)', value: '0', size: 7, steps: evenly(0, 228, 4, 'Ki')}],
    show: showOccupancy,
  },
  kernel: {
    title: 'Kernel',
    fields: () => [deviceField(true), {name: 'kernel', label: 'kernel', value: 'column_scale', size: 16}, {name: 'grid', label: 'grid', value: '1,64', size: 10}, {name: 'block', label: 'block', value: '128', size: 10}, {name: 'smem', label: 'dynamic shared (bytes)', value: '0', size: 6},
      {name: 'args', label: 'arguments, one a line', value: 'out:f32[128*64]\nf32[128*64]\nf32[64]\n128\n64', rows: 6},
      {name: 'ptx', label: 'PTX, pasted, dropped here or from a file', value: example('scale'), rows: 14, wide: true, file: '.ptx', resets: {kernel: ''}}],
    show: showKernel,
    slow: 'Run',
  },
};
const ACCESSES = [['contiguous', {space: 'global', index: 'lane', width: '4'}], ['16 bytes a lane', {space: 'global', index: 'lane', width: '16'}], ['every second', {space: 'global', index: 'lane * 2', width: '4'}],
  ['down a column', {space: 'global', index: 'lane * 1024', width: '4'}], ['one off', {space: 'global', index: 'lane + 1', width: '4'}], ['one element', {space: 'global', index: '0', width: '4'}],
  ['column of a tile', {space: 'shared', index: 'lane * 32 + tile', width: '4'}], ['padded tile', {space: 'shared', index: 'lane * 33 + tile', width: '4'}], ['swizzled tile', {space: 'shared', index: 'lane * 32 + (lane ^ tile)', width: '4'}]];
const SCALED = {args: 'out:f32[128*64]\nf32[128*64]\nf32[64]\n128\n64', ptx: 'scale', block: '128'}, TRANSPOSED = {args: 'out:f32[256*256]\nf32[256*256]\n256', ptx: 'transpose', grid: '8,8', block: '32,8'};
const KERNELS = [['scale down columns', {...SCALED, kernel: 'column_scale', grid: '1,64'}], ['scale along rows', {...SCALED, kernel: 'contiguous_scale', grid: '64', args: SCALED.args.replace('\n128\n', '\n8192\n')}],
  ['transpose, naive', {...TRANSPOSED, kernel: 'transpose_naive'}], ['transpose through a tile', {...TRANSPOSED, kernel: 'transpose_tile'}], ['through a padded tile', {...TRANSPOSED, kernel: 'transpose_padded'}]];

const example = name => text(JSON.parse(document.getElementById('examples').textContent)[name]);
const examples = (state, cases) => el('p', {}, 'Try: ', cases.map(([name, fields], i) => [i ? ', ' : '', el('a', {href: addressOf({...state, place: {}, ...fields, ...(fields.ptx ? {ptx: example(fields.ptx)} : {})})}, name)]));

// The same question of every GPU, and a bar for each that answers.
async function everyDevice(question, key, axis, nameOf) {
  const others = [];
  for (const d of known.devices) others.push({name: d.id, answer: await ask({...question, device: d.id})});
  return [barChart('Every GPU', others.filter(o => !o.answer.error).map(o => ({name: nameOf(o), values: [o.answer[key]]})), ['time'], show.us, axis),
    others.filter(o => o.answer.error).map(o => el('p', {class: 'soft'}, o.name + ': ' + text(o.answer.error)))];
}

// What is left of the state is the question's.
const questionOf = (name, state) => { const {t, place, ...fields} = state; return {...fields, ask: name}; };

// Dragging a point sets bytes and FLOPs: to the right more FLOPs a byte, upwards more of both.
function moveOf(answer) {
  let base = answer, frame = 0;
  const typed = value => String(Number(Math.max(1, value).toPrecision(4)));
  return {
    start: () => { base = {...answer, flops: answer.flops > 0 ? answer.flops : answer.bytes / 100}; },
    by: (x, y) => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setFields({op: '', unit: text(answer.unit), launches: text(answer.launches), bytes: typed(base.bytes * 10 ** y), flops: typed(base.flops * 10 ** (x + y))}));
    },
  };
}

async function showRoofline(state) {
  const question = questionOf('roofline', state), answer = await ask(question);
  if (answer.error) return [problem(answer)];
  const own = Boolean(state.bandwidth || state.peak);
  if (!state.launch_us) slideTo('launch_us', object(answer.roofs).launch_us);
  return [el('h2', {}, text(answer.work) + ' on ' + (own ? 'your own figures' : text(answer.device))),
    el('p', {class: 'soft'}, 'Drag the point, or choose it and use the arrow keys: to the right is more FLOPs a byte, upwards more of both.'),
    rooflineView(answer, {move: moveOf(answer)}),
    own ? '' : await everyDevice(question, 'time_us', 'time (us)', o => o.name)];
}

async function showModel(state) {
  const question = questionOf('model', state), answer = await ask(question);
  if (answer.error) return [problem(answer)];
  const room = object(answer.memory);
  return [el('h2', {}, [answer.model, answer.phase, 'on', answer.gpus > 1 ? answer.gpus + ' x' : '', answer.device].map(text).filter(Boolean).join(' ')),
    room.fits === false && el('p', {class: 'error'}, 'This does not fit the memory of the GPU: more GPUs, a narrower type or a smaller batch.'),
    answer.assumed && el('p', {class: 'soft'}, 'Assumed: ' + text(answer.assumed)),
    modelView(answer), await everyDevice(question, 'total_us', 'time of one pass (us)', o => o.name + (object(o.answer.memory).fits === false ? ' (does not fit)' : ''))];
}

async function showOccupancy(state) {
  const answer = await ask(questionOf('occupancy', state));
  return answer.error ? [problem(answer)] : [occupancyView(answer)];
}

async function showMemory(state) {
  let addresses;
  const width = Number(state.width), active = Number(state.lanes);
  try {
    const index = compileIndex(state.index), offset = Number(state.offset);
    addresses = Array.from({length: 32}, (_, lane) => lane < active ? index({lane, block: Math.trunc(Number(state.block)) || 0, tile: Math.trunc(Number(state.tile)) || 0}) * width + offset : null);
    if (addresses.some(a => a !== null && !(a >= 0))) throw new Error('an address is below zero');
  } catch (error) {
    return [problem({error: error.message})];
  }
  const shared = state.space === 'shared', answer = await ask({ask: 'memory', addresses, width, shared, store: state.op === 'store'});
  if (answer.error) return [problem(answer)];
  const counts = shared ? ['wavefronts', 'ideal_wavefronts'] : ['sectors', 'ideal_sectors', 'lines', 'bytes'];
  return [el('div', {class: 'cards'}, counts.map(key => card(key.replace('ideal_', '') + (key.startsWith('ideal') ? ' at least' : ''), key, answer[key]))),
    figure(shared ? 'Words in each of the 32 banks, by lane (bank numbers above)' : 'Memory that the warp touches, by lane', w => shared ? drawBanks(answer.words, w) : drawSectors(answer.touched, w)),
    examples(state, ACCESSES)];
}

async function showKernel(state) {
  const question = {ask: 'audit', device: state.device, ptx: state.ptx, kernel: state.kernel, grid: state.grid, block: state.block, smem: state.smem, args: state.args.split('\n').map(a => a.trim()).filter(Boolean)};
  const asked = JSON.stringify(question);
  if (asked !== lastBill.question) lastBill = {question: asked, answer: await ask(question)};
  const answer = lastBill.answer;
  if (answer.error) return [problem(answer), examples(state, KERNELS)];
  return [examples(state, KERNELS), auditView(answer, {doc: 0, kernel: state.place.k, file: state.place.f, line: state.place.l})];
}
