// Charts as SVG, drawn at the width there is, so that text keeps its size. Axes carry their units; what colour
// tells is also told by a pattern, a number or a text.

// A picture as a file of its own: the styles go with it, in the colours that are shown.
function svgFile(picture) {
  const copy = picture.cloneNode(true), theme = document.documentElement.dataset.theme;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  if (theme) copy.setAttribute('data-theme', theme);
  copy.prepend(svg('style', {}), svg('rect', {width: '100%', height: '100%', style: 'fill:var(--paper)'}));
  copy.firstChild.textContent = document.querySelector('style').textContent;
  return new XMLSerializer().serializeToString(copy);
}

function saveSvg(holder, title) {
  const link = el('a', {download: title.replace(/[^A-Za-z0-9]+/g, '-').slice(0, 60) + '.svg'});
  link.href = URL.createObjectURL(new Blob([svgFile(holder.querySelector('svg'))], {type: 'image/svg+xml'}));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function figure(title, draw, note) {
  const holder = el('div', {class: 'canvas'});
  const save = el('button', {type: 'button', class: 'save', 'aria-label': 'Save as SVG: ' + title, click: () => saveSvg(holder, title)}, 'SVG');
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(Math.min(960, Math.max(300, holder.clientWidth)));
    if (now === width) return;
    width = now;
    holder.replaceChildren(draw(now));
  }).observe(holder);
  return el('figure', {}, el('figcaption', {}, title, ' ', save), note && el('p', {class: 'soft'}, note), holder);
}

const logScale = (least, most, from, to) => {
  const a = Math.log10(least), b = Math.log10(most);
  return value => from + (Math.log10(Math.min(Math.max(value, least), most)) - a) / (b - a || 1) * (to - from);
};
// Powers of ten that enclose the values.
const decades = values => {
  const fine = values.filter(value => isNumber(value) && value > 0);
  const least = 10 ** Math.floor(Math.log10(Math.min(...fine, Infinity)));
  const most = 10 ** Math.ceil(Math.log10(Math.max(...fine, 0)));
  if (!isNumber(least) || !isNumber(most)) return [1, 10];
  return least < most ? [least, most] : [least, least * 10];
};
const powers = (least, most, room) => {
  const a = Math.round(Math.log10(least)), b = Math.round(Math.log10(most));
  const step = Math.max(1, Math.ceil((b - a) / Math.max(2, room)));
  return Array.from({length: Math.floor((b - a) / step) + 1}, (_, i) => 10 ** (a + i * step));
};

// Grid, ticks and titles of two logarithmic axes.
function axes(box, x, y, titles) {
  const {left, right, top, bottom} = box;
  return svg('g', {},
    x.ticks.map(value => [
      svg('line', {class: 'grid', x1: x.at(value), x2: x.at(value), y1: top, y2: bottom}),
      svg('text', {class: 'tick', x: x.at(value), y: bottom + 15, 'text-anchor': 'middle'}, x.show(value))]),
    y.ticks.map(value => [
      svg('line', {class: 'grid', x1: left, x2: right, y1: y.at(value), y2: y.at(value)}),
      svg('text', {class: 'tick', x: left - 5, y: y.at(value) + 4, 'text-anchor': 'end'}, y.show(value))]),
    svg('path', {class: 'axis', fill: 'none', d: `M${left},${top}V${bottom}H${right}`}),
    svg('text', {x: (left + right) / 2, y: bottom + 33, 'text-anchor': 'middle'}, titles[0]),
    svg('text', {x: left, y: top - 8, 'text-anchor': 'start'}, titles[1]));
}

// Puts labels where no other is: to the right, the left, above or below; else nowhere.
function labeller(box) {
  const taken = [];
  const put = (x, y, label) => {
    const width = label.length * 7 + 2;
    for (const [dx, dy] of [[8, 4], [-8 - width, 4], [-width / 2, -9], [-width / 2, 19]]) {
      const a = {x1: x + dx, x2: x + dx + width, y1: y + dy - 11, y2: y + dy + 2};
      if (a.x1 < box.left || a.x2 > box.right || a.y1 < box.top - 4 || a.y2 > box.bottom) continue;
      if (taken.some(b => a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2)) continue;
      taken.push(a);
      return svg('text', {x: a.x1, y: y + dy}, label);
    }
    return null;
  };
  put.keep = (x, y, label) => { taken.push({x1: x, x2: x + label.length * 7, y1: y - 11, y2: y + 2}); };
  return put;
}

