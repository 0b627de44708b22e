// A kernel's source with the bill of each line, and the costliest access of a line drawn.

// Lines of the files that the kernel's bill names: text where the JSON has it, else the billed lines alone.
function sourceRows(doc, kernel) {
  const billed = new Map(), files = [];
  for (const line of list(kernel.lines)) {
    const file = text(line.file);
    if (!billed.has(file)) { billed.set(file, new Map()); files.push(file); }
    billed.get(file).set(number(line.line), line);
  }
  const rows = [];
  for (const file of files) {
    const bills = billed.get(file);
    rows.push({title: file});
    const source = list(doc.sources).find(s => text(s.file) === file);
    const lines = source ? text(source.text).split('\n') : [];
    const first = source ? number(source.first) : 0;
    const numbers = new Set([...bills.keys(), ...lines.map((_, i) => first + i)]);
    let last = 0;
    for (const n of [...numbers].sort((a, b) => a - b)) {
      if (last && n !== last + 1) rows.push({gap: true});
      const inText = n >= first && n < first + lines.length;
      rows.push({file, line: n, bill: bills.get(n), code: inText ? lines[n - first] : text(object(bills.get(n)).source)});
      last = n;
    }
  }
  return rows;
}

const perRequest = (all, ideal, requests) =>
  requests > 0 ? (all / requests).toFixed(1) + ' (' + (ideal / requests).toFixed(1) + ')' : '';
const codeText = code => text(code).replace(/\r$/, '').replace(/\t/g, '    ');

// onLine(row): a line was chosen. The list has `select(file, line)`.
function sourceList(rows, linkOf, onLine) {
  // Columns that some line has a figure for.
  const extras = [
    ['sectors', bill => perRequest(number(bill.sectors), number(bill.ideal_sectors), number(bill.requests))],
    ['wavefronts', bill => perRequest(number(bill.wavefronts), number(bill.ideal_wavefronts), number(bill.shared_requests))],
    ['DRAM', bill => number(bill.dram_bytes) > 0 ? show.bytes(bill.dram_bytes) : ''],
  ].filter(([, cell]) => rows.some(row => row.bill && cell(row.bill)));
  if (!extras.length) extras.push(['', () => '']);
  const cells = cell => extras.map(([title, of]) => el('span', {class: 'n extra'}, cell(title, of)));
  const head = el('div', {class: 'head'}, el('span', {class: 'n'}, 'line'), el('span', {}, 'cost'), cells(title => title), el('span', {}, 'source'));
  const make = i => {
    const row = rows[i], bill = row.bill;
    if (row.gap) return el('div', {class: 'row soft'}, el('span', {class: 'n'}, '...'));
    if (row.title) return el('div', {class: 'row'}, el('span'), el('b', {class: 'mono', style: 'grid-column: 2 / -1; overflow: visible'}, row.title));
    if (!bill) return el('div', {class: 'row soft'}, el('span', {class: 'n'}, row.line), el('span'), cells(() => ''), el('span', {class: 'code mono'}, codeText(row.code)));
    return el('div', {class: 'row', 'data-line': row.line, click: () => onLine(row)},
      el('a', {class: 'n', href: linkOf(row)}, row.line),
      meter(bill.share, el('span', {'data-key': 'share', 'data-value': bill.share}, show.share(bill.share))),
      cells((_, of) => of(bill)),
      el('span', {class: 'code mono'}, codeText(row.code)));
  };
  const holder = longList('lines', head, rows.length, make);
  holder.style.setProperty('--extra', extras.length);
  holder.select = (file, line) => {
    const i = rows.findIndex(row => row.line === line && (file === undefined || row.file === file));
    if (i < 0) return null;
    for (const on of holder.querySelectorAll('.on')) on.classList.remove('on');
    const node = holder.goTo(i);
    if (node) node.classList.add('on');
    return rows[i];
  };
  return holder;
}

