#!/usr/bin/env python3
"""The reference of the interfaces, as Markdown: c.md from the comments of include/sol, python.md from the docstrings of python/sol.
usage: scripts/make-reference.py FOLDER
Headers are laid out by clang-format in paragraphs, each a comment and what it is about: so is the page. Python's modules are
parsed, not imported: the page does not depend on what is installed."""
import ast
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


# ---- C ----


def prose(lines):
    return ' '.join(re.sub(r'^// ?', '', line) for line in lines).strip()


def paragraphs(text):
    """(comment, code) of each part of a header after its opening comment."""
    text = re.sub(r'#ifdef __cplusplus\n.*?#endif\n', '', text[text.index('\n#ifndef SOL_') :], flags=re.S)
    text = re.sub(r'^\n#ifndef .*\n#define .*\n|^#include.*\n|\n#endif\s*$', '', text, flags=re.M)
    for part in re.split(r'\n\s*\n', text):
        lines = part.strip('\n').splitlines()
        count = next((i for i, line in enumerate(lines) if not line.startswith('//')), len(lines))
        if lines:
            yield prose(lines[:count]), '\n'.join(lines[count:])


def without_api(code):
    """Without SOL_API, the lines that go on below it moved along."""
    return re.sub(r'^SOL_API .*(?:\n {8,}.*)*', lambda found: found.group(0)[8:].replace('\n        ', '\n'), code, flags=re.M)


def header(path):
    text = read(path)
    page = [f'## `sol/{os.path.basename(path)}`', '', prose(text[: text.index('\n#ifndef SOL_')].splitlines()), '']
    for comment, code in paragraphs(text):
        page += [comment, ''] if comment else []
        page += ['```c', without_api(code), '```', ''] if code else []
    return page


def c_page():
    page = ['# C interface', '', 'Made by `make reference` from the headers. `sol/sol.h` includes all but `sol/dlpack.h`.', '']
    for path in sorted(glob.glob(os.path.join(ROOT, 'include/sol/*.h'))):
        page += header(path) if os.path.basename(path) != 'sol.h' else []
    return page


# ---- Python ----


def signature(node):
    if isinstance(node, ast.ClassDef):
        bases = ', '.join(map(ast.unparse, node.bases))
        return f'class {node.name}({bases})' if bases else f'class {node.name}'
    returns = f' -> {ast.unparse(node.returns)}' if node.returns else ''
    return f'{node.name}({ast.unparse(node.args)}){returns}'


def is_property(node):
    return any(isinstance(d, ast.Name) and d.id == 'property' for d in node.decorator_list)


def members(node):
    """Of a class: fields with their types, then public methods and properties."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and not part.target.id.startswith('_'):
            yield f'- `{part.target.id}: {ast.unparse(part.annotation)}`'
        elif isinstance(part, ast.FunctionDef) and not part.name.startswith('_'):
            kind = f'{part.name}: {ast.unparse(part.returns)}' if is_property(part) and part.returns else signature(part)
            yield f'- `{kind}` {" ".join((ast.get_docstring(part) or "").split())}'.rstrip()


def doc(text):
    """A docstring: paragraphs of examples (>>>) and indented ones are code."""
    for part in re.split(r'\n\s*\n', text or ''):
        code = part.startswith(('>>>', '    '))
        yield from ['```python', part, '```', ''] if code else [' '.join(part.split()).replace('``', '`'), '']


def entry(node):
    listed = list(members(node)) if isinstance(node, ast.ClassDef) else []
    return [f'### `{signature(node)}`', '', *doc(ast.get_docstring(node)), *listed, *([''] if listed else [])]


def public(module, names):
    nodes = [n for n in module.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not any(map(is_overload, n.decorator_list))]
    return [n for n in nodes if n.name in names]


def is_overload(decorator):
    return isinstance(decorator, ast.Name) and decorator.id == 'overload'


def listed_names(module):
    """__all__, or the public names."""
    for node in module.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == '__all__':
            return set(ast.literal_eval(node.value))
    return {n.name for n in module.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith('_')}


def python_page():
    folder = os.path.join(ROOT, 'python/sol')
    package = ast.parse(read(os.path.join(folder, '__init__.py')))
    page = ['# Python interface', '', 'Made by `make reference` from the docstrings.', '', *doc(ast.get_docstring(package))]
    for path in sorted(glob.glob(os.path.join(folder, '*.py'))):
        stem, module = os.path.basename(path)[:-3], ast.parse(read(path))
        own = stem in ('torch', 'pytest_plugin')  # modules that are imported by their own names
        if stem == 'torch':  # patch is defined beside it
            module.body += ast.parse(read(os.path.join(folder, '_torch_patch.py'))).body
        nodes = public(module, listed_names(module if own else package)) if not stem.startswith('_') else []
        if nodes:
            page += [f'## `sol.{stem}`' if own else f'## {stem}', '', *doc(ast.get_docstring(module))]
            page += [line for node in nodes for line in entry(node)]
    return page


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, page in (('c.md', c_page()), ('python.md', python_page())):
        with open(os.path.join(sys.argv[1], name), 'w', encoding='utf-8') as file:
            file.write('\n'.join(page).rstrip() + '\n')


main()