// points: {name, group, flops, bytes, us, bareUs}: bareUs leaves the launches out. roofs: {memory: [[name, B/s]],
// peak: [[name, FLOP/s]]}. Under `bytes` the roof is flat up to the ridge, and work without FLOPs has a place as well;
// `launch` sets the cost of launches against the time without them. move: {start(), by(x, y)}: a point can be dragged, by
// so many powers of ten to the right and upwards.
const ROOFLINE_VIEWS = [['bytes', 'bytes a second'], ['flops', 'FLOPs a second'], ['launch', 'launch cost']];
function rooflineChart(points, roofs, title, move) {
  const fine = points.filter(p => p.us > 0 && (p.bytes > 0 || p.flops > 0));
  const memory = roofs.memory.filter(([, rate]) => rate > 0), peak = roofs.peak.filter(([, rate]) => rate > 0);
  if (!memory.length) return null;
  const launched = fine.filter(p => p.bareUs > 0 && p.us > p.bareUs);
  const views = ROOFLINE_VIEWS.filter(([by]) => by !== 'launch' || launched.length);
  let by = views.some(([name]) => name === chosenView()) ? chosenView() : fine.some(p => !p.flops) ? 'bytes' : 'flops';
  const note = el('p', {class: 'note soft', 'aria-live': 'polite'});
  const body = el('div');
  const redraw = () => body.replaceChildren(by === 'launch'
    ? figure(title + ': the cost of launches', width => drawLaunches(launched, width, note), 'A point above the solid line spends more time on launches than in kernels. Numbers are those of the table.')
    : figure(title, width => drawRoofline(fine, memory, peak, by === 'bytes', width, note, move), 'A filled point is the time with its launches, the hollow one above it without. Numbers are those of the table.'));
  const buttons = views.map(([name, label]) => el('button', {type: 'button', 'data-view': name, click: () => { by = name; keepView(by); redraw(); press(); }}, label));
  const press = () => buttons.forEach(button => button.setAttribute('aria-pressed', button.dataset.view === by));
  redraw();
  press();
  return el('section', {class: 'roofline'}, body, el('div', {}, buttons.flatMap(button => [button, ' '])), note);
}

const tellPoint = p => plain(`${p.label}. ${p.name}: ${show.flops(p.flops)}, ${show.bytes(p.bytes)}, ${show.us(p.us)}, of that launches ${show.us(p.us - p.bareUs)}; ${show.plain(p.flops / p.bytes)} FLOP/byte, ${show.rate(p.bytes / p.us * 1e6)}, ${show.flopRate(p.flops / p.us * 1e6)}.`);
// Attributes of a point that tells its figures where it is pointed at, or reached by keys.
const telling = (p, i, note) => {
  const tell = () => { note.textContent = tellPoint(p); };
  return {class: 'd' + number(p.group) % 3, tabindex: i < 40 ? 0 : undefined, role: 'img', 'aria-label': p.label + '. ' + p.name + ', ' + show.us(p.us), 'data-point': p.label, mouseenter: tell, focus: tell, click: tell};
};