// ---- one access of a warp ----

// Those of one execution; in JSON that has none, by the stride, as if the first lane were at the start of a line.
function laneAddresses(access) {
  const most = 2 ** 40; // beyond, neighbouring numbers may be the same
  if (Array.isArray(access.lane_offsets) && access.lane_offsets.some(isNumber))
    return Array.from({length: 32}, (_, lane) => isNumber(access.lane_offsets[lane]) && access.lane_offsets[lane] >= 0 && access.lane_offsets[lane] <= most ? Math.floor(access.lane_offsets[lane]) : null);
  if (access.layout === 'uniform') return Array(32).fill(0);
  if (access.layout !== 'strided' || !isNumber(access.stride_bytes) || Math.abs(access.stride_bytes) > most) return null;
  const lowest = Math.min(0, 31 * access.stride_bytes);
  return Array.from({length: 32}, (_, lane) => lane * access.stride_bytes - lowest);
}

// "0-7 9": lanes as ranges.
function ranges(lanes) {
  const out = [];
  for (let i = 0, j; i < lanes.length; i = j) {
    for (j = i + 1; j < lanes.length && lanes[j] === lanes[j - 1] + 1; j++);
    out.push(j - i > 1 ? lanes[i] + '-' + lanes[j - 1] : String(lanes[i]));
  }
  return out.join(' ');
}

// What lanes touch, as the page's C code says it (src/page/page_memory.c): here from the offsets that a report has.
function touchedBy(lanes, bytes) {
  const lines = new Map();
  lanes.forEach((address, lane) => {
    if (address === null) return;
    for (let s = Math.floor(address / 32); s <= Math.floor((address + bytes - 1) / 32); s++) {
      const line = Math.floor(s / 4);
      if (!lines.has(line)) lines.set(line, {address: line * 128, sectors: [[], [], [], []]});
      lines.get(line).sectors[s % 4].push(lane);
    }
  });
  return [...lines.values()].sort((a, b) => a.address - b.address);
}

function wordsOf(lanes, bytes) {
  const group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8, words = [];
  lanes.forEach((address, lane) => {
    for (let word = Math.floor(address / 4); address !== null && word <= Math.floor((address + bytes - 1) / 4); word++) words.push({group: Math.floor(lane / group), bank: word % 32, word, lane});
  });
  return words;
}

// Each line of 128 bytes that is touched, as four sectors with the lanes in them; addresses from the first line on.
function drawSectors(touched, width) {
  const first = touched.length ? touched[0].address : 0, count = touched.reduce((sum, line) => sum + line.sectors.filter(s => s.length).length, 0);
  const cell = 46, label = 76, group = label + 4 * cell + 16, columns = Math.max(1, Math.floor(width / group));
  const down = Math.ceil(touched.length / columns), height = down * 22 + 24;
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'data-sectors': count, 'data-lines': touched.length,
    'aria-label': `${count} sectors in ${touched.length} lines`},
    Array.from({length: Math.min(columns, touched.length)}, (_, c) => svg('text', {class: 'tick', x: c * group + label, y: 12}, 'lanes in each 32-byte sector')),
    touched.map((line, i) => {
      const x = Math.floor(i / down) * group, y = 18 + i % down * 22;
      return svg('g', {}, svg('text', {class: 'tick', x: x + label - 6, y: y + 14, 'text-anchor': 'end'}, '+' + (line.address - first) + ' B'),
        line.sectors.map((hit, s) => [svg('rect', {class: hit.length ? 'cell hit' : 'cell', x: x + label + s * cell, y, width: cell - 2, height: 19}),
          hit.length > 0 && svg('text', {class: 'small', x: x + label + s * cell + cell / 2 - 1, y: y + 13, 'text-anchor': 'middle'}, ranges(hit).slice(0, 9))]));
    }));
}

