// What is shown is in the address: #d=DOCUMENT&k=KERNEL&f=FILE&l=LINE&v=VIEW, so that a link shows what you see. VIEW is
// which of its pictures a roofline is: bytes, flops or launch.

let documents = [], view;

const chosenView = () => view;
function keepView(by) {
  view = by;
  history.replaceState(null, '', linkTo(readState()));
}

function readState() {
  const fields = new URLSearchParams(location.hash.slice(1));
  const whole = (key, least) => {
    const value = Number(fields.get(key));
    return fields.has(key) && Number.isInteger(value) && value >= least ? value : undefined;
  };
  return {doc: whole('d', -1), kernel: whole('k', 0) || 0, file: fields.get('f') || undefined, line: whole('l', 0)};
}

function linkTo(state) {
  const fields = new URLSearchParams();
  const put = (key, value) => { if (value !== undefined && value !== null) fields.set(key, value); };
  put('d', state.doc);
  put('k', state.kernel);
  put('f', state.file);
  put('l', state.line);
  put('v', view);
  return '#' + fields.toString();
}

// An answer for several GPUs is as many documents.
function takeParts(parts) {
  return list(parts).flatMap(part => {
    const answers = Array.isArray(part.json) ? list(part.json) : [object(part.json)];
    return answers.map(doc => {
      const kind = kindOf(doc), device = answers.length > 1 && doc.device ? ' (' + text(doc.device) + ')' : '';
      return {name: text(part.name) + device, doc, kind};
    });
  });
}

// Results of one name side by side, and how many times as long they take as the first document's.
function compareView() {
  const kinds = [...new Set(documents.map(d => d.kind))];
  return kinds.flatMap(kind => {
    const docs = documents.filter(d => d.kind === kind);
    const perDoc = docs.map(d => POINTS[kind](d.doc)), byWork = kind === 'roofline';
    const nameOf = p => byWork ? p.name.replace(/ on [^ ]*$/, '') : p.name;
    const names = [...new Set(perDoc.flatMap(points => points.map(nameOf)))].slice(0, 2000);
    const rows = names.map(name => ({name, us: perDoc.map(points => number(object(points.find(p => nameOf(p) === name)).us))}));
    const all = perDoc.flatMap((points, d) => points.slice(0, 40).map((p, i) => ({...p, group: d, label: String.fromCharCode(65 + d % 26) + (points.length > 1 ? i + 1 : ''), name: docs[d].name + ': ' + p.name})));
    const total = docs.map((d, i) => ({name: String.fromCharCode(65 + i % 26) + '. ' + d.name, values: [perDoc[i].reduce((sum, p) => sum + p.us, 0)]}));
    return [el('h2', {}, 'Compared: ' + kind),
      el('ol', {type: 'A'}, docs.map(d => el('li', {}, el('a', {href: linkTo({doc: documents.indexOf(d)})}, titleOf(d.doc, d.kind)), ' ', el('span', {class: 'soft'}, d.name)))),
      docs.length > 1 && barChart('All together', total, ['time'], show.us, 'time (us)'),
      rooflineChart(all, roofsOf(docs[0].doc), 'Roofline' + (docs.length > 1 ? ', under the roofs of ' + text(roofsOf(docs[0].doc).name) : '')),
      table('Times, and times as long as A', [['', r => el('span', {class: 'mono'}, r.name)],
        ...docs.flatMap((d, i) => [[String.fromCharCode(65 + i % 26), r => figureOf('time_us', r.us[i] || undefined, show.us), true], ...(i ? [['to A', r => r.us[0] && r.us[i] ? show.times(r.us[i] / r.us[0]) : '-', true]] : [])])], rows)];
  });
}

function showTabs(current) {
  const tabs = documents.length > 1 ? [[-1, 'Compare'], ...documents.map((d, i) => [i, d.name])] : [];
  document.getElementById('tabs').replaceChildren(...tabs.map(([i, name]) =>
    el('a', {href: linkTo({doc: i}), 'aria-current': i === current ? 'page' : undefined}, name)));
}

function render() {
  view = new URLSearchParams(location.hash.slice(1)).get('v') || view;
  const state = readState(), several = documents.length > 1;
  const at = state.doc !== undefined && state.doc < documents.length ? state.doc : several ? -1 : 0;
  const main = document.getElementById('main'), entry = documents[at];
  showTabs(at);
  if (!entry && !several) return main.replaceChildren(el('p', {class: 'error'}, 'There is no result in this file.'));
  const title = entry ? titleOf(entry.doc, entry.kind) : 'comparison of ' + documents.length + ' results';
  document.querySelector('h1').replaceChildren(plain('Sol ' + title));
  document.title = plain('Sol ' + title);
  let nodes;
  try {
    nodes = entry ? VIEWS[entry.kind](entry.doc, {...state, doc: at}) : compareView();
  } catch (error) {
    nodes = [el('p', {class: 'error'}, 'This result could not be drawn: ' + error.message)];
  }
  if (entry) nodes.push(el('h2', {}, 'All figures'), tree('JSON', entry.doc));
  main.replaceChildren(...nodes.flat(9).filter(node => node instanceof Node));
  document.documentElement.dataset.ready = 'yes';
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}

function start() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  setTheme(dark.matches);
  dark.addEventListener('change', () => setTheme(dark.matches));
  window.addEventListener('beforeprint', () => setTheme(false));
  document.getElementById('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
  try {
    documents = takeParts(JSON.parse(document.getElementById('data').textContent));
  } catch (error) {
    document.getElementById('main').replaceChildren(el('p', {class: 'error'}, 'The data of this report cannot be read: ' + error.message));
    return;
  }
  window.addEventListener('hashchange', render);
  render();
}