function drawLaunches(points, width, note) {
  const height = Math.round(Math.min(440, Math.max(300, width * 0.6))), box = {left: 74, right: width - 24, top: 26, bottom: height - 42};
  const [x1, x2] = decades(points.map(p => p.bareUs)), [y1, y2] = decades([...points.map(p => p.us - p.bareUs), x1, Math.min(x2, 1e3)]);
  const x = {at: logScale(x1, x2, box.left, box.right), ticks: powers(x1, x2, width / 70), show: show.us};
  const y = {at: logScale(y1, y2, box.bottom, box.top), ticks: powers(y1, y2, height / 40), show: show.us};
  const put = labeller(box);
  // Where launches are `share` of the whole time.
  const line = (share, name, label) => {
    const factor = share / (1 - share), from = Math.max(x1, y1 / factor), to = Math.min(x2, y2 / factor);
    const px = x.at(from) + 10, py = y.at(from * factor), rise = (y.at(from * factor) - y.at(to * factor)) / (x.at(to) - x.at(from));
    return from < to && [svg('line', {class: name, x1: x.at(from), y1: y.at(from * factor), x2: x.at(to), y2: y.at(to * factor)}),
      svg('text', {x: px, y: py - 10 * rise - 6, transform: `rotate(${-Math.atan(rise) * 180 / Math.PI} ${px} ${py - 10 * rise})`}, label)];
  };
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'cost of launches'},
    axes(box, x, y, ['time without launches (us)', 'cost of launches (us)']), line(0.5, 'roof', 'half of the time'), line(0.1, 'roof lower', 'a tenth'),
    points.map((p, i) => svg('g', telling(p, i, note), svg('title', {}, p.name), svg('circle', {class: 'point', cx: x.at(p.bareUs), cy: y.at(p.us - p.bareUs), r: 5}), i < 40 && put(x.at(p.bareUs), y.at(p.us - p.bareUs), p.label))));
}

// Dragging, by pointer and by arrow keys; the listeners are the window's, since the picture is drawn anew meanwhile.
function dragging(move, perX, perY) {
  if (!move) return {};
  const keys = {ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1]};
  return {
    pointerdown: event => {
      event.preventDefault();
      move.start();
      const by = e => move.by((e.clientX - event.clientX) / perX, (event.clientY - e.clientY) / perY);
      const end = () => { window.removeEventListener('pointermove', by); window.removeEventListener('pointerup', end); window.removeEventListener('pointercancel', end); };
      window.addEventListener('pointermove', by);
      window.addEventListener('pointerup', end);
      window.addEventListener('pointercancel', end);
    },
    keydown: event => {
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      move.start();
      move.by(...keys[event.key]);
    },
  };
}

