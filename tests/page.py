#!/usr/bin/env python3
"""The page in a headless Chromium: its figures are the command line's and the native build's on random questions, its
address brings back what was shown, and what is malformed leaves a message and a working page.
usage: tests/page.py BUILD [SCREENSHOTS]"""
import html.parser
import json
import os
import random
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402
from reports import COUNT, OVERLAPS, check, figures, fits, picture, same  # noqa: E402

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
    return {'ask': 'roofline', 'device': device, 'op': op['name'], 'shape': shape, 'dtype': rng.choice(['fp32', 'bf16', 'fp16']), 'level': rng.choice(['hbm', 'hbm', 'l2', 'smem'])}


def by_command_line(question, more=()):
    words = [BUILD + '/sol', 'roofline', '--json', '--device', question['device'], '--dtype', question['dtype'], '--level', question['level'], *more]
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
        line = by_command_line(question, ['--unfused'] if 'unfused' in answer else [])
        if 'error' in answer or 'error' in line:
            check('error' in answer and 'error' in line, f'{question}: {answer} but {line}')
            continue
        answered += 1
        same(alike(answer, line), None, str(question))
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


def test_trips(page):
    """Fused against unfused: what the arrows carry adds up to the bytes that were counted."""
    open_page(page, '#t=roofline&op=add_rmsnorm&shape=64x128')
    line = sol(BUILD + '/sol', 'roofline', 'add_rmsnorm', '64x128', '--unfused', '--json')
    carried = [page.ask(f'[...document.querySelectorAll("[aria-label=\'trips through memory\']")[{i}].querySelectorAll("[data-trip]")].map(t => Number(t.dataset.bytes))') for i in (0, 1)]
    same(carried[0], [k[key] for k in line['unfused']['kernels'] for key in ('bytes_read', 'bytes_written')], 'trips of the separate kernels')
    same([sum(carried[0]), sum(carried[1])], [line['unfused']['bytes'], line['bytes']], 'bytes of all trips')


def test_every_device(page):
    open_page(page, '#t=roofline&op=softmax&shape=512x512')
    lines = [a for a in sol(BUILD + '/sol', 'roofline', 'softmax', '512x512', '--device', 'all', '--json') if 'error' not in a]
    bars = page.ask('[...[...document.querySelectorAll("figure")].pop().querySelectorAll("[data-bar]")].map(b => b.dataset.bar)')
    same(bars, [a['device'] for a in lines], 'a bar for each GPU that can')


def point_at(page):
    return page.ask('(() => { const b = document.querySelector("[data-point] .point").getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()')


def fields_of(page):
    return page.ask('Object.fromEntries([...document.querySelectorAll("form [name]")].map(f => [f.name, f.value]))')


def test_drag(page):
    """Where a dragged point is dropped, the figures are the command line's for the bytes and FLOPs of the form."""
    page.size(1000)
    open_page(page, '#t=roofline&op=rmsnorm&shape=512x512', anew=True)
    for dx, dy in ((150, 0), (-40, -60), (0, 90)):
        page.ask('document.querySelector("[data-point]").scrollIntoView({block: "center"})')
        x, y = point_at(page)
        for kind, at in (('mousePressed', (x, y)), ('mouseMoved', (x + dx / 2, y + dy / 2)), ('mouseMoved', (x + dx, y + dy)), ('mouseReleased', (x + dx, y + dy))):
            page.call('Input.dispatchMouseEvent', type=kind, x=at[0], y=at[1], button='left', buttons=0 if kind == 'mouseReleased' else 1, clickCount=1)
            page.settle()
        agrees(page, f'dragged by {dx}, {dy}')
    before = fields_of(page)
    page.ask('document.querySelector("[data-point]").focus()')
    for key in ('ArrowRight', 'ArrowRight', 'ArrowUp'):
        page.key(key)
        page.settle()
    agrees(page, 'moved by keys')
    after = fields_of(page)
    check(float(after['flops']) > float(before['flops']) and float(after['bytes']) > float(before['bytes']), f'keys: {before} to {after}')
    check(page.ask('document.activeElement.dataset.point') == '1', 'the point keeps the focus')


