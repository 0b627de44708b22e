#!/usr/bin/env python3
"""The site: docs/ as linked HTML pages with search, the page, the ladders and a gallery of reports, all made here and now.
usage: scripts/make-site.py BUILD    writes BUILD/site; BUILD has sol, and page.html where it could be built"""
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import markdown_html  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SITE = os.path.join(BUILD, 'site')

SCALE = ('examples/scale.ptx --kernel column_scale --grid 8,256 --block 128 --arg out:f32[1024*256] --arg f32[1024*256] '
         '--arg f32[256] --arg 1024 --arg 256')
# Name, title, command.
GALLERY = [
    ('audit', 'The bill of a kernel', f'sol audit {SCALE} --device h200'),
    ('transpose', 'A tile with bank conflicts', 'sol audit examples/transpose.ptx --kernel transpose_tile --grid 8,8 --block 32,8 '
     '--arg out:f32[256*256] --arg f32[256*256] --arg 256 --device h200'),
    ('roofline', 'An operation under the roof, fused and unfused', 'sol roofline add_rmsnorm 8192x4096 --unfused --device h200'),
    ('devices', 'One operation on three GPUs', 'sol roofline gemm 4096x4096x4096 --device a100,h100,b200'),
    ('model', 'A whole model: one token for each of 32 sequences', 'sol model llama-3-8b --phase decode --batch 32 --device h200'),
    ('ladder', 'A ladder, predicted', 'sol ladder transpose --small'),
    ('bench', 'Sectors of the library', 'sol bench softmax --backend emu --shape 64x1024'),
    ('profile', 'What Nsight Compute measured', 'sol profile --import tests/data/ncu/h200-full-raw.csv'),
]