function drawRoofline(points, memory, peak, bytes, width, note, move) {
  const height = Math.round(Math.min(440, Math.max(300, width * 0.6)));
  const box = {left: 74, right: width - 24, top: 26, bottom: height - 42};
  const ridge = peak.length ? peak[0][1] / memory[0][1] : 1;
  const [x1, x2] = decades([...points.map(p => p.flops / p.bytes), ridge, ridge * 8, ridge / 50, ...peak.map(([, f]) => f / memory[0][1])]);
  const roof = (rate, top, x) => bytes ? Math.min(rate, top / x) : Math.min(rate * x, top);
  const rateOf = (p, us) => (bytes ? p.bytes : p.flops) / us * 1e6;
  const best = peak.length ? peak[peak.length - 1][1] : Infinity;
  const levels = memory.map(([, rate]) => roof(rate, best, bytes ? x1 : x2));
  const [y1, y2] = decades([...points.map(p => rateOf(p, p.us)), ...levels.map(level => level * 1.6), roof(memory[0][1], peak.length ? peak[0][1] : Infinity, x2), roof(memory[0][1], best, x1)]);
  const x = {at: logScale(x1, x2, box.left, box.right), ticks: powers(x1, x2, width / 70), show: digits};
  const y = {at: logScale(y1, y2, box.bottom, box.top), ticks: powers(y1, y2, height / 40), show: bytes ? show.rate : show.flopRate};
  const line = (rate, top, name) => {
    const corner = Math.min(Math.max(top / rate, x1), x2);
    const path = [x1, corner, x2].map((v, i) => (i ? 'L' : 'M') + x.at(v).toFixed(1) + ',' + y.at(roof(rate, top, v)).toFixed(1)).join('');
    return {path, name, rate, top};
  };
  const put = labeller(box);
  const lines = [
    ...memory.map(([name, rate], i) => ({...line(rate, best, name + ' ' + show.rate(rate)), lower: i > 0})),
    ...peak.slice(0, -1).map(([name, top]) => ({...line(memory[0][1], top, name + ' ' + show.flopRate(top)), lower: true}))];
  const roofs = lines.map(l => svg('path', {class: l.lower ? 'roof lower' : 'roof', d: l.path}));
  const names = [
    ...memory.map(([name, rate]) => { // along the line, where it begins
      const at = bytes ? x1 : Math.max(x1, y1 / rate);
      const px = x.at(at) + 10, py = y.at(roof(rate, best, at));
      const rise = bytes ? 0 : (y.at(y1) - y.at(y1 * 10)) / (x.at(x1 * 10) - x.at(x1));
      if (!rise) put.keep(px, py - 5, name + ' ' + show.rate(rate));
      return svg('text', {x: px, y: py - 10 * rise - 5, transform: rise ? `rotate(${-Math.atan(rise) * 180 / Math.PI} ${px} ${py - 10 * rise})` : undefined}, name + ' ' + show.rate(rate));
    }),
    ...peak.map(([name, top]) => {
      const at = x2 / 1.02, label = name + ' ' + show.flopRate(top);
      return put(x.at(at) - label.length * 7 - 10, y.at(roof(memory[0][1], top, at)) + (bytes ? 14 : -9), label);
    })];
  const marks = points.map((p, i) => {
    const px = x.at(p.bytes > 0 ? p.flops / p.bytes : x2), py = y.at(rateOf(p, p.us)), bare = y.at(rateOf(p, p.bareUs > 0 ? p.bareUs : p.us));
    const far = bare < py - 4;
    return svg('g', {...telling(p, i, note), ...dragging(move, (box.right - box.left) / Math.log10(x2 / x1), (box.bottom - box.top) / Math.log10(y2 / y1)), style: move ? 'cursor:grab;touch-action:none' : undefined},
      svg('title', {}, p.name),
      far && svg('line', {class: 'drop', x1: px, x2: px, y1: py, y2: bare}),
      far && svg('circle', {class: 'hollow', cx: px, cy: bare, r: 4}),
      svg('circle', {class: 'point', cx: px, cy: py, r: move ? 7 : 5}),
      i < 40 && put(px, py, p.label));
  });
  return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'roofline'},
    axes(box, x, y, ['intensity (FLOP/byte)', bytes ? 'rate (B/s)' : 'rate (FLOP/s)']), roofs, marks, names);
}

// Predicted against measured: on the line is right; dashed, a quarter off.
function scatterChart(title, points, format, titles) {
  const fine = points.filter(p => p.x > 0 && p.y > 0);
  if (fine.length < 2) return null;
  const note = el('p', {class: 'note soft', 'aria-live': 'polite'});
  const picture = figure(title, width => {
    const side = Math.min(width, 520), height = side;
    const box = {left: 74, right: side - 24, top: 26, bottom: height - 42};
    const [least, most] = decades(fine.flatMap(p => [p.x, p.y]));
    const x = {at: logScale(least, most, box.left, box.right), ticks: powers(least, most, side / 70), show: format};
    const y = {at: logScale(least, most, box.bottom, box.top), ticks: x.ticks, show: format};
    const line = (factor, name) => svg('line', {class: name, x1: x.at(least * Math.max(1, 1 / factor)), y1: y.at(least * Math.max(1, factor)),
      x2: x.at(most * Math.min(1, 1 / factor)), y2: y.at(most * Math.min(1, factor))});
    return svg('svg', {width: side, height, viewBox: `0 0 ${side} ${height}`, role: 'group', 'aria-label': title},
      axes(box, x, y, titles), line(1, 'roof'), line(1.25, 'drop'), line(0.8, 'drop'),
      fine.map((p, i) => svg('circle', {class: 'point', cx: x.at(p.x), cy: y.at(p.y), r: 4, tabindex: i < 60 ? 0 : undefined, 'data-point': p.name,
        mouseenter: () => tell(p), focus: () => tell(p)}, svg('title', {}, p.name))));
  }, 'Dashed: a quarter more, a quarter less.');
  const tell = p => { note.textContent = plain(`${p.name}: ${titles[0]} ${format(p.x)}, ${titles[1]} ${format(p.y)}, ${show.times(p.y / p.x)}.`); };
  return el('section', {class: 'scatter'}, picture, note);
}