def agrees(page, what):
    now = fields_of(page)
    same(now['op'], '', f'{what}: bytes and FLOPs instead of an operation')
    line = sol(BUILD + '/sol', 'roofline', '--json', '--device', now['device'], '--dtype', now['dtype'], '--unit', now['unit'],
               '--bytes', now['bytes'], '--flops', now['flops'], '--launches', now['launches'])
    same(figures(page, 'time_us')[:1], [line['time_us']], f'{what}: time')
    check(f'bytes={now["bytes"]}' in page.ask('location.hash'), f'{what}: the address')


def test_sliders(page):
    open_page(page, '#t=roofline&op=softmax&shape=64x64')
    slide(page, 'launch_us', 40)
    same(fields_of(page)['launch_us'], '10', 'the slider of the launch cost')
    line = sol(BUILD + '/sol', 'roofline', 'softmax', '64x64', '--json')
    want = line['time_us'] - line['terms']['launch_us'] + 10
    check(abs(figures(page, 'time_us')[0] - want) < 1e-9 * want, 'the launch cost of the slider')
    open_page(page, '#t=model&batch=32')
    slide(page, 'batch', 3)
    same([fields_of(page)['batch'], figures(page, 'batch')], ['8', [8]], 'the slider of the batch')
    set_field(page, 'batch', '600')
    same(page.ask('document.querySelector("[data-slider=batch]").value'), '9', 'the slider follows what is typed')
    open_page(page, '#t=occupancy&smem=16384')
    same(page.ask('document.querySelector("[data-slider=smem]").value'), '4', 'bytes on a slider of KiB')
    page.ask('document.querySelector("[data-slider=regs]").focus()')
    page.key('ArrowRight')
    same(fields_of(page)['regs'], '72', 'keys move a slider')


def slide(page, name, step):
    page.ask(f'(() => {{ const s = document.querySelector("[data-slider={name}]"); s.value = {step}; s.dispatchEvent(new Event("input")); }})()')
    page.settle()


# ---- models and occupancy ----


def random_model(rng, known):
    question = {'ask': 'model', 'model': rng.choice(known['models'])['name'], 'device': rng.choice(known['devices'])['id'], 'phase': rng.choice(['prefill', 'decode']),
                'batch': str(rng.randrange(1, 300)), 'context': str(rng.randrange(1, 20000)), 'tp': rng.choice(['1', '2', '4', '8', '3'])}
    for key in ('ep', 'pp', 'cp', 'dp'):
        question[key] = rng.choice(['', '', '', '1', '2'])
    question['fabric'] = rng.choice(['', '', 'nvlink4', 'pcie5', 'nvlink4,ib400'])
    for key in ('dtype', 'weight_dtype', 'kv_dtype'):
        question[key] = rng.choice(['', '', 'bf16', 'fp16', 'fp8_e4m3'])
    for key in ('fused', 'graph'):
        question[key] = rng.choice(['', 'yes'])
    return question


def test_models(page):
    rng = random.Random(SEED + 2)
    open_page(page)
    known = page.ask('known')
    questions, answered = [random_model(rng, known) for _ in range(60)], 0
    for question, answer in zip(questions, asked(page, questions)):
        words = [w for key in ('device', 'phase', 'batch', 'context', 'tp', 'ep', 'pp', 'cp', 'dp', 'fabric', 'dtype', 'weight_dtype', 'kv_dtype') if question[key] for w in ('--' + key.replace('_', '-'), question[key])]
        line = sol(BUILD + '/sol', 'model', question['model'], '--json', *words, *[f'--{key}' for key in ('fused', 'graph') if question[key]])
        if 'error' in answer or 'error' in line:
            check('error' in answer and 'error' in line and answer['error'] in line['error'], f'{question}: {answer} but {line}')
            continue
        answered += 1
        same(alike(answer, line), None, str(question))
    check(answered > 15, f'only {answered} of 60 models could be answered')
    config = {'model_type': 'llama', 'num_hidden_layers': 4, 'hidden_size': 256, 'intermediate_size': 512, 'num_attention_heads': 4, 'vocab_size': 1000}
    with open(os.path.join(BUILD, 'page-config.json'), 'w', encoding='utf-8') as file:
        json.dump(config, file)
    line = sol(BUILD + '/sol', 'model', os.path.join(BUILD, 'page-config.json'), '--phase', 'decode', '--batch', '3', '--json')
    open_page(page, '#t=model&model=&batch=3&config=' + urllib.parse.quote(json.dumps(config)))
    same(figures(page, 'total_us'), [line['total_us']], 'a pasted config.json')


