// The page: questions are forms, answers come from the accountant, the memory model and the emulator in wasm
// (src/page). Every field is in the address, so that a link shows what you see.

let wasm = null, instance = null, known = {devices: [], ops: [], dtypes: []}, turn = 0, lastBill = {question: '', answer: null};

// Every question finds the memory as it was at the start, so that what the last one allocated is free again. One
// instance serves all of them: browsers reserve gigabytes of addresses for each. After a trap there is a new one.
async function makeInstance() {
  const {exports} = await WebAssembly.instantiate(wasm, {});
  instance = {exports, initial: new Uint8Array(exports.memory.buffer.slice(0))};
}

async function ask(question) {
  try {
    if (!instance) await makeInstance();
    const {exports, initial} = instance; // nothing below waits: questions do not get mixed up
    new Uint8Array(exports.memory.buffer).set(initial);
    const bytes = new TextEncoder().encode(JSON.stringify(question));
    const at = exports.page_room(bytes.length);
    if (!at) return {error: 'out of memory'};
    new Uint8Array(exports.memory.buffer).set(bytes, at);
    const answer = exports.page_ask(at, bytes.length) >>> 0;
    const memory = new Uint8Array(exports.memory.buffer);
    return JSON.parse(new TextDecoder().decode(memory.subarray(answer, memory.indexOf(0, answer))));
  } catch (error) {
    instance = null;
    return {error: 'The accountant stopped: ' + error.message};
  }
}

const problem = answer => el('div', {class: 'error', role: 'alert'}, el('p', {}, (answer.line ? 'line ' + answer.line + ', column ' + answer.column + ': ' : '') + text(answer.error)), answer.hint && el('p', {}, text(answer.hint)));

// ---- fields ----

const deviceField = () => ({name: 'device', label: 'GPU', value: 'h100-sxm', choices: known.devices.map(d => [d.id, d.id + ': ' + d.name])});
const TABS = {
  roofline: {
    title: 'Roofline',
    fields: () => [deviceField(),
      {name: 'bandwidth', label: 'bandwidth (B/s), if not its own', size: 8}, {name: 'peak', label: 'peak (FLOP/s), if not its own', size: 8}, {name: 'launch_us', label: 'launch cost (us)', size: 5},
      {name: 'op', label: 'operation', value: 'rmsnorm', choices: [['', 'none: bytes and FLOPs'], ...known.ops.map(op => [op.name, op.name + ' ' + op.shape])]},
      {name: 'shape', label: 'shape', value: '8192x4096', size: 12}, {name: 'dtype', label: 'type', value: 'bf16', choices: known.dtypes.map(d => [d, d])},
      {name: 'bytes', label: 'bytes', value: '40e6', size: 8, when: state => !state.op}, {name: 'flops', label: 'FLOPs', value: '5e6', size: 8, when: state => !state.op}, {name: 'launches', label: 'launches', value: '1', size: 4, when: state => !state.op},
      {name: 'level', label: 'memory', value: 'hbm', choices: [['hbm', 'DRAM'], ['l2', 'L2'], ['smem', 'shared']]}],
    show: showRoofline,
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
  kernel: {
    title: 'Kernel',
    fields: () => [deviceField(), {name: 'kernel', label: 'kernel', value: 'column_scale', size: 16}, {name: 'grid', label: 'grid', value: '1,64', size: 10}, {name: 'block', label: 'block', value: '128', size: 10}, {name: 'smem', label: 'dynamic shared (bytes)', value: '0', size: 6},
      {name: 'args', label: 'arguments, one a line', value: 'out:f32[128*64]\nf32[128*64]\nf32[64]\n128\n64', rows: 6},
      {name: 'ptx', label: 'PTX', value: example(), rows: 14, wide: true}],
    show: showKernel,
    slow: 'Run',
  },
};
const EXAMPLES = [['contiguous', {space: 'global', index: 'lane', width: '4'}], ['16 bytes a lane', {space: 'global', index: 'lane', width: '16'}], ['every second', {space: 'global', index: 'lane * 2', width: '4'}],
  ['down a column', {space: 'global', index: 'lane * 1024', width: '4'}], ['one off', {space: 'global', index: 'lane + 1', width: '4'}], ['one element', {space: 'global', index: '0', width: '4'}],
  ['column of a tile', {space: 'shared', index: 'lane * 32 + tile', width: '4'}], ['padded tile', {space: 'shared', index: 'lane * 33 + tile', width: '4'}], ['swizzled tile', {space: 'shared', index: 'lane * 32 + (lane ^ tile)', width: '4'}]];

function example() {
  const escaped = document.getElementById('example').textContent.trim();
  return JSON.parse('"' + escaped + '"');
}

// ---- state ----

function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1)), tab = Object.hasOwn(TABS, fields.get('t') || '') ? fields.get('t') : 'roofline';
  const state = {t: tab};
  for (const field of TABS[tab].fields()) state[field.name] = fields.has(field.name) ? fields.get(field.name) : field.value || '';
  const whole = key => /^\d{1,9}$/.test(fields.get(key) || '') ? Number(fields.get(key)) : undefined;
  return {...state, place: {k: whole('k') || 0, f: fields.get('f') || undefined, l: whole('l')}};
}

function addressOf(state) {
  const fields = new URLSearchParams({t: state.t});
  for (const field of TABS[state.t].fields()) if (state[field.name] !== (field.value || '')) fields.set(field.name, state[field.name]);
  const place = object(state.place);
  for (const key of ['k', 'f', 'l']) if (place[key] !== undefined && place[key] !== 0) fields.set(key, place[key]);
  return '#' + fields.toString();
}