// 32 banks of 4 bytes; a cell is a word, with the first lane that accesses it. Groups of lanes below each other.
function drawBanks(words, width) {
  const parts = [];
  for (const {group, bank, word, lane} of words) {
    while (parts.length <= group) parts.push(Array.from({length: 32}, () => new Map()));
    if (!parts[group][bank].has(word)) parts[group][bank].set(word, lane);
  }
  const cell = Math.floor((width - 4) / 32), row = 16, deepest = parts.map(banks => Math.max(...banks.map(bank => bank.size)));
  let y = 16;
  const rows = parts.map((banks, part) => {
    const drawn = banks.map((bank, b) => [...bank.values()].map((lane, i) => [
      svg('rect', {class: 'cell hit', x: b * cell, y: y + i * row, width: cell - 1, height: row - 2}),
      svg('text', {class: 'small', x: b * cell + cell / 2, y: y + i * row + 10, 'text-anchor': 'middle'}, lane)]));
    y += deepest[part] * row + 8;
    return drawn;
  });
  return svg('svg', {width, height: y + 4, viewBox: `0 0 ${width} ${y + 4}`, role: 'img', 'aria-label': 'words in each bank', 'data-deepest': Math.max(...deepest, 0), 'data-rows': deepest.reduce((sum, n) => sum + n, 0)},
    Array.from({length: 8}, (_, i) => svg('text', {class: 'tick', x: i * 4 * cell, y: 11}, i * 4)), rows);
}

// Squares for what a request takes, those that the same bytes need at least filled.
function drawCounts(moved, ideal, width) {
  const count = Math.min(64, Math.ceil(moved)), need = Math.min(count, Math.ceil(ideal)), each = 18, across = Math.floor(width / each);
  const height = Math.ceil(count / across) * each + 4;
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${show.plain(moved)}, of which ${show.plain(ideal)} are needed`},
    Array.from({length: count}, (_, i) => svg('rect', {class: i < need ? 'cell need' : 'cell waste', x: i % across * each + 1, y: Math.floor(i / across) * each + 1, width: each - 4, height: each - 4})));
}

function accessPanel(row) {
  const bill = object(row.bill), access = object(bill.access);
  const head = el('h3', {}, 'Line ' + row.line + ' of ' + baseName(row.file));
  if (!access.instruction) return el('div', {class: 'access'}, head, el('p', {class: 'soft'}, 'This line has no access to global or shared memory in the JSON.'));
  const shared = access.memory === 'shared', what = shared ? 'wavefronts' : 'sectors';
  const moved = number(access[what + '_per_request']), ideal = number(access['ideal_' + what + '_per_request']);
  const lanes = laneAddresses(access), width = Math.max(1, Math.min(32, Math.floor(number(access.width) || 4)));
  return el('div', {class: 'access'}, head, el('p', {}, 'Its costliest access: ', el('code', {}, text(access.instruction))),
    el('p', {}, figureOf(what + '_per_request', moved), ' ' + what + ' a request, where ', figureOf('ideal_' + what + '_per_request', ideal),
      ' would do; ' + width + ' bytes a lane, lanes ' + (access.layout === 'strided' ? access.stride_bytes + ' bytes apart' : text(access.layout)) + '.'),
    figure(what + ' of a request: solid are needed, dashed are not', w => drawCounts(moved, ideal, w)),
    lanes && figure(shared ? 'Words in each of the 32 banks, by lane (bank numbers above)' : 'Memory that the warp touches, by lane',
      w => shared ? drawBanks(wordsOf(lanes, width), w) : drawSectors(touchedBy(lanes, width), w),
      !Array.isArray(access.lane_offsets) ? 'Most executions have this stride; drawn as if lane 0 were at the start of a line.'
        : shared ? 'The first execution of the first block.' : 'The execution with the most sectors, of the first block that has it.'),
    !lanes && el('p', {class: 'soft'}, 'Where its lanes are is not in the JSON.'));
}
