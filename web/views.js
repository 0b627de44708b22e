// A view for each kind of result. Each gets the document and the state of the address, and returns nodes.

const KINDS = {
  audit: doc => list(doc.kernels).some(kernel => Array.isArray(kernel.lines)) || ('kernels' in doc && 'gate' in doc),
  profile: doc => 'kernels' in doc && 'roofs' in doc && 'source' in doc,
  model: doc => 'kernels' in doc && 'phase' in doc,
  ladder: doc => Array.isArray(doc.ladders) && list(doc.ladders).some(ladder => Array.isArray(ladder.rungs)),
  bench: doc => Array.isArray(doc.cases),
  roofline: doc => 'terms' in doc && 'work' in doc,
  choice: doc => 'model' in doc && list(doc.rows).some(row => 'possible' in row),
  occupancy: doc => 'blocks_by' in doc || Array.isArray(doc.sweep),
};
const kindOf = doc => Object.keys(KINDS).find(kind => KINDS[kind](doc)) || 'other';

// The roofs of the JSON, or those that the older keys of sol roofline give.
function roofsOf(doc) {
  const roofs = object(doc.roofs), name = text(doc.device) || text(object(doc.gpu).name);
  const pairs = keys => keys.filter(([key]) => number(roofs[key]) > 0).map(([key, label]) => [label, roofs[key]]);
  const memory = pairs([['hbm', 'DRAM'], ['read', 'DRAM'], ['l2', 'L2'], ['smem', 'shared']]);
  const peak = pairs([['vector_fp32', 'fp32'], ['fp32', 'fp32'], ['tensor_bf16', 'tensor bf16'], ['tensor', 'tensor']]);
  if (!memory.length && number(doc.bandwidth) > 0) memory.push([text(doc.level), doc.bandwidth]);
  if (!peak.length && number(doc.peak) > 0) peak.push([text(doc.dtype), doc.peak]);
  return {memory, peak: peak.sort((a, b) => a[1] - b[1]), name};
}

// What a document's results are called and take, for lists, pictures and comparison.
const POINTS = {
  audit: doc => list(doc.kernels).map(k => ({name: text(k.name), flops: number(k.flops), bytes: number(k.dram_bytes), us: number(k.time_us), bareUs: number(k.kernel_us)})),
  profile: doc => list(doc.kernels).map(k => ({name: text(k.name) + ' ' + text(k.grid) + ' x ' + text(k.block), flops: number(object(k.roofline).flops), bytes: number(k.dram_bytes), us: number(k.time_us), bareUs: number(k.time_us)})),
  model: doc => list(doc.kernels).map(k => {
    const launch = number(doc.launches) > 0 ? number(doc.launch_us) / doc.launches * number(k.count) : 0;
    return {name: text(k.name), flops: number(k.flops), bytes: number(k.bytes), us: number(k.time_us) + launch, bareUs: number(k.time_us)};
  }),
  ladder: doc => list(doc.ladders).flatMap(ladder => list(ladder.rungs).map(r => {
    const figures = object(r.measured && object(r.measured).time_us ? r.measured : r.predicted);
    return {name: text(ladder.name) + ' ' + text(r.rung), flops: 0, bytes: number(r.bytes), us: number(figures.time_us), bareUs: number(figures.time_us)};
  })),
  bench: doc => list(doc.cases).map(c => ({name: caseName(c), flops: 0, bytes: number(c.bytes), us: number(c.time_us), bareUs: number(c.time_us)})),
  roofline: doc => [{name: text(doc.work) + (doc.device ? ' on ' + text(doc.device) : ''), flops: number(doc.flops), bytes: number(doc.bytes), us: number(doc.time_us), bareUs: number(doc.time_us) - number(object(doc.terms).launch_us)}],
  choice: doc => list(doc.rows).filter(r => r.possible).map(r => ({name: choiceName(r), flops: 0, bytes: 0, us: number(r.tpot_us), bareUs: number(r.tpot_us)})),
  occupancy: () => [],
  other: () => [],
};
const choiceName = r => text(r.device) + (number(r.tp) > 1 ? ' x' + r.tp : '') + ', batch ' + text(r.batch) + ', context ' + text(r.context);
const caseName = c => [c.op, c.option, c.dtype, c.shape].map(text).filter(Boolean).join(' ');

