// Sections that hold every word asked for, those whose headings do first.

const wordsOf = text => text.toLowerCase().split(/[^a-z0-9_.-]+/).filter(Boolean);
const countOf = (text, word) => text.toLowerCase().split(word).length - 1;

function search(sections, question) {
  const words = wordsOf(question);
  const score = s => words.reduce((sum, w) => sum + 20 * countOf(s.title, w) + 10 * countOf(s.heading, w) + Math.min(5, countOf(s.text, w)), 0);
  const fits = s => words.every(w => countOf(s.title + ' ' + s.heading + ' ' + s.text, w) > 0);
  return words.length ? sections.filter(fits).sort((a, b) => score(b) - score(a)).slice(0, 60) : [];
}

// The text around the first word, the words marked.
function excerpt(text, words) {
  const at = Math.max(0, Math.min(...words.map(w => text.toLowerCase().indexOf(w)).filter(i => i >= 0), 1e9) - 60);
  const out = document.createElement('p'), pattern = new RegExp('(' + words.map(w => w.replace(/[.-]/g, '\\$&')).join('|') + ')', 'gi');
  text.slice(at < 1e8 ? at : 0).slice(0, 240).split(pattern).forEach((piece, i) => {
    const node = document.createElement(i % 2 ? 'mark' : 'span');
    node.textContent = piece;
    out.append(node);
  });
  return out;
}

function showResults(sections) {
  const question = new URLSearchParams(location.search).get('q') || '', found = search(sections, question);
  document.querySelector('[name=q]').value = question;
  document.getElementById('found').replaceChildren(...found.map(s => {
    const item = document.createElement('li'), link = document.createElement('a');
    link.href = s.url;
    link.textContent = s.heading && s.heading !== s.title ? s.title + ': ' + s.heading : s.title;
    item.append(link, excerpt(s.text, wordsOf(question)));
    return item;
  }));
  document.getElementById('count').textContent = question ? found.length + (found.length === 1 ? ' section' : ' sections') : 'Type words to look for.';
}
