import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import common
import sol
from common import SCALE, needs_numpy, numpy as np
from sol.advice import TRITON

SPIN = """
import signal, sol, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
print("ready", flush=True)
try:
    sol.audit(sys.argv[1], kernel="spin", grid=1, block=32, args=[])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
ARGS = ["out:f32[128*64]", "f32[128*64]", "f32[64]", 128, 64]


class Objects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bill = sol.audit(SCALE, kernel="column_scale", grid=(1, 64), block=128, args=ARGS)

    def test_kernel(self):
        (kernel,) = self.bill.kernels
        self.assertEqual((kernel.name, kernel.launches, kernel.shape), ("column_scale", 1, "grid 1,64,1 block 128,1,1"))
        self.assertEqual(kernel, self.bill.kernel("column_scale"))
        self.assertAlmostEqual(kernel.tax, kernel.time_us / kernel.light_us)
        self.assertEqual(self.bill.time_us, kernel.time_us)
        with self.assertRaisesRegex(KeyError, "column_scale"):
            self.bill.kernel("nix")

    def test_lines_and_findings(self):
        line = max(self.bill.lines, key=lambda line: line.sectors)
        self.assertEqual((line.place, line.requests, line.sectors), ("scale.cu:8", 768, 256 * 65))
        finding = self.bill.findings[0]
        self.assertEqual((finding.rule, finding.place), ("column_walk", "scale.cu:8"))
        self.assertGreater(finding.gain, 1)
        self.assertIn("threadIdx.x", finding.fix)
        self.assertEqual(self.bill.json["kernels"][0]["name"], "column_scale")

    def test_text(self):
        text = str(self.bill)
        for words in ["1 kernel on h100-sxm", "column_scale", "tax", "scale.cu:8", "Fix: Let threadIdx.x", "exact: requests"]:
            self.assertIn(words, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 120)

    def test_html(self):
        text = self.bill._repr_html_()
        self.assertIn("<td>scale.cu:8</td>", text)
        self.assertIn("row &lt; rows", text)  # the source is escaped
        self.assertEqual(text.count("<table>"), text.count("</table>"))

    def test_pandas(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        table = self.bill.to_pandas()
        self.assertEqual(len(table), len(self.bill.lines))
        self.assertEqual(table["sectors"].sum(), sum(line.sectors for line in self.bill.lines))

    def test_steady(self):
        """One of many alike, each on other memory: what it leaves in L2, as much is written back while it runs."""
        steady = sol.audit(SCALE, kernel="column_scale", grid=(1, 64), block=128, args=ARGS, steady=True)
        self.assertEqual(steady.json["kernels"][0]["dram_bytes"] - self.bill.json["kernels"][0]["dram_bytes"], 4 * 128 * 64)
        with self.assertRaisesRegex(sol.ArgumentError, "--steady is for a single kernel"):
            sol.audit(sys.executable, steady=True)

    def test_text_is_ptx(self):
        with open(SCALE) as file:
            text = file.read()
        again = sol.audit(text, kernel="column_scale", grid=(1, 64), block=128, args=ARGS)
        self.assertEqual(again.kernels[0].time_us, self.bill.kernels[0].time_us)


class Errors(unittest.TestCase):
    def test_bad_input(self):
        with self.assertRaisesRegex(sol.ArgumentError, "takes 5 arguments, 1 given"):
            sol.audit(SCALE, kernel="column_scale", grid=1, block=1, args=[1])
        with self.assertRaisesRegex(sol.ArgumentError, "cannot open"):
            sol.audit("/nowhere/k.ptx", kernel="k", grid=1, block=1)
        with self.assertRaisesRegex(TypeError, "arch"):
            sol.audit(SCALE, arch=80)

    def test_fault(self):
        with self.assertRaisesRegex(sol.KernelFault, "out of bounds.*scale.cu:8") as caught:
            sol.audit(SCALE, kernel="column_scale", grid=(1, 64), block=128, args=["out:f32[16]", *ARGS[1:]])
        self.assertEqual(caught.exception.bill.kernels[0].name, "column_scale")

    def test_interrupt(self):
        """Ctrl-C inside an audit: KeyboardInterrupt, and the tool and its files are gone."""
        with self._spinning() as (child, kept):
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.communicate()[0], "interrupted\n")
            self.assertEqual(child.returncode, 0)
            self._wait_for(lambda: not os.listdir(kept))

    def test_killed(self):
        """A Python that is killed takes its tool with it."""
        with self._spinning() as (child, _):
            child.kill()
            child.communicate()

    @contextlib.contextmanager
    def _spinning(self):
        """A Python that audits a kernel without an end, and its folder for temporary files; its tool must be gone afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            spin, kept = os.path.join(folder, "spin.ptx"), os.path.join(folder, "tmp")
            with open(spin, "w") as file:
                file.write(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry spin()\n{\nA: bra A;\n}\n")
            os.mkdir(kept)
            child = subprocess.Popen([sys.executable, "-c", SPIN, spin], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": kept})
            self.assertEqual(child.stdout.readline(), "ready\n")
            self._wait_for(lambda: self._tools(spin))
            try:
                yield child, kept
                self._wait_for(lambda: not self._tools(spin))
            finally:
                for pid in self._tools(spin):
                    os.kill(int(pid), signal.SIGKILL)

    def test_interrupt_while_the_tool_starts(self):
        """SIGINT before Popen has returned: the process that it made is ended all the same."""
        made, start = [], subprocess.Popen
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

        def interrupted(*args, **options):
            made.append(start(*args, **options))
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)  # a handler runs here at the latest
            return made[0]

        with mock.patch.object(subprocess, "Popen", interrupted), self.assertRaises(KeyboardInterrupt):
            sol.devices()
        self.assertIsNotNone(made[0].returncode)

    def _wait_for(self, happened):
        """A net against hangs: how long it takes says nothing."""
        end = time.monotonic() + 600
        while not happened():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    @staticmethod
    def _tools(spin):
        """Processes that run sol on that file."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"audit" in words and spin.encode() in words:
                found.append(pid)
        return found


class Advice(unittest.TestCase):
    def test_every_rule_has_tritons_words(self):
        with open(os.path.join(common.TREE, "src", "audit", "rules.def")) as file:
            rules = set(re.findall(r"^RULE\((\w+)", file.read(), re.M))
        self.assertEqual(rules, set(TRITON))
        self.assertFalse([rule for rule, text in TRITON.items() if "threadIdx" in text or "blockDim" in text])


@needs_numpy
class Arrays(unittest.TestCase):
    def scale(self, y, x, scale, n, **more):
        return sol.audit(SCALE, kernel="contiguous_scale", grid=-(-n // 64), block=64, args=[y, x, scale, n, len(scale)], **more)

    def test_results_come_back(self):
        x, scale = np.arange(256, dtype="f4"), np.arange(64, dtype="f4")
        y = np.full(256, -1, "f4")
        self.scale(y, x, scale, 256)
        common.near(y, x * np.tile(scale, 4))

    def test_views_overlap_as_here(self):
        both, scale = np.arange(512, dtype="f4"), np.full(64, 2, "f4")
        before = both.copy()
        self.scale(both[256:], both[:256], scale, 256)
        common.near(both, np.concatenate([before[:256], 2 * before[:256]]))
        self.scale(both, both, scale, 512)  # in place
        common.near(both[:256], 2 * before[:256])

    def test_read_only(self):
        x, scale = np.arange(64, dtype="f4"), np.full(64, 2, "f4")
        y = np.zeros(64, "f4")
        x.flags.writeable = y.flags.writeable = False
        with self.assertRaisesRegex(sol.ArgumentError, "contiguous_scale writes to arg0, which is read-only"):
            self.scale(y, x, scale, 64)
        self.assertFalse(y.any())
        y = np.zeros(64, "f4")
        self.scale(y, x, scale, 64)  # reading it is fine
        common.near(y, 2 * x)

    def test_out_of_bounds(self):
        with self.assertRaises(sol.KernelFault):
            self.scale(np.zeros(16, "f4"), np.zeros(64, "f4"), np.zeros(64, "f4"), 64)


if __name__ == "__main__":
    unittest.main()