function titleOf(doc, kind) {
  const on = text(doc.device) || text(doc.gpu && typeof doc.gpu === 'object' ? doc.gpu.name : doc.gpu);
  const what = {audit: doc.input, profile: doc.input, model: text(doc.model) + ' ' + text(doc.phase), choice: doc.model, roofline: doc.work, ladder: doc.command, bench: doc.command}[kind];
  return kind + (what ? ': ' + text(what) : '') + (on ? ' on ' + on : '');
}

const notesOf = doc => (Array.isArray(doc.notes) ? doc.notes : []).map(note => el('p', {class: 'soft'}, text(note)));

// The list of kernels; the one that is chosen is shown below it.
function kernelList(points, state, columns) {
  const whole = points.reduce((sum, p) => sum + p.us, 0);
  const head = el('div', {class: 'head'}, ['', 'kernel', 'time', 'share', ...columns.map(c => c[0])].map((title, i) => el('span', {class: i === 0 || i === 2 || i > 3 ? 'n' : undefined}, title)));
  const holder = longList('kernels', head, points.length, i => el('div', {class: 'row' + (i === state.kernel ? ' on' : ''), 'data-kernel': i},
    el('span', {class: 'n'}, i + 1),
    el('a', {class: 'mono', href: linkTo({...state, kernel: i, file: undefined, line: undefined}), title: points[i].name}, points[i].name),
    el('span', {class: 'n'}, figureOf('time_us', points[i].us, show.us)), meter(points[i].us / whole, show.share(points[i].us / whole)),
    columns.map(([, cell]) => el('span', {class: 'n'}, cell(i)))));
  return holder;
}

const numbered = points => points.map((p, i) => ({...p, label: String(i + 1)}));

// ---- audit ----

const TERM_NAMES = {launch: 'launch', dram: 'DRAM', l2: 'L2', l1: 'L1 and shared', issue: 'instruction issue', tensor: 'tensor cores', atomics: 'atomics', blocks: 'starting blocks', latency: 'latency'};

function termBars(terms, bound) {
  const rows = Object.entries(object(terms)).filter(([, us]) => number(us) > 0).sort((a, b) => b[1] - a[1])
    .map(([key, us]) => ({name: (TERM_NAMES[key] || key) + (key === bound ? ' (binds)' : ''), values: [us]}));
  return rows.length ? barChart('Each resource alone', rows, ['time'], show.us, 'time (us)', undefined, 'They overlap: the longest bounds the kernel.') : null;
}

// Unlike what each resource alone would take, these parts add up to the time.
function timeStack(kernel) {
  const parts = Object.entries(object(kernel.parts)).map(([key, us]) => ({name: TERM_NAMES[key] || key, value: number(us)})).sort((a, b) => b.value - a.value);
  return parts.length ? stackChart('Its time, by what it is spent on', parts, show.us, 'part_of_time') : null;
}

function findingList(kernel, linkOf) {
  const found = list(kernel.findings).slice().sort((a, b) => number(b.saved_us) - number(a.saved_us));
  if (!found.length) return [el('h3', {}, 'What to change'), el('p', {class: 'soft'}, 'No rule found anything worth changing.')];
  return [el('h3', {}, 'What to change, most time saved first'), el('ol', {class: 'findings'}, found.map(f => el('li', {'data-rule': f.rule},
    isNumber(f.gain) ? [el('b', {}, figureOf('gain', f.gain, show.times), ' faster'), ', saves ', figureOf('saved_us', f.saved_us, show.us), ': '] : '',
    el('code', {}, text(f.rule)), isNumber(f.line) && f.file ? [', ', el('a', {href: linkOf(f)}, baseName(f.file) + ':' + f.line)] : '',
    el('div', {}, text(f.message)), el('div', {}, el('b', {}, 'Fix: '), text(f.fix)), f.evidence && el('div', {class: 'soft'}, text(f.evidence)))))];
}

