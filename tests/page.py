#!/usr/bin/env python3
"""The page in a headless Chromium: its figures are the command line's and the native build's on random questions, its
address brings back what was shown, and what is malformed leaves a message and a working page.
usage: tests/page.py BUILD [SCREENSHOTS]"""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402
from reports import COUNT, OVERLAPS, check, figures, fits, same  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
PAGE = 'file://' + BUILD + '/page.html'
SEED = int(os.environ.get('PAGE_SEED', '21'))


def sol(program, *words):
    env = {**os.environ, 'PATH': '/usr/bin:/bin', 'NVCC': '', 'CUDA_HOME': ''}
    done = subprocess.run([program, *words], capture_output=True, stdin=subprocess.DEVNULL, env=env, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {'error': done.stderr.decode()}


class Native:
    """The same questions, answered by the native build of src/page."""
    def __init__(self):
        self.process = subprocess.Popen([BUILD + '/tests/page_probe'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, question):
        self.process.stdin.write(json.dumps(question).encode() + b'\n')
        self.process.stdin.flush()
        length = int(self.process.stdout.readline())
        answer = self.process.stdout.read(length + 1)
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def asked(page, questions):
    return page.ask(f'Promise.all({json.dumps(questions)}.map(ask))')


def alike(a, b, where=''):
    """The first difference of two JSON values, numbers to 1e-9: a native compiler may fuse a multiply and an add."""
    if isinstance(a, dict) and isinstance(b, dict):
        if sorted(a) != sorted(b):
            return f'{where}: keys {sorted(set(a) ^ set(b))}'
        return next(filter(None, (alike(a[k], b[k], f'{where}.{k}') for k in a)), None)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f'{where}: {len(a)} and {len(b)} elements'
        return next(filter(None, (alike(x, y, f'{where}[{i}]') for i, (x, y) in enumerate(zip(a, b)))), None)
    number = isinstance(a, (int, float)) and isinstance(b, (int, float)) and not isinstance(a, bool)
    if a == b or (number and abs(a - b) <= 1e-9 * max(abs(a), abs(b))):
        return None
    return f'{where}: {a!r} and {b!r}'


def open_page(page, address='', anew=False):
    """By its address: in the page that is open, or in a new one."""
    if anew or not page.ask('location.href').startswith(PAGE) or page.ask('location.hash') in (address, '#' + address):
        page.open(PAGE + address)
        return
    page.events.clear()
    page.ask(f'document.documentElement.dataset.ready = "no"; location.hash = {json.dumps(address or "#")}')
    wait_for(page, 'document.documentElement.dataset.ready === "yes"')
    page.settle()


def wait_for(page, condition):
    page.ask(f'''new Promise(done => {{
      const look = () => {condition} ? done() : setTimeout(look, 5);
      look();
    }})''')


# ---- rooflines ----


def random_roofline(rng, known):
    device = rng.choice(known['devices'])['id']
    if rng.random() < 0.5:
        # Whole numbers below 2^53, so that both sides take the very same ones.
        return {'ask': 'roofline', 'device': device, 'bytes': str(int(10 ** rng.uniform(2, 11))), 'flops': str(int(10 ** rng.uniform(0, 14))),
                'launches': str(rng.randrange(4)), 'dtype': rng.choice(['fp32', 'bf16', 'fp16']), 'level': rng.choice(['hbm', 'l2'])}
    op = rng.choice([op for op in known['ops'] if '[' not in op['shape']])
    shape = 'x'.join(str(2 ** rng.randrange(4, 12)) for _ in op['shape'].split('x'))
    return {'ask': 'roofline', 'device': device, 'op': op['name'], 'shape': shape, 'dtype': rng.choice(['fp32', 'bf16', 'fp16']), 'level': 'hbm'}


def by_command_line(question):
    words = [BUILD + '/sol', 'roofline', '--json', '--device', question['device'], '--dtype', question['dtype'], '--level', question['level']]
    if 'op' in question:
        return sol(*words, question['op'], question['shape'])
    return sol(*words, '--bytes', question['bytes'], '--flops', question['flops'], '--launches', question['launches'])


def test_rooflines(page):
    rng = random.Random(SEED)
    open_page(page)
    known = page.ask('known')
    questions = [random_roofline(rng, known) for _ in range(100)]
    answered = 0
    for question, answer in zip(questions, asked(page, questions)):
        line = by_command_line(question)
        if 'error' in answer or 'error' in line:
            check('error' in answer and 'error' in line, f'{question}: {answer} but {line}')
            continue
        answered += 1
        keys = [k for k in answer if k in line and k != 'basis' and (k != 'ridge' or line[k] is not None) and (k != 'peak' or line[k] is not None)]
        check(len(keys) > 15, f'{question}: {keys}')
        same(alike({k: answer[k] for k in keys}, {k: line[k] for k in keys}), None, str(question))
    check(answered > 50, f'only {answered} of 100 questions could be answered')
    # What is shown is what was answered.
    for question in questions[:8]:
        answer = asked(page, [question])[0]
        fields = '&'.join(f'{k}={v}' for k, v in {'op': '', **question}.items() if k != 'ask')
        open_page(page, '#t=roofline&' + fields)
        if 'error' in answer:
            check(page.ask('document.querySelectorAll("main .error").length') == 1, f'{question}: no message')
        else:
            same(figures(page, 'time_us')[:1], [answer['time_us']], f'{question}: time shown')
            same(figures(page, 'bytes')[:1], [answer['bytes']], f'{question}: bytes shown')


def test_own_figures(page):
    """max(bytes / bandwidth, flops / peak) + launch, by hand."""
    open_page(page, '#t=roofline&op=&bytes=8e9&flops=1e12&launches=2&bandwidth=2e12&peak=1e15&launch_us=5')
    same(figures(page, 'time_us'), [8e9 / 2e12 * 1e6 + 10], 'own bandwidth, peak and launch cost')


# ---- memory ----


def test_memory(page, native):
    rng = random.Random(SEED + 1)
    open_page(page)
    questions = []
    for _ in range(200):
        width, stride, start = rng.choice([1, 2, 4, 8, 16]), rng.randrange(0, 70), rng.randrange(0, 9)
        lanes = [(lane * stride + start if rng.random() < .9 else rng.randrange(4000)) * width for lane in range(32)]
        active = [a if rng.random() < .95 else None for a in lanes]
        questions.append({'ask': 'memory', 'addresses': active, 'width': width, 'shared': rng.random() < .5, 'store': rng.random() < .5})
    answers = asked(page, questions)
    for question, answer in zip(questions, answers):
        same(answer, native.ask(question), f'{question}')
        if not question['shared']:
            touched = {(a + i) // 32 for a in question['addresses'] if a is not None for i in range(question['width'])}
            same(answer['sectors'], len(touched), f'{question}: sectors, counted one by one')
    for index, space, width, key, count in (('lane', 'global', 4, 'sectors', 4), ('lane*2', 'global', 4, 'sectors', 8), ('lane * 32', 'global', 4, 'sectors', 32),
                                            ('lane + 1', 'global', 4, 'sectors', 5), ('lane', 'global', 16, 'sectors', 16), ('lane * 32', 'shared', 4, 'wavefronts', 32),
                                            ('lane * 33', 'shared', 4, 'wavefronts', 1), ('lane * 32 + (lane ^ tile)', 'shared', 4, 'wavefronts', 1),
                                            ('(lane & 1) << 5 | 0x3', 'shared', 4, 'wavefronts', 2), ('lane / 32 % 2 - 0', 'global', 4, 'sectors', 1)):
        open_page(page, f'#t=memory&space={space}&width={width}&tile=3&index=' + index.replace('+', '%2B').replace('&', '%26').replace('|', '%7C').replace('%2 ', '%252 '))
        same(figures(page, key), [count], f'{space} {index}, {width} bytes')
        if space == 'global':
            same(page.ask('Number(document.querySelector("[data-sectors]").dataset.sectors)'), count, f'{index}: sectors drawn')
        same(page.ask(OVERLAPS), [], f'{index}: texts')


def test_bad_expressions(page):
    for index in ('lane *', 'lane / 0', 'alert(1)', 'lane << 99', '(((lane', '0 - lane', 'constructor', '9' * 40, '(' * 9999, '"', 'lane lane', '%E2%80%AElane'):
        open_page(page, '#t=memory&index=' + index)
        same(page.ask('document.querySelectorAll("main .error").length'), 1, f'{index}: a message')
        same(page.errors(), [], f'{index}: errors')
    set_field(page, 'index', 'lane')
    wait_for(page, 'document.querySelector("[data-key=sectors]")')
    same(figures(page, 'sectors'), [4], 'and it works again')
    check('index=lane' in page.ask('location.hash'), 'the address follows')


# ---- kernels ----


def kernel_question(rows, cols, block):
    with open('examples/scale.ptx', encoding='utf-8') as file:
        ptx = file.read()
    return {'ask': 'audit', 'device': 'h200', 'ptx': ptx, 'kernel': 'column_scale', 'grid': f'{-(-rows // block)},{cols}', 'block': str(block),
            'args': [f'out:f32[{rows}*{cols}]', f'f32[{rows}*{cols}]', f'f32[{cols}]', str(rows), str(cols)]}


def test_kernels(page, native):
    open_page(page)
    questions = [kernel_question(*shape) for shape in ((128, 64, 128), (100, 33, 32), (1000, 20, 256), (7, 5, 64))]
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        tool = folder + '/sol'
        os.link(BUILD + '/sol', tool)  # away from the compiler, which would tell it registers
        for question, answer in zip(questions, asked(page, questions)):
            name = question['args'][0]
            same(alike(answer, native.ask(question)), None, f'{name}: wasm and native')
            words = [w for a in question['args'] for w in ('--arg', a)]
            bill = sol(tool, 'audit', 'examples/scale.ptx', '--json', '--device', question['device'], '--kernel', question['kernel'],
                       '--grid', question['grid'], '--block', question['block'], *words)
            ours, theirs = answer['kernels'][0], bill['kernels'][0]
            if theirs['registers_from'] == 'ptxas':
                keys = ['global_load', 'global_store', 'shared_load', 'instructions', 'dram_bytes', 'l2_bytes', 'floor_bytes', 'flops']
            else:
                keys = [k for k in theirs if k != 'lines']
            same(alike({k: ours[k] for k in keys}, {k: theirs[k] for k in keys}), None, f'{name}: the page and the command line')
            lines = [[{k: v for k, v in line.items() if k not in ('source', 'file')} for line in kernel['lines']] for kernel in (ours, theirs)]
            if theirs['registers_from'] != 'ptxas':
                same(alike(*lines), None, f'{name}: lines')
    open_page(page, '#t=kernel&l=8')
    check(ours is not None and figures(page, 'tax'), 'the bill is shown')
    same(page.ask('[...document.querySelectorAll(".lines .on")].map(r => Number(r.dataset.line))'), [8], 'a line by the address')


def set_field(page, name, value):
    page.ask(f'(() => {{ const i = document.querySelector("[name={name}]"); i.value = {json.dumps(value)}; i.dispatchEvent(new Event("input")); }})()')


def submit(page):
    page.ask('document.querySelector("main").replaceChildren(); document.querySelector("form button").click()')
    wait_for(page, 'document.querySelector("main").childElementCount')


def test_bad_ptx(page):
    hostile = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry a(.param .u64 p)\n{\n  <img src=x onerror=taken=1> ;\n}\n'
    for ptx in ('', 'no PTX', hostile, '.version 8.0\n.target sm_80\n.address_size 64\n' + '{' * 5000, '\u202e\u0000'):
        open_page(page, '#t=kernel')
        set_field(page, 'args', '')
        set_field(page, 'ptx', ptx)
        submit(page)
        same(page.ask('document.querySelectorAll("main .error").length'), 1, f'{ptx[:20]!r}: a message')
        same(page.ask('typeof window.taken'), 'undefined', 'PTX was run as a script')
    set_field(page, 'ptx', page.ask('example()'))
    set_field(page, 'args', '1')
    submit(page)
    check('takes 5 arguments, 1 given' in page.ask('document.querySelector("main").textContent'), 'too few arguments')
    set_field(page, 'args', 'out:f32[128*64]\nf32[128*64]\nf32[64]\n128\n64')
    submit(page)
    check(len(figures(page, 'tax')) > 0, 'and it works again')


# ---- all of it ----


def test_look(page):
    for address in ('', '#t=memory', '#t=memory&space=shared&index=lane%2B0', '#t=kernel', '#t=no-such-tab', '#%', '#t=__proto__'):
        open_page(page, address, anew=True)
        name = 'page' + address.replace('#', '-').replace('&', '-').replace('%', '')
        fits(page, address, sys.argv[2] if len(sys.argv) > 2 else None, name)
        same(page.errors(), [], f'{address}: errors')
        same([url for url in page.requests() if url != 'about:blank'][1:], [], f'{address}: requests')


def test_keyboard(page):
    open_page(page)
    reached = set()
    for _ in range(14):
        page.key('Tab')
        reached.add(page.ask('document.activeElement.name || document.activeElement.id || document.activeElement.textContent'))
    for name in ('theme', 'Roofline', 'Kernel', 'device', 'shape', 'op', 'level'):
        check(name in reached, f'Tab never reaches {name}: {reached}')


def main():
    if not browser.program():
        print('skipped: no chromium to open the page in\n0 passed, 0 failed, 8 skipped')
        return 77
    page, native = browser.Browser(), Native()
    try:
        test_rooflines(page)
        test_own_figures(page)
        test_memory(page, native)
        test_bad_expressions(page)
        test_kernels(page, native)
        test_bad_ptx(page)
        test_look(page)
        test_keyboard(page)
    finally:
        native.close()
        page.close()
    print(f'{COUNT["passed"]} passed, {COUNT["failed"]} failed')
    return COUNT['failed'] > 0


if __name__ == '__main__':
    sys.exit(main())
