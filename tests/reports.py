#!/usr/bin/env python3
"""HTML reports (docs/reports.md) in a headless Chromium: the figures shown are the JSON's, hostile names are text, no
request leaves the file, keys and 360 pixels suffice, texts do not overlap, long lists render.
usage: tests/reports.py SOL [SCREENSHOTS]    SCREENSHOTS: a folder for pictures of every report"""
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

SOL = os.path.abspath(sys.argv[1])
SHOTS = sys.argv[2] if len(sys.argv) > 2 else None
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COUNT = {'passed': 0, 'failed': 0, 'skipped': 0}


def check(good, what):
    COUNT['passed' if good else 'failed'] += 1
    if not good:
        print('failed:', what)


def same(got, want, what):
    check(got == want, f'{what}: {got!r} instead of {want!r}')


def sol(*words):
    return subprocess.run([SOL, *words], capture_output=True, stdin=subprocess.DEVNULL, check=False)


def result(*words):
    """What a command prints with --json, and its --html file."""
    done = sol(*words, '--json', '--html', 'report.html')
    check(done.returncode == 0, f'{words}: exit code {done.returncode}: {done.stderr[-300:]}')
    return json.loads(done.stdout)


def view(data, *more):
    paths = []
    for i, value in enumerate((data, *more)):
        paths.append(f'part{i}.json')
        with open(paths[-1], 'w', encoding='utf-8', errors='surrogatepass') as file:
            json.dump(value, file, ensure_ascii=False)
    done = sol('view', *paths, '--out', 'report.html')
    check(done.returncode == 0, f'sol view: exit code {done.returncode}: {done.stderr[-300:]}')


AUDIT = ('audit', 'scale.ptx', '--kernel', 'column_scale', '--arg', 'out:f32[128*64]', '--arg', 'f32[128*64]',
         '--arg', 'f32[64]', '--arg', '128', '--arg', '64')

# ---- what needs no browser ----


def test_errors():
    for name, content, code, message in (
            ('broken.json', '{"schema": 1,\n "kernels": [}', 2, b'broken.json:2:14'),
            ('text.json', 'no JSON at all', 2, b'text.json:1:1'),
            ('empty.json', '', 2, b'empty.json'),
            ('other.json', '{"a": 1}', 2, b'no result of Sol'),
            ('list.json', '[]', 2, b'no result of Sol'),
            ('deep.json', '[' * 100 + ']' * 100, 2, b'deep.json:1:')):
        with open(name, 'w', encoding='utf-8') as file:
            file.write(content)
        done = sol('view', name, '--out', 'never.html')
        same(done.returncode, code, f'sol view {name}')
        check(message in done.stderr, f'sol view {name} says {done.stderr!r}')
        check(not done.stdout, f'sol view {name} prints on standard output')
    check(not os.path.exists('never.html'), 'a report was written in spite of an error')
    same(sol('view').returncode, 2, 'sol view without a file')
    same(sol('view', 'absent.json').returncode, 2, 'sol view of a file that is not there')
    result('roofline', 'softmax', '64x64')
    same(sol('roofline', 'softmax', '64x64', '--html', 'no/such/folder.html').returncode, 1, '--html into no folder')


def test_self_contained():
    with open('report.html', encoding='utf-8') as file:
        page = file.read()
    check("default-src 'none'" in page, 'no Content-Security-Policy')
    body = page.split('id="data">', 1)[1]
    data = body.split('</script>', 1)[0]
    check('<' not in data, 'data has a <')
    check('{{' not in page.split('id="data"')[0], 'a mark of the template is left')
    for word in ('src=', 'href=', '@import', 'url(h'):
        head = page.split('<main', 1)[0]
        check(word not in head, f'the head has {word}')


# ---- sol serve ----


