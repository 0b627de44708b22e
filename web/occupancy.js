// How many warps an SM holds: its slots, what limits them, and what each input alone would change.

// Slots of an SM, 16 a row; those that are taken have the number of their block.
function drawSlots(doc, width) {
  const most = Math.max(0, Math.min(256, Math.floor(number(doc.max_warps_per_sm)))), each = Math.max(1, number(doc.warps_per_block)), taken = number(doc.warps_per_sm);
  const cell = Math.min(44, Math.floor((width - 2) / 16)), rows = Math.ceil(most / 16), height = rows * 24 + 4;
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'data-slots': most, 'data-taken': taken, 'aria-label': `${taken} of ${most} warp slots taken`},
    hatches(), Array.from({length: most}, (_, i) => {
      const x = i % 16 * cell + 1, y = Math.floor(i / 16) * 24 + 1, at = Math.floor(i / each);
      if (i >= taken) return svg('rect', {class: 'cell', x, y, width: cell - 3, height: 21});
      return [block(at % 2, x, y, cell - 3, 21), svg('text', {class: 'tick', x: x + cell / 2 - 1, y: y + 15, 'text-anchor': 'middle'}, at + 1)];
    }));
}

// Occupancy by one input, in steps; the dashed line is where it is now.
function stepChart(title, rows, key, now, axis, format) {
  const fine = rows.filter(row => isNumber(row[key]));
  if (fine.length < 2) return null;
  return figure(title, width => {
    const height = 190, box = {left: 48, right: width - 22, top: 22, bottom: height - 42};
    const last = Math.max(...fine.map(row => row[key]), 1), at = value => box.left + Math.min(1, value / last) * (box.right - box.left);
    const up = value => box.bottom - value * (box.bottom - box.top), shares = fine.map(row => number(row.occupancy));
    const unit = 2 ** Math.ceil(Math.log2(last / 5)), x = {at, ticks: evenly(0, last, unit).map(Number), show: format};
    const path = fine.map((row, i) => (i ? `L${at(row[key]).toFixed(1)},${up(shares[i - 1]).toFixed(1)}` : 'M') + (i ? 'L' : '') + `${at(row[key]).toFixed(1)},${up(shares[i]).toFixed(1)}`).join('');
    return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title, 'data-steps': fine.length},
      axes(box, x, {at: up, ticks: [0, 0.5, 1], show: value => value * 100 + '%'}, [axis, 'occupancy']),
      svg('path', {class: 'roof', d: path}),
      isNumber(now) && now <= last && svg('line', {class: 'mark', x1: at(now), x2: at(now), y1: box.top, y2: box.bottom}));
  });
}

// "0", "8", "16": even steps, as texts.
const evenly = (from, to, step, unit) => Array.from({length: Math.floor((to - from) / step) + 1}, (_, i) => String(from + i * step) + (unit || ''));
const kib = value => digits(value / 1024);

function occupancyView(doc) {
  const by = object(doc.blocks_by), sweeps = object(doc.sweeps), limits = [['warps', 'warp slots'], ['slots', 'block slots'], ['regs', 'registers'], ['smem', 'shared memory']];
  if (Array.isArray(doc.sweep)) { // a sweep alone: the input whose value changes
    const rows = list(doc.sweep), key = ['regs', 'threads', 'smem'].find(name => new Set(rows.map(row => row[name])).size > 1) || 'regs';
    return [stepChart('Occupancy by ' + key, rows, key, undefined, key, show.plain)];
  }
  return [el('div', {class: 'cards'}, card('occupancy', 'occupancy', doc.occupancy, show.share), card('warps per SM', 'warps_per_sm', doc.warps_per_sm), card('blocks per SM', 'blocks_per_sm', doc.blocks_per_sm), words('limited by', doc.limiter),
      card('registers per block, as allocated', 'regs_per_block', doc.regs_per_block), card('shared bytes per block, as allocated', 'smem_per_block', doc.smem_per_block)),
    figure('Warp slots of one SM, with the number of the block that takes each', width => drawSlots(doc, width)),
    barChart('Blocks per SM that each resource alone would allow', limits.filter(([key]) => isNumber(by[key])).map(([key, name]) => ({name, values: [by[key]]})), ['blocks'], show.plain, 'blocks per SM', undefined,
      ['The least of them counts', ...limits.filter(([key]) => !isNumber(by[key])).map(([, name]) => name + ': no limit')].join('; ') + '.'),
    stepChart('By registers per thread', list(sweeps.regs), 'regs', doc.regs, 'registers per thread', show.plain),
    stepChart('By threads per block', list(sweeps.threads), 'threads', doc.threads, 'threads per block', show.plain),
    stepChart('By shared memory per block', list(sweeps.smem), 'smem', doc.smem, 'shared memory per block (KiB)', kib),
    list(doc.lifts).length ? table('Nearest changes that lift it', [['change', l => text(l.change)], ['threads', l => show.plain(l.threads), true], ['registers', l => show.plain(l.regs), true], ['shared bytes', l => show.plain(l.smem), true],
      ['occupancy', l => figureOf('lifted', l.occupancy, show.share), true], ['limited by', l => text(l.limiter)]], list(doc.lifts))
      : el('p', {class: 'soft'}, 'No single change of registers, shared memory or block size lifts it further.')];
}
