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

const nearest = (steps, value) => steps.reduce((best, step, i) => Math.abs(parseFloat(step) - value) < Math.abs(parseFloat(steps[best]) - value) ? i : best, 0);
// Puts a slider where a number is that nobody typed.
function slideTo(name, value) {
  const slider = document.querySelector(`[data-slider="${name}"]`);
  if (slider && isNumber(value)) slider.value = nearest(slider.steps, value);
}

// 48Ki, 16MiB: what a slider whose steps are in Ki has to know of the way numbers are typed.
const inSteps = (steps, value) => /Ki$/.test(steps[0]) && !/Ki$/.test(value) ? parseFloat(value) / 1024 : parseFloat(value);

function makeSlider(field, change) {
  const slider = el('input', {type: 'range', min: 0, max: field.steps.length - 1, step: 1, 'data-slider': field.name, 'aria-label': field.label,
    input: () => change(field.steps[slider.value])});
  slider.steps = field.steps;
  return slider;
}

function filePicker(field) {
  return el('input', {type: 'file', accept: field.file, 'aria-label': field.label, change: async event => { const file = event.target.files[0]; if (file) setFields({...field.resets, [field.name]: await file.text()}); }});
}

// A field's label, with `put(value)` to show a value that came from elsewhere.
function makeField(field, state, change) {
  const set = event => { change(field.name, event.target.value); slide(event.target.value); };
  const attributes = {name: field.name, input: set, change: set};
  const input = field.choices ? el('select', attributes, field.choices.map(([value, label]) => el('option', {value}, label)))
    : field.rows ? el('textarea', {...attributes, rows: field.rows, cols: field.wide ? 80 : 24, spellcheck: 'false', class: 'mono'}) : el('input', {...attributes, size: field.size, spellcheck: 'false'});
  if (field.choices && !field.choices.some(([value]) => value === state[field.name])) input.append(el('option', {value: state[field.name]}, state[field.name]));
  const take = value => { input.value = value; change(field.name, value); };
  const slider = field.steps && makeSlider(field, take);
  const slide = value => { if (slider && value) slider.value = nearest(field.steps, inSteps(field.steps, value)); };
  const label = el('label', {class: field.rows ? 'tall' : undefined}, field.label, input, slider, field.file && filePicker(field));
  label.put = value => { input.value = value; slide(value); };
  label.put(state[field.name]);
  return label;
}

// ---- state ----

function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1)), tab = Object.hasOwn(TABS, fields.get('t') || '') ? fields.get('t') : 'roofline';
  const state = {t: tab};
  for (const field of TABS[tab].fields()) state[field.name] = fields.has(field.name) ? fields.get(field.name) : field.value || '';
  const whole = key => /^\d{1,9}$/.test(fields.get(key) || '') ? Number(fields.get(key)) : undefined;
  return {...state, place: {k: whole('k') || 0, f: fields.get('f') || undefined, l: whole('l'), v: fields.get('v') || undefined}};
}

function addressOf(state) {
  const fields = new URLSearchParams({t: state.t});
  for (const field of TABS[state.t].fields()) if (state[field.name] !== (field.value || '')) fields.set(field.name, state[field.name]);
  const place = object(state.place);
  for (const key of ['k', 'f', 'l', 'v']) if (place[key] !== undefined && place[key] !== 0) fields.set(key, place[key]);
  return '#' + fields.toString();
}

// Links of the report view: a kernel, a line.
const linkTo = at => addressOf({...readAddress(), place: {k: at.kernel, f: at.file, l: at.line, v: chosenView()}});

// Which of its pictures a roofline is.
const chosenView = () => readAddress().place.v;
function keepView(by) {
  const state = readAddress();
  history.replaceState(null, '', addressOf({...state, place: {...state.place, v: by}}));
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
  const point = main.contains(document.activeElement) && document.activeElement.dataset.point !== undefined;
  main.style.minHeight = main.offsetHeight + 'px'; // pictures are drawn once they are laid out: what is seen stays in place
  main.replaceChildren(...[nodes].flat(9).filter(node => node instanceof Node));
  requestAnimationFrame(() => requestAnimationFrame(() => {
    main.style.minHeight = '';
    if (point && main.querySelector('[data-point]')) main.querySelector('[data-point]').focus();
  }));
  document.documentElement.dataset.ready = 'yes';
}

let setFields = () => {}; // {name: value} of the form that is shown, and the answer to it

function draw() {
  const state = readAddress(), tab = TABS[state.t], fields = tab.fields();
  document.documentElement.dataset.ready = 'no';
  document.getElementById('tabs').replaceChildren(...Object.entries(TABS).map(([key, t]) => el('a', {href: '#t=' + key, 'aria-current': key === state.t ? 'page' : undefined}, t.title)));
  const form = document.getElementById('form'), nodes = new Map();
  const refresh = () => fields.forEach(field => { nodes.get(field.name).hidden = Boolean(field.when) && !field.when(state); });
  const changed = () => {
    state.place = {v: chosenView()};
    refresh();
    history.replaceState(null, '', addressOf(state));
    if (!tab.slow) answerTo({...state});
  };
  const change = (name, value) => {
    if (state[name] === value) return;
    state[name] = value;
    changed();
  };
  setFields = values => {
    for (const [name, value] of Object.entries(values)) {
      state[name] = value;
      nodes.get(name).put(value);
    }
    changed();
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

// A file that is dropped anywhere is the PTX.
function dropFiles() {
  const main = document.getElementById('main'), over = on => main.classList.toggle('over', on);
  window.addEventListener('dragover', event => { event.preventDefault(); over(true); });
  window.addEventListener('dragleave', () => over(false));
  window.addEventListener('drop', async event => {
    event.preventDefault();
    over(false);
    const file = event.dataTransfer.files[0];
    if (!file) return;
    if (readAddress().t !== 'kernel') { history.replaceState(null, '', '#t=kernel'); draw(); }
    setFields({kernel: '', ptx: await file.text()});
  });
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
  dropFiles();
  draw();
}