class Served:
    """sol serve of a folder with results, and with what must not be shown."""
    def __init__(self):
        os.makedirs('served/inner', exist_ok=True)
        for path in ('served/roof.json', 'outside.json', 'served/.hidden.json', 'served/inner/deep.json', 'served/a <b>&"\u202e.json'):
            with open(path, 'wb') as file:
                file.write(sol('roofline', 'softmax', '64x64', '--json').stdout)
        for path, content in (('served/plain.txt', 'secret'), ('served/broken.json', '{'), ('served/other.json', '{"a": 1}')):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(content)
        if not os.path.islink('served/link.json'):
            os.symlink('../outside.json', 'served/link.json')
            os.mkfifo('served/pipe.json')
        self.process = subprocess.Popen([SOL, 'serve', 'served', '--port', '0', '--json'], stdout=subprocess.PIPE)
        text = b''
        while b'}' not in text:
            text += self.process.stdout.readline()
        self.address = json.loads(text)['address']
        self.port = int(self.address.rstrip('/').rsplit(':', 1)[1])

    def raw(self, request):
        with socket.create_connection(('127.0.0.1', self.port)) as to:
            to.sendall(request)
            answer = b''
            while piece := to.recv(65536):
                answer += piece
        return answer

    def get(self, path, host=None, more=''):
        answer = self.raw(f'GET {path} HTTP/1.1\r\nHost: {host or "127.0.0.1:%d" % self.port}\r\n{more}\r\n'.encode())
        return int(answer.split(b' ', 2)[1]) if answer else 0, answer

    def close(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait()
        self.process.stdout.close()
        return code


def test_serve():
    served = Served()
    code, answer = served.get('/')
    same(code, 200, 'the list')
    for name in (b'roof.json', b'a%20%3cb%3e%26%22%e2%80%ae.json', b'a &#60;b>&#38;&#34;\\u202e.json'):
        check(name in answer, f'the list has no {name}')
    for name in (b'hidden', b'link.json', b'pipe.json', b'plain', b'deep', b'<b>'):
        check(name not in answer, f'the list has {name}')
    code, answer = served.get('/roof.json')
    check(code == 200 and b'softmax 64x64' in answer and b"connect-src 'self'" in answer, 'a report')
    for header in (b'nosniff', b'X-Frame-Options: DENY', b'same-origin', b'no-store'):
        check(header in answer, f'no {header}')
    same(served.get('/a%20%3Cb%3E%26%22%E2%80%AE.json')[0], 200, 'a hostile name')
    same(served.get('/stamp/roof.json')[0], 200, 'a stamp')
    for path in ('/../outside.json', '/%2e%2e/outside.json', '/%2e%2e%2foutside.json', '/inner/deep.json', '/inner%2fdeep.json', '/link.json', '/pipe.json',
                 '/.hidden.json', '/plain.txt', '//etc/passwd', '/..', '/.', '/stamp/../outside.json', '/stamp/plain.txt', '/stamp/', '/' + 'a' * 300 + '.json',
                 os.path.abspath('outside.json')):
        code, answer = served.get(path)
        check(code in (400, 404) and b'softmax' not in answer and b'secret' not in answer, f'{path}: {answer[:200]}')
    same(served.get('/broken.json')[0], 422, 'a broken file')
    same(served.get('/other.json')[0], 422, 'JSON that is no result')
    for host in ('evil.example', f'evil.example:{served.port}', '127.0.0.1', f'127.0.0.1:{served.port}.evil.example', ''):
        same(served.get('/roof.json', host=host or ' ')[0], 403, f'Host: {host}')
    same(served.get('/', more='Host: evil.example\r\n')[0], 403, 'two hosts')
    same(served.get('/', host=f'localhost:{served.port}')[0], 200, 'localhost')
    for site, want in (('cross-site', 403), ('same-site', 403), ('same-origin', 200), ('none', 200)):
        same(served.get('/roof.json', more=f'Sec-Fetch-Site: {site}\r\n')[0], want, f'Sec-Fetch-Site: {site}')
    for request in (b'POST / HTTP/1.1', b'GET http://evil.example/ HTTP/1.1', b'GET /%zz.json HTTP/1.1', b'GET /a%00.json HTTP/1.1', b'GET /', b'\x16\x03\x01'):
        answer = served.raw(request + f'\r\nHost: 127.0.0.1:{served.port}\r\n\r\n'.encode())
        check(b' 400 ' in answer.split(b'\r\n')[0], f'{request}: {answer[:80]}')
    same(served.raw(b'GET / HTTP/1.1\r\n' + b'X: ' + b'y' * 7000 + b'\r\n' * 2)[:12], b'HTTP/1.1 403', 'a request without a host')
    with open('/proc/net/tcp', encoding='ascii') as file:
        places = [line.split()[1] for line in file if line.split()[3] == '0A']
    same([p for p in places if p.endswith(f':{served.port:04X}')], [f'0100007F:{served.port:04X}'], 'where it listens')
    same(served.close(), 0, 'Ctrl-C ends it')
    same(sol('serve', 'no-such-folder').returncode, 2, 'no such folder')
    same(sol('serve').returncode, 2, 'no folder named')


def test_live(page):
    served = Served()
    page.open(served.address + 'roof.json')
    same(figures(page, 'flops')[0], json.loads(sol('roofline', 'softmax', '64x64', '--json').stdout)['flops'], 'a served report')
    changed = sol('roofline', 'softmax', '128x128', '--json').stdout
    page.ask('new Promise(done => setTimeout(done, 1500))')  # it has seen the first one
    with open('served/new.json', 'wb') as file:
        file.write(changed)
    os.rename('served/new.json', 'served/roof.json')
    end = time.monotonic() + 120
    while '128x128' not in page.ask('document.title') and time.monotonic() < end:
        time.sleep(0.1)
    check('128x128' in page.ask('document.title'), 'a changed file is drawn again')
    served.close()


# ---- in the browser ----

# Texts of one picture that lie on each other, or outside it.
OVERLAPS = '''[...document.querySelectorAll('svg')].flatMap(svg => {
  const out = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll('text')].filter(t => !t.hasAttribute('transform') && t.textContent)
    .map(t => ({text: t.textContent, box: t.getBoundingClientRect()}));
  const bad = boxes.filter(({box}) => box.left < out.left - 2 || box.right > out.right + 2 || box.bottom > out.bottom + 2)
    .map(b => 'cut off: ' + b.text);
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
    if (a.box.left < b.box.right - 2 && b.box.left < a.box.right - 2 && a.box.top < b.box.bottom - 4 && b.box.top < a.box.bottom - 4)
      bad.push(a.text + ' on ' + b.text);
  }));
  return bad;
})'''


def figures(page, key, within='document'):
    return page.ask(f'[...{within}.querySelectorAll(\'[data-key="{key}"]\')].map(n => Number(n.dataset.value))')


def fits(page, what, shots, name):
    """Nothing is cut off or overlaps, on a phone and on a screen; pictures go to the folder `shots` where there is one."""
    for width in (360, 1000):
        page.size(width)
        page.settle()
        wide = page.ask('document.documentElement.scrollWidth')
        check(wide <= width, f'{what}: {wide} pixels wide at {width}')
        same(page.ask(OVERLAPS), [], f'{what}: texts at {width} pixels')
        if shots:
            page.shot(os.path.join(shots, f'{name}-{width}.png'))


def picture(page, name):
    """For the documentation, where DOC_PICTURES names its folder: the top of what is shown."""
    folder = os.environ.get('DOC_PICTURES')
    if folder:
        page.size(1000)
        page.settle()
        page.shot(os.path.join(ROOT, folder, name + '.png'), 1300)


def look(page, what):
    """What holds for every report."""
    page.open('file://' + os.path.abspath('report.html'))
    fits(page, what, SHOTS, what.replace(' ', '-'))
    if what in ('audit', 'ladder', 'model', 'bench'):
        picture(page, 'report-' + what)
    same(page.requests()[1:] if page.requests()[:1] == ['about:blank'] else page.requests(),
         ['file://' + os.path.abspath('report.html')], f'{what}: requests')
    same(page.errors(), [], f'{what}: errors')
    same(page.ask('document.querySelectorAll(".error").length'), 0, f'{what}: messages of failure')


def test_audit(page):
    data = result(*AUDIT)
    look(page, 'audit')
    kernel = data['kernels'][0]
    same(figures(page, 'time_us')[0], kernel['time_us'], 'time of the kernel')
    for key in ('light_us', 'tax', 'registers', 'occupancy', 'dram_bytes', 'floor_bytes'):
        check(kernel[key] in figures(page, key), f'audit: {key} is not shown')
    shown = {line: share for line, share in page.ask(
        '[...document.querySelectorAll("[data-line]")].map(r => [Number(r.dataset.line), Number(r.querySelector("[data-key=share]").dataset.value)])')}
    same(shown, {line['line']: line['share'] for line in kernel['lines']}, 'shares of the lines')
    spent = figures(page, 'part_of_time')
    same(spent, sorted((us for us in kernel['parts'].values() if us > 0), reverse=True), 'the parts of the time')
    check(abs(sum(spent) - kernel['time_us']) < 1e-6 * kernel['time_us'], 'the parts add up to the time')
    same(figures(page, 'saved_us'), [f['saved_us'] for f in kernel['findings']], 'findings in order of gain')
    lanes = page.ask('[...document.querySelectorAll("[data-lane]")].map(g => g.querySelectorAll("rect").length)')
    same(len(lanes), len(kernel['timeline']['units']) + len(kernel['timeline']['roles']), 'lanes of the timeline')
    check(max(lanes) > 20, 'the timeline has no bars')
    same(figures(page, 'timeline_us'), [kernel['timeline']['us']], 'the life of a block')
    worst = max((line for line in kernel['lines'] if 'access' in line), key=lambda line: line['share'])
    same(figures(page, 'sectors_per_request'), [worst['access']['sectors_per_request']], 'the access of the costliest line')
    same(page.ask('document.querySelectorAll("[data-point]").length'), len(data['kernels']), 'points of the roofline')
    # The picture has as many sectors as were counted.
    same(page.ask('Number(document.querySelector("[data-sectors]").dataset.sectors)'), worst['access']['sectors_per_request'], 'sectors drawn')
    touched = {(at + i) // 32 for at in worst['access']['lane_offsets'] if at is not None for i in range(worst['access']['width'])}
    same(len(touched), worst['access']['sectors_per_request'], 'sectors of the example')
    source = data['sources'][0]
    with open(os.path.basename(source['file']), encoding='utf-8') as file:
        lines = file.read().split('\n')
    same(source['text'].split('\n')[0], lines[source['first'] - 1], 'the source begins with its first line')


def test_line_link(page):
    data = result(*AUDIT)
    line = data['kernels'][0]['lines'][-1]['line']
    page.open('file://' + os.path.abspath('report.html') + f'#k=0&l={line}')
    same(page.ask('[...document.querySelectorAll(".lines .on")].map(r => Number(r.dataset.line))'), [line], 'line of the address')
    for bad in ('#k=99999&l=-5', '#d=7', '#k=%00&l=1e99&f=<b>', '#__proto__=1'):
        page.open('file://' + os.path.abspath('report.html') + bad)
        same(page.ask('document.querySelectorAll("[data-kernel]").length'), 1, f'the list of kernels at {bad}')
        same(page.errors(), [], f'errors at {bad}')


def test_roofline(page):
    data = result('roofline', 'rmsnorm', '8192x4096', '--device', 'h200')
    look(page, 'roofline')
    for key in ('time_us', 'bytes', 'flops', 'intensity', 'ridge'):
        same(figures(page, key)[:1], [data[key]], f'roofline: {key}')
    check(data['roofs']['hbm'] == data['bandwidth'], 'the roof is the bandwidth')
    page.ask('document.querySelector(".roofline [data-view=bytes]").click()')
    same(page.ask('document.querySelector(".roofline [data-view=bytes]").getAttribute("aria-pressed")'), 'true', 'roofline by bytes')
    page.settle()
    same(page.ask(OVERLAPS), [], 'roofline by bytes')
    page.ask('document.querySelectorAll(".roofline button[data-view=launch]")[0].click()')
    page.settle()
    page.settle()
    same(page.ask(OVERLAPS), [], 'roofline by launch cost')
    where = page.ask('(() => { const p = document.querySelector(".roofline .point"); return [p.getAttribute("cx"), p.getAttribute("cy")].map(Number); })()')
    ticks = {t: x for t, x in page.ask('[...document.querySelectorAll(".roofline .tick[text-anchor=middle]")].map(t => [t.textContent, Number(t.getAttribute("x"))])')}
    bare = data['time_us'] - data['terms']['launch_us']
    want = ticks['10 us'] + (ticks['100 us'] - ticks['10 us']) * (math.log10(bare) - 1)
    check(abs(where[0] - want) < 0.5, f'the point of the launch cost is at {where[0]}, not at {want}')
    page.open(page.ask('location.href'))
    same(page.ask('document.querySelector("[data-view=launch]").getAttribute("aria-pressed")'), 'true', 'the view is in the address')


def test_occupancy(page):
    for words in (('--threads', '256', '--regs', '64'), ('--sweep', 'smem')):
        view(json.loads(sol('occupancy', *words, '--json').stdout))
        look(page, 'occupancy' + words[0])
        check(page.ask('document.querySelectorAll("[data-taken], [data-steps]").length') == 1, f'occupancy {words}: a picture')


def test_unfused(page):
    data = result('roofline', 'add_rmsnorm', '8192x4096', '--unfused')
    look(page, 'unfused')
    same(page.ask('[...document.querySelectorAll("[data-trip]")].reduce((sum, t) => sum + Number(t.dataset.bytes), 0)'), data['unfused']['bytes'] + data['bytes'], 'trips through memory')


def test_printed(page):
    """On paper lists are whole, whatever was scrolled to, and the paper is white."""
    kernels = [{'name': f'kernel_{i}', 'time_us': 500 - i, 'kernel_us': 400 - i, 'light_us': 1, 'tax': 2, 'bound': 'dram', 'flops': i, 'dram_bytes': i + 1, 'lines': [], 'findings': []} for i in range(450)]
    view({'schema': 1, 'input': 'big.cu', 'device': 'h200', 'kernels': kernels, 'gate': [], 'roofs': {'hbm': 3e12, 'vector_fp32': 6e13}})
    page.open('file://' + os.path.abspath('report.html'))
    page.ask('document.querySelector("#theme").click()')
    page.call('Page.printToPDF')
    same(page.ask('document.querySelectorAll("[data-kernel]").length'), 450, 'kernels on paper')
    page.call('Emulation.setEmulatedMedia', media='print')
    page.ask('dispatchEvent(new Event("beforeprint"))')
    same(page.ask('[getComputedStyle(document.querySelector(".kernels")).overflow, getComputedStyle(document.body).backgroundColor]'), ['visible', 'rgb(255, 255, 255)'], 'on paper')
    page.call('Emulation.setEmulatedMedia', media='')


def test_devices(page):
    data = result('roofline', 'gemm', '512x512x512', '--device', 'h100,h200,b200')
    look(page, 'compare')
    same(figures(page, 'time_us'), [row['time_us'] for row in data], 'times of three GPUs')


def test_model(page):
    data = result('model', 'llama-3-8b', '--phase', 'decode', '--batch', '32')
    look(page, 'model')
    same(figures(page, 'total_us'), [data['total_us']], 'model: total')
    same(figures(page, 'time_us'), [k['time_us'] for k in data['kernels']], 'model: times')
    pass_us = figures(page, 'kernel_us')
    check(abs(sum(pass_us) - data['total_us']) < 1e-6 * data['total_us'], 'the stacked pass is the total')


def has_kernels():
    """Whether the library was built with nvcc: a ladder runs its kernels."""
    found = subprocess.run([ROOT + '/scripts/cuda-env', 'nvcc'], stdout=subprocess.DEVNULL, check=False).returncode == 0
    if not found:
        COUNT['skipped'] += 1
        print('skipped: no nvcc: the library has no kernels for a ladder to run')
    return found


def test_choice(page):
    data = result('model', 'llama-3-8b', '--device', 'h100,h200,t4', '--sweep', 'batch=1..4')
    look(page, 'choice')
    same([v for v in figures(page, 'tokens_per_s') if v is not None], [r['tokens_per_s'] for r in data['rows'] if r.get('tokens_per_s') is not None], 'tokens a second')
    same(page.ask('document.querySelectorAll("figure")[2].querySelectorAll("[data-bar]").length'), len([r for r in data['rows'] if r['possible']]), 'a bar for each case')


def test_ladder(page):
    if not has_kernels():
        return
    data = result('ladder', 'transpose', '--small')
    look(page, 'ladder')
    rungs = data['ladders'][0]['rungs']
    same(figures(page, 'predicted.of_light'), [r['predicted']['of_light'] for r in rungs], 'shares of light')
    check(all('KERNEL' in r['code'] or '__global__' in r['code'] for r in rungs[:2]), 'rungs have code')
    same(page.ask('document.querySelectorAll("pre").length'), 2, 'two rungs side by side')
    same(page.ask('[...document.querySelectorAll("pre")].map(p => p.querySelectorAll(".new").length > 0)'), [True, True], 'differences are marked')


def test_stored(page, root):
    for name, key in (('bench', 'time_us'), ('ladders', 'measured.time_us')):
        path = os.path.join(root, f'bench/results/2026-11-15-h200-{name}.json')
        with open(path, encoding='utf-8') as file:
            data = json.load(file)
        same(sol('view', path, '--out', 'report.html').returncode, 0, f'sol view {name}')
        look(page, name)
        rows = [c.get('time_us') for c in data['cases']] if name == 'bench' else [
            r.get('measured', {}).get('time_us') for ladder in data['ladders'] for r in ladder['rungs'] if any('of_light' in x.get('measured', {}) for x in ladder['rungs'])]
        shown = figures(page, key)
        same([v for v in shown if v == v], [v for v in rows if v is not None], f'{name}: times')
        check(page.ask('document.querySelectorAll(".scatter circle").length') > 5, f'{name}: a scatter')


def test_svg(page):
    """--svg: well-formed, texts neither cut off nor on each other; points at the heights of their rates."""
    made = [('ladder', 'transpose', '--small'), ('bench', 'softmax', '--backend', 'emu', '--shape', '64x1024')] if has_kernels() else []
    for words in [('roofline', 'rmsnorm', '8192x4096', '--device', 'h200'), ('roofline', 'gemm', '4096x4096x4096', '--device', 'h100,t4'), AUDIT, *made,
                  ('model', 'llama-3-8b', '--phase', 'decode'), ('profile', '--import', os.path.join(ROOT, 'tests/data/ncu/h200-full-raw.csv'))]:
        done = sol(*words, '--json', '--svg', 'picture.svg')
        same(done.returncode, 0, f'{words} --svg')
        tree = xml.etree.ElementTree.parse('picture.svg')
        texts = [node.text for node in tree.iter('{http://www.w3.org/2000/svg}text')]
        page.open('file://' + os.path.abspath('picture.svg'), ready='true')
        same(page.ask(OVERLAPS.replace('document.querySelectorAll', '[document.documentElement].concat').replace("('svg')", '([])')), [], f'{words}: texts of the SVG')
        data = json.loads(done.stdout)
        if words[0] == 'ladder':
            for rung in data['ladders'][0]['rungs']:
                check(f'{rung["predicted"]["of_light"] * 100:.1f}%' in texts, f'{rung["rung"]}: its share is not in the SVG')
        elif words[0] == 'model':
            wide = [float(node.get('width')) for node in list(tree.iter('{http://www.w3.org/2000/svg}rect'))[1:]]
            check(abs(sum(wide) - 740) < 1, f'the parts of the pass are {sum(wide)} pixels')
            check(abs(wide[5] - 740 * data['kernels'][5]['time_us'] / data['total_us']) < 0.1, 'the width of a part')
        elif words[0] == 'bench':
            same(texts.count('1.00x'), len([c for c in data['cases'] if c['to_ideal'] == 1]), 'cases of a benchmark')
        elif isinstance(data, dict) and 'work' in data:
            heights = [(t.text, float(t.get('y'))) for t in tree.iter('{http://www.w3.org/2000/svg}text')]
            ten, one = dict(heights)['10 TB/s'], dict(heights)['1 TB/s']
            want = one + (ten - one) * math.log10(data['bytes'] / data['time_us'] * 1e6 / 1e12)
            check(any(name == '1' and abs(y - want) < 0.2 for name, y in heights), f'{words}: the point is not at {want}')
    same(sol('ladder', '--svg', 'none.svg').returncode, 2, '--svg of a list')


def test_profile(page, root):
    data = result('profile', '--import', os.path.join(root, 'tests/data/ncu/h200-full-raw.csv'))
    look(page, 'profile')
    same(figures(page, 'roof_share'), [k['roof_share'] for k in data['kernels']], 'profile: shares of roofs')


HOSTILE = ['<img src=x onerror="window.taken=1">', '</script><script>window.taken=2</script>', '"><svg onload=window.taken=3>',
           "'; window.taken=4; '", '\u202egnp.exe\u202c', 'a\u2028b\u2029c', '<!--<script>', 'javascript:window.taken=5', '&lt;b&gt;', '{{data}}']


def hostile_bill():
    lines = [{'file': HOSTILE[0], 'line': i + 1, 'share': 0.1, 'source': name, 'access': {'instruction': name, 'memory': 'global', 'layout': name}}
             for i, name in enumerate(HOSTILE)]
    findings = [{'rule': name, 'file': name, 'line': 1, 'message': name, 'fix': name, 'evidence': name, 'gain': 2, 'saved_us': 1} for name in HOSTILE]
    kernels = [{'name': name, 'bound': name, 'time_us': 10 - i, 'light_us': 1, 'tax': 2, 'dram_bytes': 10, 'flops': 5, 'lines': lines,
                'findings': findings, 'terms': {name: 3}, 'shapes': [{'grid': name}, {'grid': name}]} for i, name in enumerate(HOSTILE)]
    return {'schema': 1, 'input': HOSTILE[0], 'device': HOSTILE[1], 'kernels': kernels, 'notes': HOSTILE, 'gate': [],
            'roofs': {'hbm': 3e12, 'vector_fp32': 6e13}, HOSTILE[0]: HOSTILE[1], '__proto__': {'taken': 6}}


def test_hostile(page):
    view(hostile_bill(), hostile_bill())
    for address in ('', '#d=0', '#d=0&k=1&l=2', '#d=1&k=4'):
        page.open('file://' + os.path.abspath('report.html') + address)
        page.ask('document.querySelectorAll("details").forEach(d => d.open = true)')
        page.settle()
        same(page.ask('typeof window.taken'), 'undefined', f'a name was run at {address}')
        same(page.ask('document.querySelectorAll("main img, main script, svg[onload]").length'), 0, f'a name became markup at {address}')
        same(page.errors(), [], f'hostile names: errors at {address}')
    names = page.ask('[...document.querySelectorAll("[data-kernel] a")].map(a => a.textContent)')
    want = [''.join(f'\\u{ord(c):04x}' if c in '\u202e\u202c\u2028\u2029' else c for c in name) for name in HOSTILE]
    same(names, want, 'names are shown as text')
    title = page.ask('document.title')
    check(HOSTILE[0] in title and HOSTILE[1] in title, f'title {title!r}')


ODD_ACCESSES = [{'instruction': 'x', 'memory': m, 'width': w, 'lane_offsets': o, 'layout': 'strided', 'stride_bytes': 1e300}
                for m in ('shared', 'global') for w in (1e15, -4) for o in ([1e300, -5, 'x', None], None)]


def test_odd_shapes(page):
    """JSON of the wrong shape leaves a message or an empty view, and the tree of all figures."""
    for doc in ({'schema': 1, 'kernels': 5, 'gate': 1}, {'schema': 1, 'kernels': [None, 3, 'x', {'lines': [1, None, {'line': 'x'}]}]},
                {'schema': 1, 'ladders': [{'rungs': [{'code': 5, 'predicted': 'x'}]}]}, {'schema': 1, 'cases': [1, None, {'to_light': 'x'}]},
                {'schema': 1, 'terms': None, 'work': []}, {'schema': 1, 'kernels': [], 'phase': 1}, {'schema': 1},
                {'schema': 1, 'kernels': [{'lines': [{'file': 'a', 'line': i, 'access': a} for i, a in enumerate(ODD_ACCESSES)]}], 'gate': []},
                {'schema': 1, 'blocks_by': 5, 'max_warps_per_sm': 1e12, 'warps_per_block': -3, 'sweeps': {'regs': [{'regs': -5}, {'regs': 1e308, 'occupancy': 'x'}]}}, {'schema': 1, 'sweep': [1, None, {}]},
                {'schema': 1, 'model': {}, 'rows': [{'possible': 1, 'ttft_us': -1, 'device': HOSTILE[0]}, {'possible': 'x', 'tpot_us': 1e300}]},
                {'schema': 1, 'work': HOSTILE[0], 'terms': {}, 'unfused': {'kernels': [{}, {'name': HOSTILE[1], 'bytes_read': 1e300, 'bytes_written': -1}], 'bytes': 'x'}},
                {'schema': 1, 'kernels': [{'time_us': 1e308, 'dram_bytes': 1e-300, 'flops': -5, 'lines': [], 'findings': [{}]}], 'roofs': {'hbm': 1e300}}):
        view(doc)
        page.open('file://' + os.path.abspath('report.html'))
        page.ask("document.querySelectorAll(\"[data-line]\").forEach(line => line.click())")
        check('All figures' in page.ask('document.body.textContent'), f'{doc}: nothing is shown')
        same(page.errors(), [], f'{doc}: errors')


def test_policy(page):
    page.ask('window.refused = []; addEventListener("securitypolicyviolation", e => refused.push(e.violatedDirective))')
    page.ask('fetch("http://127.0.0.1:9/").catch(() => 0)')
    page.ask('document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/x.png"}))')
    page.settle()
    same(sorted(page.ask('refused')), ['connect-src', 'img-src'], 'what the policy refuses')


def test_keyboard(page):
    view(hostile_bill())
    page.open('file://' + os.path.abspath('report.html'))
    page.ask('document.querySelectorAll("[data-kernel] a")[2].focus()')
    page.key('Enter')
    same(page.ask('document.querySelector(".kernels .on").dataset.kernel'), '2', 'Enter chooses a kernel')
    stops = set()
    page.open('file://' + os.path.abspath('report.html'))
    for _ in range(30):
        page.key('Tab')
        stops.add(page.ask('document.activeElement.id || document.activeElement.getAttribute("class") || document.activeElement.tagName'))
    for stop in ('theme', 'd0', 'BUTTON', 'long kernels', 'mono'):
        check(stop in stops, f'Tab never reaches {stop}: {stops}')
    page.ask('document.getElementById("theme").focus()')
    before = page.ask('getComputedStyle(document.body).backgroundColor')
    page.key('Enter')
    check(page.ask('getComputedStyle(document.body).backgroundColor') != before, 'the theme does not change')


def test_large(page):
    lines = [{'file': 'big.cu', 'line': i + 1, 'share': 1 / (i + 2), 'sectors': 8, 'ideal_sectors': 4, 'requests': 1, 'dram_bytes': i} for i in range(20000)]
    kernels = [{'name': f'kernel_{i}', 'time_us': 1000 - i, 'kernel_us': 900 - i, 'light_us': 1, 'tax': 2, 'bound': 'dram', 'flops': i, 'dram_bytes': i + 1, 'lines': lines if i == 499 else lines[:3], 'findings': []} for i in range(500)]
    view({'schema': 1, 'input': 'big.cu', 'device': 'h200', 'kernels': kernels, 'roofs': {'hbm': 3e12, 'vector_fp32': 6e13},
          'sources': [{'file': 'big.cu', 'first': 1, 'text': '\n'.join(f'y[{i}] = x[{i}];' for i in range(20000))}]})
    start = time.monotonic()
    page.open('file://' + os.path.abspath('report.html') + '#k=499')
    print(f'500 kernels and 20,000 lines: open after {time.monotonic() - start:.2f} s')
    nodes = page.ask('document.querySelectorAll("*").length')
    check(nodes < 12000, f'{nodes} elements for what a screen shows')
    page.ask('document.querySelector(".lines").scrollTop = 1e9')
    page.settle()
    page.settle()
    same(page.ask('[...document.querySelectorAll(".lines [data-line]")].pop().dataset.line'), '20000', 'the last line, scrolled to')
    page.ask('document.querySelector(".kernels").scrollTop = 1e9')
    page.settle()
    page.settle()
    same(page.ask('[...document.querySelectorAll("[data-kernel] a")].pop().textContent'), 'kernel_499', 'the last kernel, scrolled to')
    page.open('file://' + os.path.abspath('report.html') + '#k=499&l=15000')
    same(page.ask('document.querySelector(".lines .on").dataset.line'), '15000', 'a line far down, by the address')


def in_browser(root):
    page = browser.Browser()
    try:
        for test in (test_audit, test_line_link, test_roofline, test_unfused, test_occupancy, test_printed, test_devices, test_model, test_choice, test_ladder, test_hostile, test_policy,
                     test_odd_shapes, test_keyboard, test_large, test_svg):
            test(page)
        test_stored(page, root)
        test_profile(page, root)
        test_live(page)
    finally:
        page.close()


def main():
    root = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in ('scale.ptx', 'scale.cu'):
            shutil.copy(os.path.join(root, 'examples', name), folder)
        os.chdir(folder)
        test_errors()
        test_self_contained()
        test_serve()
        if os.path.basename(os.path.dirname(SOL)) == 'asan':
            view(hostile_bill(), hostile_bill())  # the sanitizers watch the tool, not the browser
        elif browser.program():
            in_browser(root)
        else:
            COUNT['skipped'] += 17
            print('skipped: no chromium to open reports in')
        os.chdir(root)
    print(f'{COUNT["passed"]} passed, {COUNT["failed"]} failed' + (f', {COUNT["skipped"]} skipped' if COUNT['skipped'] else ''))
    return COUNT['failed'] > 0


if __name__ == '__main__':
    sys.exit(main())