def test_occupancy(page):
    rng = random.Random(SEED + 3)
    open_page(page)
    devices = [d['id'] for d in page.ask('known')['devices'] if d['cuda']]
    questions = [{'ask': 'occupancy', 'device': rng.choice(devices), 'threads': str(rng.randrange(1, 1100)), 'regs': str(rng.randrange(0, 260)), 'smem': str(rng.randrange(0, 120000))} for _ in range(40)]
    answered = 0
    for i, (question, answer) in enumerate(zip(questions, asked(page, questions))):
        words = [w for key in ('device', 'threads', 'regs', 'smem') for w in ('--' + key, question[key])]
        line = sol(BUILD + '/sol', 'occupancy', '--json', *words)
        if 'error' in answer or 'error' in line:
            check('error' in answer and 'error' in line, f'{question}: {answer} but {line}')
            continue
        answered += 1
        sweeps, basis = answer.pop('sweeps'), {k: v for k, v in answer['basis'].items() if not k.startswith('sweeps.')}
        same(alike({**answer, 'basis': basis}, line), None, str(question))
        if i % 8 == 0:
            for key, rows in sweeps.items():
                same(rows, sol(BUILD + '/sol', 'occupancy', '--json', *words, '--sweep', key)['sweep'], f'{question}: sweep of {key}')
    check(answered > 10, f'only {answered} of 40 kernels could be placed')
    open_page(page, '#t=occupancy&device=a100-80gb&threads=192&regs=40&smem=20Ki')
    line = sol(BUILD + '/sol', 'occupancy', '--json', '--device', 'a100-80gb', '--threads', '192', '--regs', '40', '--smem', '20Ki')
    same([figures(page, 'occupancy'), page.ask('Number(document.querySelector("[data-taken]").dataset.taken)')], [[line['occupancy']], line['warps_per_sm']], 'occupancy shown')
    open_page(page, '#t=occupancy&threads=4096')
    same(page.ask('document.querySelectorAll("main .error").length'), 1, 'too many threads: a message')


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
            drawn = {line['address'] // 32 + k: lanes for line in answer['touched'] for k, lanes in enumerate(line['sectors']) if lanes}
            same([sorted(drawn), sum(len(lanes) for lanes in drawn.values()) >= sum(a is not None for a in question['addresses'])], [sorted(touched), True], f'{question}: sectors that light up')
        elif question['store']:
            # What lights up is what was counted: stores take a pass for each word of the fullest bank, group by group.
            passes = [max((len({w['word'] for w in answer['words'] if (w['group'], w['bank']) == (g, b)}) for b in range(32)), default=0) for g in range(8)]
            same(sum(passes), answer['wavefronts'], f'{question}: words that light up')
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
    set_field(page, 'ptx', page.ask('example("scale")'))
    set_field(page, 'args', '1')
    submit(page)
    check('takes 5 arguments, 1 given' in page.ask('document.querySelector("main").textContent'), 'too few arguments')
    set_field(page, 'args', 'out:f32[128*64]\nf32[128*64]\nf32[64]\n128\n64')
    submit(page)
    check(len(figures(page, 'tax')) > 0, 'and it works again')


def test_dropped(page):
    open_page(page, '#t=memory')
    with open('examples/transpose.ptx', encoding='utf-8') as file:
        ptx = file.read()
    page.ask(f'''(() => {{ const data = new DataTransfer(); data.items.add(new File([{json.dumps(ptx)}], 'a.ptx'));
      dispatchEvent(new DragEvent('drop', {{dataTransfer: data, cancelable: true}})); }})()''')
    wait_for(page, 'document.querySelector("[name=ptx]") && document.querySelector("[name=ptx]").value.includes("transpose_tile")')
    same([page.ask('readAddress().t'), fields_of(page)['kernel']], ['kernel', ''], 'a dropped file is the PTX, its first kernel is taken')


def test_examples(page):
    """Those at hand run, and show what their names say: sectors and wavefronts of the worst access."""
    for i, (what, key, worst) in enumerate((('down columns', 'sectors_per_request', 32), ('along rows', 'sectors_per_request', 4), ('naive', 'sectors_per_request', 32),
                                            ('a tile', 'wavefronts_per_request', 32), ('a padded tile', 'wavefronts_per_request', 1))):
        open_page(page, '#t=kernel')
        link = page.ask(f'[...document.querySelectorAll("main p a")][{i}].getAttribute("href")')
        open_page(page, link)
        rows = page.ask('lastBill.answer.kernels[0].lines.map(l => l.access || {})')
        same(max(row.get(key, 0) for row in rows), worst, f'example {what}: {key}')


# ---- all of it ----


def test_addresses(page):
    """A new page at the address shows what was seen."""
    for address, name, value in (('#t=roofline', 'shape', '100x4096'), ('#t=roofline&op=', 'bytes', '3e7'), ('#t=model', 'context', '1000'), ('#t=memory', 'index', 'lane * 3'),
                                 ('#t=occupancy', 'regs', '100'), ('#t=roofline&op=rmsnorm&v=launch', 'dtype', 'fp32')):
        open_page(page, address)
        set_field(page, name, value)
        page.settle()
        page.settle()
        seen, link = page.ask('document.querySelector("main").textContent'), page.ask('location.hash')
        open_page(page, link, anew=True)
        same(page.ask('document.querySelector("main").textContent') == seen, True, f'{link} shows what was seen')
    page.ask('document.querySelector("[data-view=bytes]").click()')
    check('v=bytes' in page.ask('location.hash'), 'the view of a roofline is in the address')


def test_malformed(page):
    """What cannot be answered leaves a message, and the next question an answer."""
    for address in ('#t=model&batch=abc', '#t=model&model=<img%20src=x%20onerror=taken=1>', '#t=model&model=&config={"a":[', '#t=model&tp=7&model=llama-3-8b', '#t=model&fabric=%E2%80%AE',
                    '#t=occupancy&threads=-1', '#t=occupancy&smem=99999999999999999999', '#t=occupancy&device=m1', '#t=roofline&op=&bytes=1e999', '#t=roofline&op=gemm&shape=8', '#t=roofline&op=gemm&shape=8x8x8&tile=x',
                    '#t=roofline&device=constructor', '#t=memory&width=3', '#t=kernel&grid=0'):
        open_page(page, address)
        same([page.ask('document.querySelectorAll("main .error").length'), page.errors(), page.ask('typeof window.taken')], [1, [], 'undefined'], f'{address}: a message')
    open_page(page, '#t=model&v=constructor&k=-1&l=%00')
    check(len(figures(page, 'total_us')) == 1, 'and it works again')


def test_saved(page):
    """A picture as a file of its own has its styles with it, and nothing of the page."""
    open_page(page, '#t=roofline')
    picture = page.ask('svgFile(document.querySelector("figure svg"))')
    tree = xml.etree.ElementTree.fromstring(picture)
    texts = [node.text for node in tree.iter('{http://www.w3.org/2000/svg}text')]
    check('intensity (FLOP/byte)' in texts and '.roof' in picture and 'function' not in picture, 'an SVG of its own')


PICTURES = {'#t=roofline&op=add_rmsnorm': 'page-roofline', '#t=model': 'page-model', '#t=occupancy': 'page-occupancy', '#t=memory': 'page-memory', '#t=kernel': 'page-kernel'}


def test_look(page):
    for address in ('', '#t=roofline&op=add_rmsnorm', '#t=roofline&op=add_rmsnorm&v=launch', '#t=model', '#t=occupancy', '#t=memory', '#t=memory&space=shared&index=lane%2B0', '#t=kernel', '#t=no-such-tab', '#%', '#t=__proto__'):
        open_page(page, address, anew=True)
        name = 'page' + address.replace('#', '-').replace('&', '-').replace('%', '')
        fits(page, address, sys.argv[2] if len(sys.argv) > 2 else None, name)
        if address in PICTURES:
            picture(page, PICTURES[address])
        same(page.errors(), [], f'{address}: errors')
        same([url for url in page.requests() if url != 'about:blank'][1:], [], f'{address}: requests')


def test_keyboard(page):
    open_page(page)
    reached = set()
    for _ in range(26):
        page.key('Tab')
        reached.add(page.ask('(n => n.name || n.dataset.slider || n.id || (n.dataset.point ? "point" : n.textContent))(document.activeElement)'))
    for name in ('theme', 'Roofline', 'Model', 'Occupancy', 'Kernel', 'device', 'shape', 'op', 'level', 'launch_us', 'point', 'launch cost', 'SVG'):
        check(name in reached, f'Tab never reaches {name}: {reached}')
    page.ask('[...document.querySelectorAll("#tabs a")].find(a => a.textContent === "Occupancy").focus()')
    page.key('Enter')
    wait_for(page, 'document.querySelector("[data-taken]")')
    same(page.ask('readAddress().t'), 'occupancy', 'Enter opens a tab')


# ---- the site ----


class Links(html.parser.HTMLParser):
    """What a page links to and loads, and the anchors it has."""
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        with open(path, encoding='utf-8') as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.add(values.get('id'))
        if tag in ('a', 'form'):
            self.links.append(values.get('href') or values.get('action') or '')
        elif tag in ('img', 'script', 'link', 'iframe') and (values.get('src') or values.get('href')):
            self.loaded.append(values.get('src') or values.get('href'))


def test_site_links():
    """Every link of the site leads to a file and an anchor that are there; nothing is loaded from elsewhere."""
    site, pages = os.path.join(BUILD, 'site'), {}
    for folder, _, names in os.walk(site):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith('.html') and '/reports/' not in path and name != 'page.html':
                pages[path] = Links(path)
    check(len(pages) > 50, f'only {len(pages)} pages')
    for path, page in pages.items():
        for link in page.links + page.loaded:
            where, _, anchor = link.partition('#')
            there = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(where))) if where else path
            good = link.startswith('http') and link in page.links or os.path.isfile(there) and (not anchor or there not in pages or anchor in pages[there].anchors)
            if not good:
                check(False, f'{os.path.relpath(path, site)}: {link} leads nowhere')
    sources = [name for name in os.listdir('docs') if name.endswith('.md')]
    same([name for name in sources if not os.path.isfile(os.path.join(site, name[:-3] + '.html'))], [], 'every page of docs/ is on the site')
    with open(os.path.join(site, 'gallery.html'), encoding='utf-8') as file:
        shown = file.read()
    same(shown.count('<figure><svg'), shown.count('<section id='), 'a picture for each report of the gallery')