// Patterns by which series are told apart without colour.
const hatches = () => svg('defs', {}, ['M0,6L6,0', 'M0,0L6,6', 'M0,3H6', 'M3,0V6', 'M0,0L6,6M0,6L6,0'].map((d, i) =>
  svg('pattern', {id: 'hatch' + (i + 1), width: 6, height: 6, patternUnits: 'userSpaceOnUse'}, svg('path', {d, stroke: 'var(--paper)', 'stroke-width': 1.2, fill: 'none'}))));
const block = (series, x, y, width, height) => [
  svg('rect', {class: 's' + series % 6, x, y, width: Math.max(0, width), height}),
  series % 6 > 0 && svg('rect', {fill: `url(#hatch${series % 6})`, x, y, width: Math.max(0, width), height})];

// rows: {name, values}; one bar for each series, the numbers beside them. mark: {at, name}, a line across.
function barChart(title, rows, series, format, axis, mark, note) {
  return figure(title, width => {
    const left = 8, right = width - 76, each = 15, step = 20 + each * series.length + 6;
    const top = 24, height = top + rows.length * step + 40, bottom = height - 40;
    const most = Math.max(...rows.flatMap(row => row.values.map(number)), mark ? mark.at : 0) || 1;
    const at = value => left + number(value) / most * (right - left);
    const step10 = 10 ** Math.floor(Math.log10(most / 4)), unit = step10 * [1, 2, 5, 10].find(n => n * step10 * 5 >= most);
    const ticks = Array.from({length: Math.floor(most / unit * 1.0001) + 1}, (_, i) => Number((i * unit).toPrecision(6)));
    return svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': title}, hatches(),
      ticks.map(value => [
        svg('line', {class: 'grid', x1: at(value), x2: at(value), y1: top, y2: bottom}),
        svg('text', {class: 'tick', x: at(value), y: bottom + 14, 'text-anchor': value ? 'middle' : 'start'}, format(value))]),
      svg('text', {x: left, y: bottom + 32}, axis),
      rows.map((row, i) => svg('g', {'data-bar': row.name},
        svg('text', {x: left, y: top + i * step + 14}, row.name),
        row.values.map((value, s) => isNumber(value) && [
          block(s, left, top + i * step + 20 + s * each, at(value) - left, each - 3),
          svg('text', {class: 'tick', x: at(value) + 5, y: top + i * step + 20 + s * each + 10}, format(value))]))),
      mark && svg('line', {class: 'mark', x1: at(mark.at), x2: at(mark.at), y1: top, y2: bottom}),
      mark && svg('text', {x: at(mark.at), y: top - 8, 'text-anchor': at(mark.at) > 80 ? 'end' : 'start'}, mark.name));
  }, series.length > 1 ? 'From above: ' + series.join(', ') + '.' : note);
}

// parts: {name, value}; one bar of all of them, with a table that names each.
function stackChart(title, parts, format, key) {
  const fine = parts.filter(part => number(part.value) > 0);
  const sum = fine.reduce((total, part) => total + part.value, 0);
  if (!(sum > 0)) return null;
  const picture = figure(title, width => {
    let from = 0;
    return svg('svg', {width, height: 40, viewBox: `0 0 ${width} 40`, role: 'img', 'aria-label': title}, hatches(),
      fine.map((part, i) => {
        const x = from / sum * width, size = part.value / sum * width;
        from += part.value;
        return svg('g', {}, svg('title', {}, part.name), block(i, x, 0, Math.max(size - 1, 0.5), 24),
          size > 16 && svg('text', {x: x + size / 2, y: 37, 'text-anchor': 'middle'}, i + 1));
      }));
  });
  return el('section', {}, picture, table(null, [
    ['', (_, i) => i + 1, true], ['part', part => part.name],
    ['amount', part => figureOf(key || 'part', part.value, format), true], ['share', part => show.share(part.value / sum), true]], fine));
}
