// The life of one block: how busy copies, tensor cores and CUDA cores are, and what its warps wait for, over time.

const UNIT_NAMES = {copy: 'copies in flight', tensor: 'tensor cores', cuda: 'CUDA cores'};
const STATE_NAMES = {issue: 'issues', copy: 'waits for copies', tensor: 'waits for tensor cores', warps: 'waits for other warps', memory: 'waits for loads or shared memory'};
const STATE_KEYS = Object.keys(STATE_NAMES);

const shares = value => Array.isArray(value) ? value.slice(0, 1000).map(number) : [];

const roleName = role => (number(role.warps) > 1 ? `warps ${role.first_warp}-${role.first_warp + role.warps - 1}` : `warp ${role.first_warp}`) + ': ' + text(role.does);

const stacksOf = states => {
  const parts = STATE_KEYS.map(key => shares(states[key]));
  return parts[0].map((_, i) => parts.map((part, s) => [s, part[i]]));
};

// A lane of columns; each is a stack of shares, from below.
function lane(stacks, left, width, top, height) {
  const each = width / stacks.length;
  return stacks.map((stack, i) => {
    let below = 0;
    return stack.map(([series, share]) => {
      const size = Math.min(Math.max(number(share), 0), 1) * height;
      below += size;
      return size >= 0.25 && block(series, left + i * each, top + height - below, each + 0.3, size);
    });
  });
}

function drawTimeline(timeline, width) {
  const units = list(timeline.units), roles = list(timeline.roles), step = 46, top = 4, height = top + (units.length + roles.length) * step + 22;
  const left = 2, room = width - 60;
  const rows = [
    ...units.map(u => ({name: UNIT_NAMES[u.unit] || text(u.unit), busy: u.busy, stacks: shares(u.shares).map(share => [[0, share]])})),
    ...roles.map(r => ({name: roleName(r), stacks: stacksOf(object(r.shares))}))];
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'life of a block'}, hatches(),
    rows.map((row, i) => svg('g', {'data-lane': row.name},
      svg('text', {x: left, y: top + i * step + 12}, row.name),
      svg('rect', {class: 'cell', x: left, y: top + i * step + 17, width: room, height: 24}),
      row.stacks.length && lane(row.stacks, left, room, top + i * step + 17, 24),
      isNumber(row.busy) && svg('text', {class: 'tick', x: left + room + 6, y: top + i * step + 33}, show.share(row.busy)))),
    svg('text', {class: 'tick', x: left, y: height - 6}, '0'),
    svg('text', {class: 'tick', x: left + room, y: height - 6, 'text-anchor': 'end'}, show.us(timeline.us)));
}

// linkOf: of a place in the source.
function timelineView(timeline, linkOf) {
  if (!isNumber(object(timeline).clocks) || !(timeline.clocks > 0)) return [];
  const waits = list(timeline.waits).slice(0, 12);
  return [el('h3', {}, 'Timeline of block ' + show.plain(timeline.block) + (timeline.cut ? ', its beginning' : '')),
    el('div', {class: 'cards'}, card('life of the block', 'timeline_us', timeline.us, show.us),
      list(timeline.units).map(u => card(UNIT_NAMES[u.unit] || text(u.unit), 'busy_' + text(u.unit), u.busy, show.share)),
      card('copies and tensor cores together', 'overlap', timeline.overlap, show.share), card('of the copies\' time hidden', 'hidden', timeline.hidden, show.share)),
    figure('What units and warps do over its life', width => drawTimeline(timeline, width), 'Warps, from below: ' + Object.values(STATE_NAMES).join(', ') + '.'),
    waits.length > 0 && table('What its warps wait for', [['for', w => STATE_NAMES[w.for] ? STATE_NAMES[w.for].replace('waits for ', '') : text(w.for)],
      ['line', w => w.file ? el('a', {href: linkOf(w)}, baseName(w.file) + ':' + w.line) : ''], ['times', w => show.plain(w.times), true], ['share of the warps\' time', w => show.share(w.share), true]], waits)];
}