def test_site(page):
    test_site_links()
    site = 'file://' + BUILD + '/site/'
    for name in ('index', 'docs', 'roofline', 'ladders/transpose', 'gallery', 'search'):
        page.size(360)
        page.open(site + name + '.html', ready='true')
        wide = page.ask('document.documentElement.scrollWidth')
        check(wide <= 360, f'{name}.html is {wide} pixels wide at 360')
        same([page.errors(), [url for url in page.requests() if not url.startswith(('file://' + BUILD, 'about:'))]], [[], []], f'{name}.html: errors and requests')
    page.size(1000)
    page.open(site + 'index.html', ready='true')
    page.ask('document.querySelector("[name=q]").focus()')
    page.call('Input.insertText', text='bank_conflict <img src=x>')
    page.press('Enter')
    page.arrive('document.title === "Search"')
    same(page.ask('document.querySelectorAll("#found li, #found img").length'), 0, 'nothing has all these words')
    page.open(site + 'search.html?q=bank_conflict+shared', ready='true')
    links = page.ask('[...document.querySelectorAll("#found a")].map(a => a.getAttribute("href"))')
    check('rules.html#bank_conflict-shared-memory-bank-conflicts' in links, f'found {links}')


def main():
    if not browser.program():
        print('skipped: no chromium to open the page in\n0 passed, 0 failed, 20 skipped')
        return 77
    page, native = browser.Browser(), Native()
    try:
        test_rooflines(page)
        test_own_figures(page)
        test_trips(page)
        test_every_device(page)
        test_drag(page)
        test_sliders(page)
        test_models(page)
        test_occupancy(page)
        test_memory(page, native)
        test_bad_expressions(page)
        test_kernels(page, native)
        test_bad_ptx(page)
        test_dropped(page)
        test_examples(page)
        test_addresses(page)
        test_malformed(page)
        test_saved(page)
        test_look(page)
        test_keyboard(page)
        test_site(page)
    finally:
        native.close()
        page.close()
    print(f'{COUNT["passed"]} passed, {COUNT["failed"]} failed')
    return COUNT['failed'] > 0


if __name__ == '__main__':
    sys.exit(main())
