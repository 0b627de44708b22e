#!/usr/bin/env python3
"""What programs compiled against the library rely on: functions, layouts of structures, values of enumerators.
usage: scripts/abi.py [TREE]    prints the list, sorted, from the headers of TREE (default: this one) by the C compiler $CC
tests/abi.sh compares it with that of the last release, tests/data/abi-VERSION.txt, written by this at the release point."""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDES = '#include <sol/sol.h>\n#include <sol/dlpack.h>\n'
API = r'__attribute__\(\(visibility\("default"\)\)\)'


def compiler(tree, *words, text=None):
    command = [*os.environ.get('CC', 'cc').split(), '-std=c17', '-I' + os.path.join(tree, 'include'), *words]
    return subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def type_of(parameter):
    """A parameter without its name, which no caller depends on."""
    return parameter if parameter == 'void' else re.sub(r'\w+(\[\w*\])?$', lambda m: '*' if m.group(1) else '', parameter).strip()


def functions(text):
    for kind, name, arguments in re.findall(API + r' ([^;(]*?)\b(sol_\w+)\(([^;]*?)\);', text):
        yield f'function {name} {kind.strip()} ({", ".join(map(type_of, arguments.split(", ")))})'


def members(body):
    for declaration in body.split(';'):
        pointer = re.search(r'\(\*(\w+)\)', declaration)  # to a function
        yield from [pointer.group(1)] if pointer else re.findall(r'(\w+) ?(?:\[[^\]]*\] ?)*(?:,|$)', declaration.strip())


def layouts(text):
    """Lines of C that print the layouts and values."""
    for name, body in re.findall(r'typedef struct (Sol\w+) \{(.*?)\} \1;', text):
        yield f'printf("struct {name} %zu bytes\\n", sizeof({name}));'
        for member in members(body):
            yield f'printf("struct {name} {member} at %zu, %zu bytes\\n", offsetof({name}, {member}), sizeof((({name} *)0)->{member}));'
    for body in re.findall(r'typedef enum Sol\w+ \{(.*?)\}', text):
        for name in re.findall(r'\bSOL_\w+(?= ?[=,]| ?$)', body):
            yield f'printf("enum {name} %d\\n", (int){name});'


def main():
    tree = sys.argv[1] if len(sys.argv) > 1 else ROOT
    text = ' '.join(compiler(tree, '-E', '-P', '-xc', '-', text=INCLUDES).split())
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'abi')
        source = INCLUDES + '#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n' + '\n'.join(layouts(text)) + '\nreturn 0;\n}\n'
        compiler(tree, '-xc', '-', '-o', program, text=source)
        lines = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    print('\n'.join(sorted([*lines, *functions(text)])))


main()
