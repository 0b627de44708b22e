// What crosses memory: each kernel beside DRAM, an arrow for what it reads and one for what it writes, as thick as its
// bytes are many.

const TRIP = 58;

function drawTrips(kernels, most, width) {
  const memory = 56, from = memory + 4, to = Math.round(width * 0.56), height = kernels.length * TRIP + 6;
  const arrow = (bytes, y, left, word) => {
    if (!(bytes > 0)) return null;
    const thick = Math.max(1.2, bytes / most * 12), tip = left ? from : to, tail = left ? to : from, back = tip + (left ? 9 : -9);
    return svg('g', {'data-trip': word, 'data-bytes': bytes},
      svg('line', {x1: tail, x2: back, y1: y, y2: y, class: 'axis', 'stroke-width': thick, style: 'stroke-width:' + thick}),
      svg('path', {d: `M${back},${y - 8}L${tip},${y}L${back},${y + 8}Z`, class: 's0'}),
      svg('text', {class: 'tick', x: (from + to) / 2, y: y - 9, 'text-anchor': 'middle'}, word + ' ' + show.bytes(bytes)));
  };
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'trips through memory'},
    svg('rect', {class: 'cell', x: 1, y: 1, width: memory, height: height - 4}), svg('text', {x: 10, y: height / 2 + 4}, 'DRAM'),
    kernels.map((k, i) => svg('g', {}, svg('rect', {class: 'cell', x: to + 4, y: i * TRIP + 2, width: width - to - 6, height: TRIP - 5}),
      svg('title', {}, text(k.name)),
      svg('text', {x: to + 12, y: i * TRIP + TRIP / 2 + 4}, shorten(text(k.name), (width - to - 18) / 7)),
      arrow(number(k.bytes_read), i * TRIP + 20, false, 'reads'), arrow(number(k.bytes_written), i * TRIP + 47, true, 'writes'))));
}
const shorten = (name, room) => name.length > room ? name.slice(0, Math.max(1, Math.floor(room) - 3)) + '...' : name;

// The kernels of `unfused` against the one of the document.
function tripsView(doc) {
  const unfused = object(doc.unfused), kernels = list(unfused.kernels).slice(0, 100);
  if (!kernels.length) return [];
  const fused = [{name: text(doc.work), bytes_read: number(doc.bytes_read), bytes_written: number(doc.bytes_written)}];
  const most = Math.max(...[...kernels, ...fused].flatMap(k => [number(k.bytes_read), number(k.bytes_written)]), 1);
  const told = (bytes, trips, us) => `${show.bytes(bytes)} in ${show.plain(trips)} trips of a whole tensor, ${show.us(us)}`;
  return [el('h3', {}, 'Fused against unfused: trips through memory'),
    figure(`Unfused, ${kernels.length} kernels: ${told(unfused.bytes, unfused.trips, unfused.time_us)}`, width => drawTrips(kernels, most, width)),
    fused[0].bytes_read + fused[0].bytes_written > 0 && figure(`Fused, one kernel: ${told(doc.bytes, unfused.fused_trips, doc.time_us)}`, width => drawTrips(fused, most, width)),
    el('p', {}, 'One kernel is ', figureOf('gain', unfused.gain, show.times), ' as fast.')];
}