function auditKernel(doc, state) {
  const kernel = list(doc.kernels)[state.kernel];
  if (!kernel) return [];
  const rows = sourceRows(doc, kernel);
  const linkOf = place => linkTo({...state, file: baseName(place.file), line: place.line});
  const panel = el('div', {'aria-live': 'polite'});
  const choose = row => { panel.replaceChildren(accessPanel(row)); };
  const source = sourceList(rows, linkOf, row => { source.select(row.file, row.line); choose(row); });
  const wanted = isNumber(state.line) ? rows.find(row => row.bill && row.line === state.line && (!state.file || baseName(row.file) === state.file)) : undefined;
  const first = wanted || rows.filter(row => row.bill && object(row.bill).access).sort((a, b) => number(b.bill.share) - number(a.bill.share))[0];
  // After it has been laid out: what is not shown cannot be scrolled to.
  requestAnimationFrame(() => {
    if (first) { source.select(first.file, first.line); choose(first); }
    if (wanted) source.scrollIntoView({block: 'nearest'});
  });
  const shapes = list(kernel.shapes);
  return [el('h2', {id: 'kernel'}, 'Kernel ', el('span', {class: 'mono'}, text(kernel.name))),
    el('div', {class: 'cards'}, card('time', 'time_us', kernel.time_us, show.us), card('light', 'light_us', kernel.light_us, show.us), card('tax', 'tax', kernel.tax, show.times),
      words('bound by', TERM_NAMES[kernel.bound] || kernel.bound), card('launches', 'launches', kernel.launches), card('occupancy', 'occupancy', kernel.occupancy, show.share),
      card('registers', 'registers', kernel.registers), card('DRAM bytes', 'dram_bytes', kernel.dram_bytes, show.bytes), card('bytes at least', 'floor_bytes', kernel.floor_bytes, show.bytes)),
    list(kernel.faults).length ? el('div', {class: 'error'}, kernel.faults.map(fault => el('p', {}, text(fault)))) : '',
    timeStack(kernel),
    stackChart('In and between kernels', [{name: 'in the kernel', value: number(kernel.kernel_us)}, {name: 'between launches', value: number(kernel.gap_us)}], show.us, 'time_part'),
    termBars(kernel.terms, kernel.bound),
    ...timelineView(kernel.timeline, linkOf),
    ...findingList(kernel, linkOf),
    el('h3', {}, 'Source, with what each line costs'),
    el('p', {class: 'soft'}, 'Sectors and wavefronts are those of a request, and (the fewest possible). Choose a line to see its costliest access.'),
    source, panel,
    shapes.length > 1 && table('Launches by shape', [['grid', s => text(s.grid)], ['block', s => text(s.block)], ['launches', s => show.plain(s.launches), true], ['time', s => show.us(s.time_us), true], ['waves', s => show.plain(s.waves), true]], shapes)];
}

function auditView(doc, state) {
  const kernels = list(doc.kernels), points = numbered(POINTS.audit(doc));
  return [el('div', {class: 'cards'}, card('time', 'total_time_us', doc.time_us, show.us), card('light', 'total_light_us', doc.light_us, show.us), card('tax', 'total_tax', doc.tax, show.times), card('kernels', 'kernel_count', kernels.length)),
    list(doc.gate).length ? el('div', {class: 'error'}, el('b', {}, 'Past the limits'), list(doc.gate).map(g => el('p', {}, text(g.message)))) : '',
    doc.ended && el('p', {}, 'The program: ' + text(doc.ended)),
    rooflineChart(points, roofsOf(doc), 'Roofline, by DRAM bytes, predicted'),
    el('h2', {}, 'Kernels'),
    kernelList(points, state, [['light', i => figureOf('light_us', kernels[i].light_us, show.us)], ['tax', i => figureOf('tax', kernels[i].tax, show.times)], ['bound by', i => text(kernels[i].bound)]]),
    ...auditKernel(doc, state), ...notesOf(doc)];
}

// ---- profile ----

