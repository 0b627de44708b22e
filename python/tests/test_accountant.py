import os
import subprocess
import sys
import unittest
from unittest import mock

import common
import sol


class Accountant(unittest.TestCase):
    def test_devices(self):
        self.assertGreater(len(sol.devices()), 10)
        (h100,) = sol.devices("h100")
        self.assertEqual((h100.id, h100.arch, h100.cc, h100.sms), ("h100-sxm", "sm_90", 90, 132))
        self.assertIsNone(h100.base_clock)  # not published
        self.assertIn("mem_bandwidth", h100.sources)
        with self.assertRaises(AttributeError):
            h100.nothing

    def test_roofline(self):
        r = sol.roofline("rmsnorm", (8192, 4096), device="h100", dtype="bf16")
        self.assertEqual(r.bytes, 2 * 8192 * 4096 * 2 + 4096 * 2)
        self.assertEqual(r.bound, "memory")
        self.assertAlmostEqual(r.time_us, max(r.terms["memory_us"], r.terms["compute_us"]) + r.terms["launch_us"])
        self.assertEqual(sol.roofline("rmsnorm", "8192x4096").bytes, r.bytes)
        self.assertEqual(sol.roofline(bytes=4e7, flops=5e6, launches=3).launches, 3)
        self.assertLess(sol.roofline(bytes=4e7, flops=5e6, graph=True).time_us, sol.roofline(bytes=4e7, flops=5e6).time_us)

    def test_occupancy(self):
        o = sol.occupancy(256, regs=64, device="a100")
        self.assertEqual((o.blocks_per_sm, o.limiter, o.occupancy), (4, "registers", 0.5))

    def test_model(self):
        m = sol.model("llama-3-8b", phase="decode", batch=8)
        self.assertEqual(m.phase, "decode")
        self.assertAlmostEqual(sum(k.time_us for k in m.kernels) + m.launch_us, m.total_us, delta=1e-6 * m.total_us)

    def test_messages_are_the_tools(self):
        for call, words in [
            (lambda: sol.roofline("rmsnorn", (1, 2)), "nearest: rmsnorm"),
            (lambda: sol.devices("nix"), "unknown device 'nix'"),
            (lambda: sol.roofline("rmsnorm", (1, 2), colour=1), "unknown option '--colour'"),
        ]:
            with self.assertRaisesRegex(sol.ArgumentError, words):
                call()
        self.assertTrue(issubclass(sol.ArgumentError, ValueError))

    def test_no_tool(self):
        with mock.patch.dict(os.environ, {"SOL": "/nowhere/sol"}):
            with self.assertRaisesRegex(sol.MissingError, "SOL=/nowhere/sol.*make"):
                sol.devices()

    def test_the_tool_is_found_in_path(self):
        """A copy of the package that knows no tree: PATH is looked at, and its absence is said."""
        package = os.path.dirname(sol.__file__)
        code = (
            "import sys, types, importlib; p = types.ModuleType('sol'); p.__path__ = [sys.argv[1]]; sys.modules['sol'] = p\n"
            "f = importlib.import_module('sol._find'); f._PACKAGE = f.pathlib.Path('/nowhere/a/b'); print(f.tool())"
        )
        env = {k: v for k, v in os.environ.items() if k != "SOL"}
        tool = str(sol._find.tool())

        def run(path):
            return subprocess.run([sys.executable, "-c", code, package], env={**env, "PATH": path}, capture_output=True, text=True)

        self.assertEqual(run(os.path.dirname(tool)).stdout.strip(), tool)
        missing = run("/nowhere")
        self.assertIn("MissingError: the sol tool is not there (looked for it in: /nowhere/a/b/_bundle/sol", missing.stderr)


if __name__ == "__main__":
    unittest.main()
