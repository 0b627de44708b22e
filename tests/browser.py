"""A headless Chromium, driven through --remote-debugging-pipe by the standard library alone."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def program():
    return next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='sol-browser-')
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
                 '--disable-background-networking', '--disable-component-update', '--hide-scrollbars',
                 '--user-data-dir=' + self.folder, '--remote-debugging-pipe', 'about:blank']
        # The protocol is on descriptors 3 and 4.
        command = ['bash', '-c', f'exec "$@" 3<&{to_read} 4>&{to_write}', 'browser', program(), *flags]
        self.process = subprocess.Popen(command, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.events, self.session = 0, b'', [], None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(domain + '.enable')

    def close(self):
        os.close(self.to)  # the browser ends with its pipe
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while b'\0' not in self.buffer:
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError('the browser does not answer')
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise EOFError('the browser has gone')
            self.buffer += piece
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self.to, data):]
        while True:
            answer = self.receive(300)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            self.events.append(answer)

    def ask(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(f'{expression}: {result["exceptionDetails"]}')
        return result['result'].get('value')

    def size(self, width, height=900):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, url, ready='document.documentElement.dataset.ready === "yes"'):
        """Opens a page and waits until `ready` holds and it has been laid out."""
        self.events.clear()
        self.call('Page.navigate', url='about:blank')
        self.call('Page.navigate', url=url)
        self.arrive(f'location.href !== "about:blank" && ({ready})')
        self.settle()

    def settle(self):
        self.ask('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))')

    def key(self, name, **more):
        self.press(name, **more)
        self.settle()

    def press(self, name, **more):
        """A key that may lead to another page."""
        codes = {'Tab': 9, 'Enter': 13, 'Space': 32, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40}
        press = {'key': ' ' if name == 'Space' else name, 'code': name, 'windowsVirtualKeyCode': codes[name], **more}
        self.call('Input.dispatchKeyEvent', type='keyDown', text='\r' if name == 'Enter' else '', **press)
        self.call('Input.dispatchKeyEvent', type='keyUp', **press)

    def arrive(self, ready):
        """Waits until `ready` holds on whichever page there is by then."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                if self.ask(f'document.readyState === "complete" && ({ready})'):
                    return
            except RuntimeError:  # it was asked of the page that is left
                pass
            time.sleep(0.02)
        raise TimeoutError(f'never: {ready}')

    def shot(self, path, most=8000):
        height = self.ask('document.documentElement.scrollHeight')
        width = self.ask('innerWidth')
        data = self.call('Page.captureScreenshot', captureBeyondViewport=True,
                         clip={'x': 0, 'y': 0, 'width': width, 'height': min(height, most), 'scale': 1})['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))

    def requests(self):
        return [e['params']['request']['url'] for e in self.events if e.get('method') == 'Network.requestWillBeSent']

    def errors(self):
        return [e['params'] for e in self.events if e.get('method') in ('Runtime.exceptionThrown', 'Log.entryAdded')]