// Links of the report view: a kernel, a line.
const linkTo = at => addressOf({...readAddress(), place: {k: at.kernel, f: at.file, l: at.line}});

function makeField(field, state, change) {
  const set = event => change(field.name, event.target.value);
  const attributes = {name: field.name, input: set, change: set};
  const input = field.choices ? el('select', attributes, field.choices.map(([value, label]) => el('option', {value}, label)))
    : field.rows ? el('textarea', {...attributes, rows: field.rows, cols: field.wide ? 80 : 24, spellcheck: 'false', class: 'mono'}) : el('input', {...attributes, size: field.size, spellcheck: 'false'});
  if (field.choices && !field.choices.some(([value]) => value === state[field.name])) input.append(el('option', {value: state[field.name]}, state[field.name]));
  input.value = state[field.name];
  return el('label', {class: field.rows ? 'tall' : undefined}, field.label, input);
}

// ---- answers ----

async function showRoofline(state) {
  const question = {ask: 'roofline', ...state};
  delete question.place;
  const answer = await ask(question);
  if (answer.error) return [problem(answer)];
  const own = Boolean(state.bandwidth || state.peak || state.launch_us);
  const others = own ? [] : await Promise.all(known.devices.map(async d => ({name: d.id, answer: await ask({...question, device: d.id})})));
  return [el('h2', {}, text(answer.work) + ' on ' + (own ? 'your own figures' : text(answer.device))), rooflineView(answer),
    others.length ? barChart('Every GPU', others.filter(o => !o.answer.error).map(o => ({name: o.name, values: [o.answer.time_us]})), ['time'], show.us, 'time (us)') : '',
    others.filter(o => o.answer.error).map(o => el('p', {class: 'soft'}, o.name + ': ' + text(o.answer.error)))];
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
  const lowest = Math.min(...addresses.filter(a => a !== null), Infinity), start = Number.isFinite(lowest) ? Math.floor(lowest / 128) * 128 : 0;
  const near = addresses.map(a => a === null ? null : a - (shared ? 0 : start));
  const counts = shared ? ['wavefronts', 'ideal_wavefronts'] : ['sectors', 'ideal_sectors', 'lines', 'bytes'];
  return [el('div', {class: 'cards'}, counts.map(key => card(key.replace('ideal_', '') + (key.startsWith('ideal') ? ' at least' : ''), key, answer[key]))),
    figure(shared ? 'Words in each of the 32 banks, by lane (bank numbers above)' : 'Memory that the warp touches, by lane', w => shared ? drawBanks(near, width, w) : drawSectors(near, width, w)),
    el('p', {}, 'Try: ', EXAMPLES.map(([name, fields]) => [el('a', {href: addressOf({...state, ...fields})}, name), ' ']))];
}

async function showKernel(state) {
  const question = {ask: 'audit', device: state.device, ptx: state.ptx, kernel: state.kernel, grid: state.grid, block: state.block, smem: state.smem, args: state.args.split('\n').map(a => a.trim()).filter(Boolean)};
  const asked = JSON.stringify(question);
  if (asked !== lastBill.question) lastBill = {question: asked, answer: await ask(question)};
  const answer = lastBill.answer;
  if (answer.error) return [problem(answer)];
  return [auditView(answer, {doc: 0, kernel: state.place.k, file: state.place.f, line: state.place.l})];
}

// ---- drawing ----

async function answerTo(state) {
  const mine = ++turn, main = document.getElementById('main');
  let nodes;
  try {
    nodes = await TABS[state.t].show(state);
  } catch (error) {
    nodes = [problem({error: error.message})];
  }
  if (mine !== turn) return; // another question has been asked since
  main.replaceChildren(...[nodes].flat(9).filter(node => node instanceof Node));
  document.documentElement.dataset.ready = 'yes';
}

function draw() {
  const state = readAddress(), tab = TABS[state.t], fields = tab.fields();
  document.documentElement.dataset.ready = 'no';
  document.getElementById('tabs').replaceChildren(...Object.entries(TABS).map(([key, t]) => el('a', {href: '#t=' + key, 'aria-current': key === state.t ? 'page' : undefined}, t.title)));
  const form = document.getElementById('form'), nodes = new Map();
  const refresh = () => fields.forEach(field => { nodes.get(field.name).hidden = Boolean(field.when) && !field.when(state); });
  const change = (name, value) => {
    if (state[name] === value) return;
    state[name] = value;
    state.place = {k: 0};
    refresh();
    history.replaceState(null, '', addressOf(state));
    if (!tab.slow) answerTo({...state});
  };
  for (const field of fields) nodes.set(field.name, makeField(field, state, change));
  form.onsubmit = event => { event.preventDefault(); answerTo({...state}); };
  form.replaceChildren(...nodes.values(), ...(tab.slow ? [el('button', {type: 'submit'}, tab.slow)] : []));
  refresh();
  answerTo({...state});
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}

async function start() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  setTheme(dark.matches);
  document.getElementById('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
  window.addEventListener('beforeprint', () => setTheme(false));
  try {
    const bytes = Uint8Array.from(atob(document.getElementById('wasm').textContent.trim()), c => c.charCodeAt(0));
    wasm = await WebAssembly.compile(bytes);
    known = await ask({ask: 'devices'});
  } catch (error) {
    document.getElementById('main').replaceChildren(problem({error: 'This browser cannot run the accountant: ' + error.message}));
    return;
  }
  window.addEventListener('hashchange', draw);
  draw();
}