function profileView(doc, state) {
  const kernels = list(doc.kernels), points = numbered(POINTS.profile(doc)), kernel = kernels[state.kernel];
  const against = list(doc.against).flatMap(k => list(k.counters).map(c => ({name: text(k.kernel) + ' ' + text(c.counter), x: number(c.measured), y: number(c.emulated)})));
  return [el('div', {class: 'cards'}, card('time', 'total_time_us', doc.time_us, show.us), card('launches', 'total_launches', doc.launches), card('kernels', 'kernel_count', kernels.length)),
    rooflineChart(points, roofsOf(doc), 'Roofline, by DRAM bytes, measured'),
    el('h2', {}, 'Kernels'),
    kernelList(points, state, [['of roof', i => figureOf('roof_share', kernels[i].roof_share, show.share)], ['verdict', i => text(kernels[i].band)], ['bound by', i => text(kernels[i].bound)]]),
    kernel && [el('h2', {}, 'Kernel ', el('span', {class: 'mono'}, text(kernel.name))),
      el('div', {class: 'cards'}, card('time', 'time_us', kernel.time_us, show.us), card('launches', 'launches', kernel.launches), words('kind', kernel.kind), words('verdict', kernel.band), card('DRAM', 'dram_bytes_per_s', kernel.dram_bytes_per_s, show.rate)),
      Object.keys(object(kernel.shares)).length && barChart('How busy each unit was', Object.entries(object(kernel.shares)).map(([key, share]) => ({name: TERM_NAMES[key] || key, values: [share]})), ['share'], show.share, 'share of its roof (%)', {at: 1, name: 'roof'}),
      table('Diagnosis', [['step', s => text(s.step)], ['verdict', s => text(s.verdict)], ['', s => text(s.text)]], list(kernel.steps)),
      ...findingList(kernel, () => '#'),
      el('h3', {}, 'Counters'), tree('counters', object(kernel.counters))],
    scatterChart('Counters: emulated against measured', against, show.count, ['measured', 'emulated']),
    ...notesOf(doc)];
}

// ---- ladders ----