def sol(words):
    return subprocess.run([os.path.join(BUILD, 'sol'), *words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)


# ---- pages ----


def style():
    with open(os.path.join(ROOT, 'web/report.css'), encoding='utf-8') as file:
        css = file.read()
    dark = re.search(r':root\[data-theme="dark"\] (\{.*?\})', css, re.S).group(1)
    with open(os.path.join(ROOT, 'web/site/site.css'), encoding='utf-8') as file:
        return css + f'@media screen and (prefers-color-scheme: dark) {{ :root {dark} html {{ color-scheme: dark; }} }}\n' + file.read()


class Site:
    def __init__(self):
        self.css, self.sections, self.up = style(), [], ''
        self.has_page = os.path.exists(os.path.join(BUILD, 'page.html'))

    def menu(self, current):
        entries = [('index.html', 'Sol'), ('docs.html', 'Documentation'), ('ladders/index.html', 'Ladders'), ('gallery.html', 'Gallery')]
        if self.has_page:
            entries.append(('page.html', 'Try it'))
        links = ''.join(f'<a href="{self.up}{url}"{" aria-current=page" if url == current else ""}>{name}</a>' for url, name in entries)
        return (f'<nav class="site" aria-label="Site">{links}<form action="{self.up}search.html" role="search"><input name="q" '
                f'aria-label="Search" placeholder="search" size="14"> <button>Search</button></form></nav>')

    def write(self, path, title, body, script=''):
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' file:; base-uri 'none'" + ("; script-src 'unsafe-inline'" if script else '')
        self.up = '../' * path.count('/')
        text = (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
                f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
                f'<title>{html.escape(title)}</title>\n<style>\n{self.css}</style>\n</head>\n<body>\n{self.menu(path)}\n'
                f'<main class="doc">\n{body}\n</main>\n{script}</body>\n</html>\n')
        place = os.path.join(SITE, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, 'w', encoding='utf-8') as file:
            file.write(text)

    def document(self, source, target):
        """A Markdown file as a page; its sections can be found."""
        with open(os.path.join(ROOT, source), encoding='utf-8') as file:
            page = markdown_html.Page(file.read(), lambda link: self.follow(link, source, target))
        title = page.title or source
        for heading, anchor, text in page.sections:
            self.sections.append({'title': title, 'heading': heading, 'url': target + ('#' + anchor if anchor else ''), 'text': text})
        self.write(target, title, page.html)
        return title

    def follow(self, link, source, target):
        """Where a link of a Markdown file leads on the site; None: it is no file of the tree."""
        path, _, anchor = link.partition('#')
        if re.match(r'[a-z]+:', link) or not path:
            return link if not path or link.startswith('http') else None
        found = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if not os.path.isfile(os.path.join(ROOT, found)):
            return None
        there = page_of(found)
        if not there:  # not a page: the file itself goes with the site
            there = 'files/' + found
            os.makedirs(os.path.dirname(os.path.join(SITE, there)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, found), os.path.join(SITE, there))
        return os.path.relpath(there, os.path.dirname(target) or '.') + ('#' + anchor if anchor else '')


def page_of(path):
    if path in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'):
        return 'index.html' if path == 'README.md' else path.lower()[:-3] + '.html'
    match = re.fullmatch(r'docs/((?:ladders/)?)([\w-]+)\.md', path)
    return match and match.group(1) + ('index' if match.group(2) == 'README' else match.group(2)) + '.html'


def documents(site):
    pages = []
    for folder in ('.', 'docs', 'docs/ladders'):
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            source = os.path.normpath(os.path.join(folder, name))
            target = name.endswith('.md') and page_of(source)
            if target:
                pages.append((source, target, site.document(source, target)))
    reference = os.path.join(BUILD, 'reference')
    subprocess.run([sys.executable, os.path.join(ROOT, 'scripts/make-reference.py'), reference], check=True)
    for name in ('c', 'python'):
        target = f'reference-{name}.html'
        pages.append(('docs/', target, site.document(os.path.join(reference, name + '.md'), target)))
    items = ''.join(f'<li><a href="{target}">{html.escape(title)}</a></li>' for source, target, title in pages if source.startswith('docs/') and '/ladders/' not in source)
    site.write('docs.html', 'Documentation', f'<h1>Documentation</h1>\n<ul class="list">{items}</ul>')


# ---- gallery ----


def entry(site, name, title, command):
    """Runs the command; the report, the picture, and what the gallery shows of them."""
    words, report, picture = shlex.split(command)[1:], os.path.join(SITE, 'reports', name + '.html'), os.path.join(SITE, 'reports', name + '.svg')
    done = sol([*words, '--html', report, '--svg', picture])
    if done.returncode != 0:
        print(f'left out of the gallery: {name}: {done.stderr.decode().strip()}', file=sys.stderr)
        return ''
    with open(picture, encoding='utf-8') as file:
        shown = file.read()
    site.sections.append({'title': 'Gallery', 'heading': title, 'url': 'gallery.html#' + name, 'text': command})
    return f'<section id="{name}">\n<h2><a href="reports/{name}.html">{html.escape(title)}</a></h2>\n<pre><code>{html.escape(command)}</code></pre>\n<figure>{shown}</figure>\n</section>\n'


def stored(site):
    """Measurements that are kept in the tree, as reports."""
    items = []
    folder = os.path.join(ROOT, 'bench/results')
    for name in sorted(n for n in os.listdir(folder) if n.endswith('.json')):
        out = 'reports/' + name[:-5] + '.html'
        done = sol(['view', os.path.join('bench/results', name), '--out', os.path.join(SITE, out)])
        if done.returncode == 0:
            items.append(f'<li><a href="{out}">{html.escape(name)}</a></li>')
            site.sections.append({'title': 'Gallery', 'heading': name, 'url': out, 'text': 'measured'})
    return f'<h2 id="measured">Measured</h2>\n<p>Results in <code>bench/results</code>, by <code>sol view</code>.</p>\n<ul class="list">{"".join(items)}</ul>\n'


def gallery(site):
    os.makedirs(os.path.join(SITE, 'reports'), exist_ok=True)
    body = ''.join(entry(site, *item) for item in GALLERY) + stored(site)
    done = sol(['ladder', 'all', '--small', '--html', os.path.join(SITE, 'reports', 'ladders.html')])
    if done.returncode == 0:
        body += '<h2 id="ladders">Every ladder and sweep, on the emulator</h2>\n<p><a href="reports/ladders.html">All of them, with their code</a>: <code>sol ladder all --small</code></p>\n'
    site.write('gallery.html', 'Gallery', '<h1>Gallery</h1>\n<p>Each of these was made by its command when this site was built.</p>\n' + body)


def finish(site):
    if site.has_page:
        shutil.copy(os.path.join(BUILD, 'page.html'), os.path.join(SITE, 'page.html'))
    with open(os.path.join(ROOT, 'web/site/search.js'), encoding='utf-8') as file:
        script = file.read()
    index = json.dumps(site.sections, ensure_ascii=True).replace('<', '\\u003c')
    site.write('search.html', 'Search', '<h1>Search</h1>\n<p id="count" role="status">This page searches by its own script: allow it to run.</p>\n<ol id="found"></ol>',
               f'<script>\n{script}showResults({index});\n</script>\n')


def main():
    shutil.rmtree(SITE, ignore_errors=True)
    os.makedirs(SITE)
    site = Site()
    documents(site)
    gallery(site)
    finish(site)
    print(f'{SITE}/index.html: {sum(len(files) for _, _, files in os.walk(SITE))} files')


if __name__ == '__main__':
    main()
