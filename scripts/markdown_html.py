"""Markdown as docs/ has it, as HTML: headings, paragraphs, lists, tables, fenced code, quotes, links, pictures, code,
bold and italics. Whatever looks like HTML in it is shown as text."""
import html
import re

FENCE, HEADING, ITEM, RULE = re.compile(r'\s*(```+)'), re.compile(r'(#{1,6}) +(.*)'), re.compile(r'( *)([-*]|\d+\.) +(.*)'), re.compile(r'\|? *:?-+:? *(\| *:?-+:? *)*\|?$')


def slug(text):
    return re.sub(r'[^a-z0-9 _-]', '', text.lower()).replace(' ', '-')


def plain(text):
    """What of a line a reader sees, for search and titles."""
    text = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', text)
    return re.sub(r'[`*]', '', text)


class Page:
    """html; title, the first heading; sections [(heading, anchor, text)]. follow(link) says where a link leads, or None."""
    def __init__(self, text, follow):
        self.lines, self.at, self.follow = text.split('\n'), 0, follow
        self.title, self.sections, self.anchors = '', [], set()
        self.html = '\n'.join(self.blocks())

    def line(self):
        return self.lines[self.at] if self.at < len(self.lines) else None

    def told(self, text):
        if not self.sections:
            self.sections.append(('', '', ''))
        heading, anchor, so_far = self.sections[-1]
        self.sections[-1] = (heading, anchor, (so_far + ' ' + plain(text)).strip())

    def blocks(self):
        out = []
        while self.line() is not None:
            line = self.line()
            if not line.strip():
                self.at += 1
            elif FENCE.match(line):
                out.append(self.code())
            elif line.startswith('    '):
                out.append(self.indented())
            elif HEADING.match(line):
                out.append(self.heading())
            elif line.startswith('|') and RULE.match((self.lines + [''])[self.at + 1]):
                out.append(self.table())
            elif ITEM.match(line):
                out.append(self.items(len(ITEM.match(line).group(1))))
            else:
                out.append(self.paragraph())
        return out

    def code(self):
        fence, kept = FENCE.match(self.line()).group(1), []
        indent = len(self.line()) - len(self.line().lstrip())
        self.at += 1
        while self.line() is not None and not self.line().strip().startswith(fence):
            kept.append(self.line()[indent:])
            self.at += 1
        self.at += 1
        self.told(' '.join(kept))
        return '<pre tabindex="0"><code>' + html.escape('\n'.join(kept)) + '</code></pre>'

    def indented(self):
        kept = []
        while self.line() and self.line().startswith('    '):
            kept.append(self.line()[4:])
            self.at += 1
        self.told(' '.join(kept))
        return '<pre tabindex="0"><code>' + html.escape('\n'.join(kept)) + '</code></pre>'

    def heading(self):
        marks, text = HEADING.match(self.line()).groups()
        self.at += 1
        anchor = slug(plain(text))
        while anchor in self.anchors:
            anchor += '-1'
        self.anchors.add(anchor)
        self.title = self.title or plain(text)
        self.sections.append((plain(text), anchor, ''))
        return f'<h{len(marks)} id="{anchor}">{self.inline(text)}</h{len(marks)}>'

    def cells(self):
        row = re.sub(r'`[^`]*`', lambda m: m.group().replace('|', '\0'), self.line().strip()).replace('\\|', '\0')
        self.told(row.replace('|', ' ').replace('\0', '|'))
        self.at += 1
        return [self.inline(cell.strip().replace('\0', '|')) for cell in row.strip('|').split('|')]

    def table(self):
        head = self.cells()
        align = [' class="n"' if cell.strip().endswith(':') else '' for cell in self.line().strip('| ').split('|')]
        self.at += 1
        rows = []
        while self.line() is not None and self.line().startswith('|'):
            rows.append(self.cells())
        row = lambda cells, tag: '<tr>' + ''.join(f'<{tag}{align[i] if i < len(align) else ""}>{cell}</{tag}>' for i, cell in enumerate(cells)) + '</tr>'
        return '<table tabindex="0"><thead>' + row(head, 'th') + '</thead><tbody>' + ''.join(row(r, 'td') for r in rows) + '</tbody></table>'

    def items(self, indent):
        """Items at this indent; what is further in belongs to the item before it."""
        kind = 'ul' if ITEM.match(self.line()).group(2) in '-*' else 'ol'
        out = []
        while self.line() is not None:
            match = ITEM.match(self.line())
            deep = len(self.line()) - len(self.line().lstrip())
            if match and deep == indent:
                out.append(self.text(match.group(3)))
            elif match and deep > indent:
                out[-1] += self.items(deep)
            elif FENCE.match(self.line()) and deep > indent:
                out[-1] += self.code()
            elif not self.line().strip() and self.more_follows(indent):
                self.at += 1
            elif self.line().strip() and deep > indent:
                out[-1] += '<p>' + self.text(self.line().strip()) + '</p>'
            else:
                break
        return f'<{kind}>' + ''.join(f'<li>{item}</li>' for item in out) + f'</{kind}>'

    def more_follows(self, indent):
        after = next((line for line in self.lines[self.at:] if line.strip()), '')
        deep = len(after) - len(after.lstrip())
        return deep > indent or (deep == indent and ITEM.match(after))

    def text(self, first):
        """The lines of a paragraph, joined; `first` is what is left of the line there."""
        kept = [first]
        self.at += 1
        while self.line() and self.line().strip() and not (FENCE.match(self.line()) or HEADING.match(self.line()) or ITEM.match(self.line()) or self.line().startswith('|')):
            kept.append(self.line().strip())
            self.at += 1
        self.told(' '.join(kept))
        return self.inline('\n'.join(kept))

    def paragraph(self):
        quoted = self.line().startswith('> ')
        body = self.text(self.line().strip())
        return f'<blockquote>{body.replace(html.escape("> "), "")}</blockquote>' if quoted else f'<p>{body}</p>'

    def inline(self, text):
        kept = []  # code and links, which nothing below may touch

        def keep(made):
            kept.append(made)
            return f'\0{len(kept) - 1}\0'
        text = re.sub(r'(`+)(.+?)\1(?!`)', lambda m: keep('<code>' + html.escape(m.group(2).strip()) + '</code>'), text, flags=re.S)
        text = re.sub(r'(!?)\[([^\]]*)\]\(([^)\s]+)\)', lambda m: self.link(m, keep), text)
        text = html.escape(text)
        text = re.sub(r'\*\*(.+?)\*\*', r'<b>\1</b>', text, flags=re.S)
        text = re.sub(r'(?<![\w*])\*(?=\S)([^*]+?)\*(?![\w*])', r'<i>\1</i>', text, flags=re.S)
        while '\0' in text:
            text = re.sub('\0(\\d+)\0', lambda m: kept[int(m.group(1))], text)
        return text

    def link(self, match, keep):
        picture, words, url = match.groups()
        there = self.follow(url)
        if there is None:
            return words
        if picture:
            return keep(f'<img src="{html.escape(there)}" alt="{html.escape(words)}">')
        return keep(f'<a href="{html.escape(there)}">') + words + keep('</a>')