// Lines of `after` that are not in `before`, by the longest common subsequence.
function changedLines(before, after) {
  const n = before.length, m = after.length, best = Array.from({length: n + 1}, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--) best[i][j] = before[i] === after[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const fresh = new Set();
  for (let i = 0, j = 0; j < m;) {
    if (i < n && before[i] === after[j]) { i++; j++; }
    else if (i < n && best[i + 1][j] >= best[i][j + 1]) i++;
    else fresh.add(j++);
  }
  return fresh;
}

// Two rungs' code beside each other; lines that the other one lacks are marked, and begin with a sign.
function codePair(rungs) {
  const coded = rungs.filter(rung => text(rung.code));
  if (coded.length < 1) return null;
  const pick = start => el('select', {change: () => draw()}, coded.map((rung, i) => el('option', {value: i, selected: i === start ? 'selected' : undefined}, text(rung.rung))));
  const left = pick(0), right = pick(Math.min(1, coded.length - 1)), room = el('div', {class: 'two'});
  const side = (rung, other, sign) => {
    const mine = text(rung.code).split('\n').slice(0, 2000), fresh = changedLines(text(other.code).split('\n').slice(0, 2000), mine);
    return el('div', {}, el('p', {class: 'soft'}, text(rung.change)), el('pre', {tabindex: 0}, mine.flatMap((line, i) => [el('span', {class: fresh.has(i) ? 'new' : undefined}, (fresh.has(i) ? sign : ' ') + ' ' + codeText(line)), document.createTextNode('\n')])));
  };
  const draw = () => { const a = coded[left.value], b = coded[right.value]; room.replaceChildren(side(a, b, '-'), side(b, a, '+')); };
  draw();
  return el('section', {}, el('h3', {}, 'Code of two rungs'), el('label', {}, 'left', left), el('label', {}, 'right', right), room);
}

function ladderView(doc) {
  const both = list(doc.ladders).flatMap(l => list(l.rungs).map(r => ({name: text(l.name) + ' ' + text(r.rung), x: number(object(r.measured).time_us), y: number(object(r.predicted).time_us)})));
  const compared = list(object(doc.comparison).rows).map(r => ({name: text(r.ladder) + ' ' + text(r.rung), x: number(r.measured_us), y: number(r.predicted_us)}));
  return [scatterChart('Times: predicted against measured', compared.length ? compared : both, show.us, ['measured', 'predicted']),
    ...list(doc.ladders).flatMap(ladder => {
      const rungs = list(ladder.rungs), ways = ['predicted', 'measured'].filter(way => rungs.some(r => isNumber(object(r[way]).of_light)));
      return [el('h2', {}, text(ladder.title || ladder.name)), el('p', {}, text(ladder.about)), el('p', {class: 'soft'}, [text(ladder.name), text(ladder.shape), text(ladder.dtype)].join(' ')),
        ladder.error && el('div', {class: 'error'}, text(ladder.error)),
        ways.length && barChart('How much of light each reaches', rungs.map(r => ({name: text(r.rung), values: ways.map(way => object(r[way]).of_light)})), ways, show.share, 'share of the speed of a copy (%)', {at: 1, name: 'light'}),
        table(null, [[text(ladder.axis) || 'rung', r => isNumber(r.x) ? show.plain(r.x) : text(r.rung)], ['change', r => text(r.change)],
          ...ways.flatMap(way => [[way, r => figureOf(way + '.time_us', object(r[way]).time_us, show.us), true], ['of light', r => figureOf(way + '.of_light', object(r[way]).of_light, show.share), true]])], rungs),
        codePair(rungs)];
    })];
}

// ---- bench ----

function benchView(doc) {
  const cases = list(doc.cases), timed = cases.filter(c => isNumber(c.to_light)), summary = object(doc.summary);
  const worst = timed.slice().sort((a, b) => b.to_light - a.to_light).slice(0, 20);
  return [el('div', {class: 'cards'}, card('cases', 'case_count', cases.length), card('to light, mean', 'to_light', summary.to_light, show.times), card('to light, large', 'to_light_large', summary.to_light_large, show.times), card('failed', 'failed', summary.failed)),
    worst.length && barChart('Farthest from light', worst.map(c => ({name: caseName(c), values: [c.to_light]})), ['time over light'], show.times, 'time over that of a copy of the same bytes', {at: 1, name: 'light'}),
    !worst.length && cases.some(c => isNumber(c.to_ideal)) && barChart('Sectors against the fewest possible', cases.filter(c => isNumber(c.to_ideal)).sort((a, b) => b.to_ideal - a.to_ideal).slice(0, 20).map(c => ({name: caseName(c), values: [c.to_ideal]})), ['sectors'], show.times, 'sectors over the fewest possible', {at: 1, name: 'fewest'}),
    scatterChart('Each case against a copy of its bytes', timed.map(c => ({name: caseName(c), x: number(c.light_us), y: number(c.time_us)})), show.us, ['light', 'time']),
    table('Cases', [['operation', c => caseName(c)], ['bytes', c => figureOf('bytes', c.bytes, show.bytes), true], ['time', c => figureOf('time_us', c.time_us, show.us), true], ['rate', c => show.rate(c.bytes_per_s), true],
      ['light', c => show.us(c.light_us), true], ['to light', c => figureOf('to_light', c.to_light, show.times), true], ['sectors to ideal', c => show.times(c.to_ideal), true], ['', c => text(c.error || c.verdict)]], cases)];
}

// ---- models ----

function modelView(doc) {
  const kernels = list(doc.kernels), memory = object(doc.memory), byPart = new Map();
  for (const k of kernels) byPart.set(text(k.part), (byPart.get(text(k.part)) || 0) + number(k.time_us));
  return [el('div', {class: 'cards'}, card('one pass', 'total_us', doc.total_us, show.us), card('tokens a second', 'tokens_per_s', doc.tokens_per_s), card('bytes', 'bytes', doc.bytes, show.bytes), card('FLOPs', 'flops', doc.flops, show.flops), card('launches', 'launches', doc.launches), card('batch', 'batch', doc.batch), card('context', 'context', doc.context)),
    stackChart('The pass, by kernel', [...kernels.map(k => ({name: text(k.name) + (number(k.count) > 1 ? ', ' + k.count + ' times' : ''), value: number(k.time_us)})), {name: 'launches', value: number(doc.launch_us)}], show.us, 'kernel_us'),
    byPart.size > 1 && stackChart('The pass, by part', [...[...byPart].map(([name, value]) => ({name, value})), {name: 'launches', value: number(doc.launch_us)}], show.us, 'part_us'),
    rooflineChart(numbered(POINTS.model(doc)), roofsOf(doc), 'Roofline, a point for each kernel of the pass'),
    table('Kernels of the pass', [['', (_, i) => i + 1, true], ['kernel', k => text(k.name)], ['count', k => show.plain(k.count), true], ['bytes', k => figureOf('bytes', k.bytes, show.bytes), true], ['FLOPs', k => show.flops(k.flops), true], ['FLOP/byte', k => show.plain(k.intensity), true], ['bound by', k => text(k.bound)], ['time', k => figureOf('time_us', k.time_us, show.us), true], ['share', k => show.share(k.share), true]], kernels),
    stackChart('Memory of one GPU', [{name: 'weights', value: number(memory.weight_bytes)}, {name: 'KV cache', value: number(memory.kv_bytes)}, {name: 'activations', value: number(memory.activation_bytes)}, {name: 'free', value: Math.max(0, number(memory.device_bytes) - number(memory.weight_bytes) - number(memory.kv_bytes) - number(memory.activation_bytes))}], show.bytes, 'memory_bytes'),
    list(doc.what_if).length && barChart('What fusing and CUDA graphs would buy', list(doc.what_if).map(w => ({name: [w.fused ? 'fused' : 'not fused', w.graph ? 'in a graph' : 'in a stream'].join(', '), values: [w.total_us]})), ['time'], show.us, 'time of one pass (us)')];
}

// ---- several GPUs for a model ----

function choiceView(doc) {
  const rows = list(doc.rows).slice(0, 2000), fine = rows.filter(r => r.possible).slice(0, 60);
  const bars = (title, key, format, axis) => fine.some(r => isNumber(r[key])) ? barChart(title, fine.filter(r => isNumber(r[key])).map(r => ({name: choiceName(r), values: [r[key]]})), [title], format, axis) : null;
  return [bars('First token', 'ttft_us', show.us, 'time to the first token (us)'), bars('Each further token', 'tpot_us', show.us, 'time of each further token (us)'), bars('Tokens a second', 'tokens_per_s', show.plain, 'tokens a second, all sequences'),
    bars('Price of a million tokens', 'price_per_million_tokens', show.plain, 'price of a million tokens'), bars('Energy of a token', 'joules_per_token', show.plain, 'joules a token'),
    table('All of them', [['', r => choiceName(r)], ['first token', r => figureOf('ttft_us', r.ttft_us, show.us), true], ['each further', r => figureOf('tpot_us', r.tpot_us, show.us), true], ['tokens/s', r => figureOf('tokens_per_s', r.tokens_per_s), true],
      ['weights', r => show.bytes(r.weight_bytes), true], ['KV cache', r => show.bytes(r.kv_bytes), true], ['free', r => show.bytes(r.free_bytes), true], ['', r => text(r.why)]], rows)];
}

// ---- rooflines ----

function rooflineView(doc, state) {
  const terms = object(doc.terms);
  return [el('div', {class: 'cards'}, card('time', 'time_us', doc.time_us, show.us), words('bound by', doc.bound), card('bytes', 'bytes', doc.bytes, show.bytes), card('FLOPs', 'flops', doc.flops, show.flops), card('FLOP/byte', 'intensity', doc.intensity), card('ridge', 'ridge', doc.ridge)),
    rooflineChart(numbered(POINTS.roofline(doc)), roofsOf(doc), 'Roofline', state.move),
    barChart('Each term alone', [{name: 'memory', values: [terms.memory_us]}, {name: 'compute', values: [terms.compute_us]}, {name: 'launch', values: [terms.launch_us]}], ['time'], show.us, 'time (us)', undefined, 'The longer of memory and compute counts, and the launch.'),
    ...tripsView(doc),
    list(object(doc.advice).steps).length && table('What to do', [['step', s => text(s.kind)], ['', s => text(s.what)], ['bytes', s => show.bytes(s.bytes), true], ['time', s => show.us(s.time_us), true], ['gain', s => figureOf('gain', s.gain, show.times), true]], list(object(doc.advice).steps))];
}

const VIEWS = {audit: auditView, profile: profileView, model: modelView, choice: choiceView, ladder: ladderView, bench: benchView, roofline: rooflineView, occupancy: occupancyView, other: () => []};
