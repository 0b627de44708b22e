'use strict';
// Elements, and numbers as people read them. Whatever comes from a file becomes text, never markup.

// As src/base/plain.c has it: characters that do not show, or that change the order of others.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const plain = text => String(text).replace(HIDDEN, c => '\\u' + c.codePointAt(0).toString(16).padStart(4, '0'));

const maker = space => (name, attributes, ...children) => {
  const node = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') node.addEventListener(key, value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(key, plain(value));
  }
  const real = children.flat(9).filter(child => child !== undefined && child !== null && child !== false);
  node.append(...real.map(child => child instanceof Node ? child : plain(child)));
  return node;
};
const el = maker('http://www.w3.org/1999/xhtml');
const svg = maker('http://www.w3.org/2000/svg');

const isNumber = value => typeof value === 'number' && Number.isFinite(value);
const number = value => isNumber(value) ? value : 0;
const list = value => Array.isArray(value) ? value.filter(item => item !== null && typeof item === 'object') : [];
const object = value => value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};
const text = value => value === undefined || value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
const baseName = path => text(path).replace(/^.*\//, '');

// Four significant digits, never an exponent for what a person would read out in full.
const digits = value => {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return String(value);
  if (size >= 1000 && size < 1e7) return value.toFixed(0);
  return String(Number(value.toPrecision(4)));
};
const scaled = (prefixes, step, unit) => value => {
  if (!isNumber(value)) return '-';
  let steps = 0, size = Math.abs(value);
  for (; steps < prefixes.length - 1 && size >= step; steps++) size /= step;
  return (digits(value / step ** steps) + ' ' + prefixes[steps].trim() + unit).trim();
};
const show = {
  plain: value => isNumber(value) ? digits(value) : '-',
  count: scaled(' kMBT', 1000, ''),
  bytes: scaled(' kMGTP', 1000, 'B'),
  rate: scaled(' kMGTPE', 1000, 'B/s'),
  flops: scaled(' kMGTPE', 1000, 'FLOP'),
  flopRate: scaled(' kMGTPE', 1000, 'FLOP/s'),
  share: value => isNumber(value) ? (value * 100).toFixed(1) + '%' : '-',
  times: value => isNumber(value) ? (value < 100 ? value.toFixed(2) : value.toFixed(0)) + 'x' : '-',
  us: value => {
    if (!isNumber(value)) return '-';
    const size = Math.abs(value);
    return size >= 1e7 ? digits(value / 1e6) + ' s' : size >= 1e4 ? digits(value / 1e3) + ' ms' : digits(value) + ' us';
  },
};

// A figure keeps the number it was made of, for those who read the page by program.
const figureOf = (key, value, format) =>
  el('span', {'data-key': key, 'data-value': isNumber(value) ? value : undefined}, (format || show.plain)(value));
const card = (label, key, value, format) => el('div', {class: 'card'}, el('b', {}, figureOf(key, value, format)), el('span', {}, label));
const words = (label, value) => el('div', {class: 'card'}, el('b', {}, text(value)), el('span', {}, label));

// columns: [title, row => cell, numeric]; a cell is text or a node.
function table(caption, columns, rows) {
  const head = el('tr', {}, columns.map(([title, , numeric]) => el('th', {scope: 'col', class: numeric && 'n'}, title)));
  const body = rows.map((row, i) => el('tr', {}, columns.map(([, cell, numeric]) => el('td', {class: numeric && 'n'}, cell(row, i)))));
  return el('div', {class: 'scroll'}, el('table', {}, caption && el('caption', {}, caption), el('thead', {}, head), el('tbody', {}, body)));
}

// A list of any length: rows of one height, made while they are near what is seen, and all of them for print.
const ROW = 24, CHUNK = 200;
function longList(kind, head, count, makeRow) {
  const holder = el('div', {class: 'long ' + kind, tabindex: 0, role: 'group', 'aria-label': kind + ', ' + count + ' rows'}, head);
  const fill = part => {
    if (part.childElementCount) return;
    for (let i = part.first; i < part.first + part.rows; i++) part.append(makeRow(i));
  };
  const watch = new IntersectionObserver(entries => {
    for (const {target, isIntersecting} of entries) {
      if (isIntersecting) fill(target);
      else if (!target.contains(document.activeElement)) target.replaceChildren();
    }
  }, {root: holder, rootMargin: '600px 0px'});
  const parts = [];
  for (let at = 0; at < count; at += CHUNK) {
    const rows = Math.min(CHUNK, count - at);
    const part = el('div', {style: 'height:' + rows * ROW + 'px'});
    Object.assign(part, {first: at, rows});
    parts.push(part);
    holder.append(part);
    watch.observe(part);
  }
  if (parts.length) fill(parts[0]);
  window.addEventListener('beforeprint', () => { if (holder.isConnected) parts.forEach(fill); });
  holder.goTo = i => {
    if (!parts.length) return null;
    const part = parts[Math.floor(i / CHUNK)];
    fill(part);
    holder.scrollTop = Math.max(0, i * ROW - 5 * ROW);
    return part.children[i % CHUNK];
  };
  return holder;
}

const meter = (share, label) => el('span', {class: 'meter'},
  el('i', {style: 'width:' + Math.max(0, Math.min(1, number(share))) * 100 + '%'}), el('span', {}, label));

// Everything there is, as a tree that is built where it is opened.
function tree(name, value) {
  if (value === null || typeof value !== 'object') return el('div', {}, el('span', {class: 'soft'}, name + ': '), el('code', {}, value === null ? '-' : text(value)));
  const members = Object.entries(value);
  const node = el('details', {}, el('summary', {}, name + (Array.isArray(value) ? ' [' + members.length + ']' : '')));
  node.addEventListener('toggle', () => {
    if (!node.open || node.childElementCount > 1) return;
    const most = 2000;
    node.append(...members.slice(0, most).map(([key, member]) => tree(key, member)));
    if (members.length > most) node.append(el('p', {class: 'soft'}, members.length - most + ' more are not shown.'));
  });
  return node;
}
