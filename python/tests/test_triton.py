import importlib.util
import inspect
import os
import tempfile
import threading
import unittest
import warnings
from unittest import mock

import common
import sol
from common import near, numpy as np

try:
    import triton
except ImportError:
    triton = None
if triton is not None and np is not None:
    import triton_kernels as kernels


def line_of(mark):
    """The line of triton_kernels.py with that mark."""
    with open(inspect.getsourcefile(kernels)) as file:
        return next(i for i, text in enumerate(file, 1) if f"MARK {mark}" in text)


def normal(*shape, dtype="f4"):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def grid(n, block):
    return (-(-n // block),)


@unittest.skipIf(triton is None or np is None, "Triton is not installed (SOL_TEST_TRITON=1 installs it)")
class Case(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")  # Triton announces changes of its defaults


class Tutorials(Case):
    """The kernels of Triton's tutorials, written anew: results beside NumPy's, and bills."""

    def test_vector_add(self):
        n = 5008  # a multiple of 16, which Triton's compiler uses
        x, y, out = normal(n), normal(n), np.full(n, -1, "f4")
        with sol.audit(device="h100") as bill:
            kernels.vector_add[lambda meta: grid(n, meta["BLOCK"])](x, y, out, n, BLOCK=1024)
        near(out, x + y)
        (kernel,) = bill.kernels
        self.assertEqual((kernel.name, kernel.shape), ("vector_add", "grid 5,1,1 block 128,1,1"))
        self.assertEqual((kernel.config["BLOCK"], kernel.config["num_warps"]), (1024, 4))
        self.assertEqual(kernel.json["instructions_from"], "machine code")  # Triton's own ptxas made it
        self.assertEqual(kernel.floor_bytes, 3 * 4 * n)
        accesses = {line.line: line.sectors for line in kernel.lines if line.requests}
        self.assertEqual(accesses, {line_of(f"add {what}"): n * 4 // 32 for what in ("load x", "load y", "store")})
        self.assertIn("tl.load(x_ptr + offsets", next(li.source for li in kernel.lines if li.line == line_of("add load x")))

    def test_softmax(self):
        x = normal(17, 781)
        out = np.empty_like(x)
        with sol.audit(device="a100") as bill:
            kernels.row_softmax[(17,)](out, x, 781, 781, BLOCK=1024)
        e = np.exp(x - x.max(1, keepdims=True))
        near(out, e / e.sum(1, keepdims=True))
        self.assertEqual(bill.device, sol.devices("a100")[0].id)
        files = {os.path.basename(line.file) for line in bill.lines if line.file}
        self.assertEqual(files, {"triton_kernels.py"})  # tl.max and tl.sum count where they are called
        waves = {line.line for line in bill.lines if line.wavefronts}
        self.assertEqual(waves, {line_of("softmax max"), line_of("softmax sum")})

    def test_layer_norm(self):
        x, w, b = normal(16, 500, dtype="f2"), normal(500), normal(500) + 1
        out = np.zeros_like(x)
        with sol.audit() as bill:
            kernels.layer_norm[(16,)](x, w, b, out, 500, 500, 1e-5, BLOCK=512, num_warps=8)
        wide = x.astype("f4")
        centred = wide - wide.mean(1, keepdims=True)
        near(out, centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * w + b, 5e-3)
        self.assertIn(line_of("helper"), {line.line for line in bill.lines})  # a function of the user's keeps its lines
        self.assertEqual(bill.kernels[0].shape, "grid 16,1,1 block 256,1,1")

    def test_dropout(self):
        x = normal(4096)
        out, again, other = (np.zeros_like(x) for _ in range(3))
        with sol.audit() as bill:
            for to, seed in ((out, 123), (again, 123), (other, 512)):
                kernels.dropout[(4,)](x, to, 4096, 0.25, seed, BLOCK=1024)
        kept = out != 0
        self.assertAlmostEqual(kept.mean(), 0.75, delta=0.05)
        near(out[kept], x[kept] / 0.75)
        np.testing.assert_array_equal(out, again)
        self.assertTrue((out != other).any())
        self.assertEqual(len(bill.kernels), 3)
        self.assertAlmostEqual(bill.time_us, sum(k.time_us for k in bill.kernels))

    def test_layer_norm_backward(self):
        rows, columns, groups = 16, 100, 4
        x, dy, w = normal(rows, columns), normal(rows, columns)[::-1].copy(), normal(columns)
        mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
        dx, dw, db = np.zeros_like(x), np.zeros((groups, columns), "f4"), np.zeros((groups, columns), "f4")
        lock = np.zeros(2 * groups, "i4")
        with sol.audit() as bill:
            kernels.layer_norm_backward[(rows,)](dx, dy, dw, db, x, w, mean, rstd, lock, columns, GROUP=groups, BLOCK=128)
        xhat, wdy = (x - mean[:, None]) * rstd[:, None], w * dy
        c1, c2 = (xhat * wdy).mean(1, keepdims=True), wdy.mean(1, keepdims=True)
        near(dx, (wdy - xhat * c1 - c2) * rstd[:, None], 1e-4)
        near(dw.sum(0), (dy * xhat).sum(0), 1e-4)
        near(db.sum(0), dy.sum(0), 1e-4)
        self.assertGreater(bill.kernels[0].json["terms"]["atomics"], 0)
        self.assertFalse(lock[:groups].any())

    def test_matmul(self):
        """mma.sync on sm_80, wgmma on sm_90: the same result, and the tensor cores' part of the time."""
        a, b = normal(128, 64, dtype="f2"), normal(64, 80, dtype="f2")
        for arch in (80, 90):
            c = np.zeros((128, 80), "f2")
            with sol.audit(device="h100", arch=arch) as bill:
                kernels.matmul[(2, 2)](a, b, c, 128, 80, 64, BM=64, BN=64, BK=32)
            near(c, a.astype("f4") @ b.astype("f4"), 2e-2)
            self.assertGreater(bill.kernels[0].json["terms"]["tensor"], 0)

    def test_matmul_by_tensor_descriptors(self):
        """Made by the kernel: plain loads on sm_80, tensor copies on sm_90, where a copy of a box is one request."""
        a, b = normal(192, 128, dtype="f2"), normal(128, 128, dtype="f2")
        requests = []
        for arch in (80, 90):
            c = np.zeros((192, 128), "f2")
            with sol.audit(device="h100", arch=arch) as bill:
                kernels.matmul_tiles[(6,)](a, b, c, 192, 128, 128, BM=64, BN=64, BK=64, GROUP=2)
            near(c, a.astype("f4") @ b.astype("f4"), 2e-2)
            requests.append(bill.kernels[0].json["global_load"]["requests"])
        self.assertLess(10 * requests[1], requests[0])


class Launches(Case):
    def test_autotune(self):
        n = 1 << 15
        x, out, count = normal(n), np.zeros(n, "f4"), np.zeros(1, "i4")
        with sol.audit(device="h200") as bill:
            kernels.tuned_scale[lambda meta: grid(n, meta["BLOCK"])](x, out, count, n)
        near(out, 3 * x)
        times = [time for _, time in bill.configs]
        self.assertEqual(len(times), len(kernels.CONFIGS))
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[-1], times[0])
        self.assertIs(bill.best_config, bill.configs[0][0])
        (kernel,) = bill.kernels  # trials are no launches of the program
        self.assertAlmostEqual(kernel.time_us, times[0])
        self.assertEqual(kernel.config["BLOCK"], bill.best_config.kwargs["BLOCK"])
        self.assertEqual(count[0], -(-n // kernel.config["BLOCK"]))
        self.assertIn("Configurations, by predicted time", str(bill))
        self.assertEqual(kernels.tuned_scale.cache, {})  # what was predicted does not stay

    def test_advice_in_tritons_words(self):
        x = normal(1 << 18)
        with sol.audit() as bill:
            kernels.by_columns[(8,)](x, np.zeros_like(x), 256, BLOCK=128)
            kernels.vector_add[(5,)](x[:4999], x[:4999], np.zeros(4999, "f4"), 4999, BLOCK=1024)
        # 4999 is no multiple of 16: the mask keeps the compiler from 16 bytes a lane, and lanes are 16 bytes apart.
        finding = next(f for f in bill.kernel("vector_add").findings if f.rule == "uncoalesced")
        self.assertIn("tl.multiple_of", finding.fix)
        rules = {finding.rule: finding for finding in bill.kernel("by_columns").findings}
        self.assertTrue({"uncoalesced", "column_walk", "gather"} & rules.keys(), rules.keys())
        for finding in rules.values():
            self.assertNotIn("threadIdx", finding.fix)
        self.assertIn("tl.", next(rules[r] for r in ("uncoalesced", "column_walk", "gather") if r in rules).fix)

    def test_scalars(self):
        out = np.zeros(4, "f4")
        with sol.audit():
            kernels.scalars[(1,)](out, np.int32(-5), -(1 << 40), np.float64(0.1), True, HALF=0.5)
        near(out, [-5, 0.1, 0.5, -128])

    def test_views(self):
        """A view's alignment is the GPU's, and results land in the view."""
        both = normal(3, 2048)
        before = both.copy()
        with sol.audit() as bill:
            kernels.vector_add[(2,)](both[0], both[1], both[2], 2048, BLOCK=1024)
            kernels.vector_add[(2,)](both[0][1:], both[0][1:], both[1][1:], 2047, BLOCK=1024)
        near(both[2], before[0] + before[1])
        near(both[1][1:], 2 * before[0][1:])
        near(both[0], before[0])
        aligned, shifted = bill.kernels
        self.assertLess(aligned.json["global_load"]["requests"], shifted.json["global_load"]["requests"])  # 16 bytes a lane

    def test_what_is_refused(self):
        x, out = normal(64), np.zeros(64, "f4")
        out.flags.writeable = False
        with self.assertRaisesRegex(sol.ArgumentError, "vector_add writes to out_ptr, which is read-only"):
            with sol.audit():
                kernels.vector_add[(1,)](x, x, out, 64, BLOCK=64)
        with self.assertRaisesRegex(sol.KernelFault, "vector_add: out of bounds.*past the end of x_ptr.*triton_kernels.py:%d" % line_of("add load x")):
            with sol.audit():
                kernels.vector_add[(1,)](x[:32].copy(), x, np.zeros(64, "f4"), 64, BLOCK=64)
        with self.assertRaisesRegex(sol.ArgumentError, "an array is of complex64"):
            with sol.audit():
                kernels.vector_add[(1,)](x.astype("c8"), x, np.zeros(64, "f4"), 64, BLOCK=64)
        with self.assertRaisesRegex(sol.ArgumentError, "h100-sxm is sm_90"):
            with sol.audit(arch=100):
                pass
        with self.assertRaisesRegex(sol.ArgumentError, "unknown device"):
            with sol.audit(device="nix"):
                pass

    def test_everything_is_undone(self):
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        before = (JITFunction.run, Autotuner.run, triton.runtime.driver._active)
        with tempfile.TemporaryDirectory() as folder:
            tempfile.tempdir = folder
            try:
                with self.assertRaises(ZeroDivisionError):
                    with sol.audit():
                        kernels.vector_add[(1,)](normal(8), normal(8), np.zeros(8, "f4"), 8, BLOCK=16)
                        1 // 0
                self.assertEqual(os.listdir(folder), [])
            finally:
                tempfile.tempdir = None
        self.assertEqual((JITFunction.run, Autotuner.run, triton.runtime.driver._active), before)
        with sol.audit():
            with self.assertRaisesRegex(sol.Error, "do not nest"):
                with sol.audit():
                    pass

    def test_interrupt(self):
        """Ctrl-C while a kernel runs: the arrays are as before, nothing stays behind, and the next audit works."""
        x, out = normal(64), np.zeros(64, "f4")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(tempfile, "tempdir", folder):
            with self.assertRaises(KeyboardInterrupt), sol.audit(), mock.patch("sol._tool.run", side_effect=KeyboardInterrupt):
                kernels.vector_add[(1,)](x, x, out, 64, BLOCK=64)
            self.assertEqual((os.listdir(folder), out.any()), ([], False))
        with sol.audit():
            kernels.vector_add[(1,)](x, x, out, 64, BLOCK=64)
        self.assertTrue(np.array_equal(out, x + x))

    def test_steady(self):
        """As one of many alike, each on other memory, a kernel pays for the writes that an empty L2 would have taken."""
        n, times = 1 << 20, []
        for options in ({}, {"steady": True}):
            with sol.audit(device="h200", sample=1, **options) as bill:
                kernels.vector_add[(n // 1024,)](*(np.zeros(n, "f4") for _ in range(3)), n, BLOCK=1024)
            kernel, = bill.kernels
            times.append(kernel.json["dram_bytes"])
        self.assertEqual(times, [8 * n, 12 * n])

    def test_the_same_kernel_in_another_file(self):
        """Triton's cache knows the text of a kernel, not its file."""
        x = normal(64)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("first.py", "second.py"):
                path = os.path.join(folder, name)
                with open(path, "w") as file:
                    file.write("import triton\nimport triton.language as tl\n@triton.jit\ndef twice(x_ptr):\n"
                               "    i = tl.arange(0, 64)\n    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)\n")
                spec = importlib.util.spec_from_file_location(name[:-3], path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                with sol.audit() as bill:
                    module.twice[(1,)](x)
                self.assertEqual({line.file for line in bill.lines}, {path})
                self.assertIn("tl.store", max(bill.lines, key=lambda line: line.requests).source)
        near(x, 4 * normal(64))

    def test_threads(self):
        """Launches of other threads are part of the audit."""
        outs = [np.zeros(64, "f4") for _ in range(3)]
        with sol.audit() as bill:
            threads = [threading.Thread(target=lambda to: kernels.vector_add[(1,)](to, to + 1, to, 64, BLOCK=64), args=(o,)) for o in outs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(bill.kernels), 3)
        near(np.array(outs), np.ones((3, 64)))

    def test_compiled_ahead(self):
        """kernel.warmup, registers and a launch of what was compiled, as the softmax tutorial does."""
        x = normal(4, 64)
        out = np.zeros_like(x)
        with sol.audit(device="h100") as bill:
            compiled = kernels.row_softmax.warmup(x, x, 64, 64, BLOCK=64, grid=(1,))
            compiled._init_handles()
            self.assertGreater(compiled.n_regs, 0)
            properties = triton.runtime.driver.active.utils.get_device_properties(0)
            self.assertEqual(properties["multiprocessor_count"], 132)
            compiled[(4, 1, 1)](out, x, 64, 64, 64)
        near(out.sum(1), np.ones(4))
        self.assertEqual(bill.kernels[0].registers, compiled.n_regs)


class Torch(Case):
    """CPU tensors in place of NumPy arrays."""

    def setUp(self):
        super().setUp()
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        self.torch = torch

    def test_tensors(self):
        torch = self.torch
        for dtype in (torch.float32, torch.bfloat16):
            both = torch.randn(3, 512).to(dtype)
            before = both.clone()
            with sol.audit(device="h100") as bill:
                kernels.vector_add[(1,)](both[0], both[1], both[2], 512, BLOCK=512)
            self.assertTrue(torch.equal(both[2], before[0] + before[1]))
            self.assertTrue(torch.equal(both[:2], before[:2]))
            self.assertEqual(bill.kernels[0].floor_bytes, 3 * 512 * both.element_size())

    def test_autotune_resets_tensors(self):
        x, count = self.torch.randn(4096), self.torch.full((1,), 99, dtype=self.torch.int32)
        out = self.torch.zeros_like(x)
        with sol.audit() as bill:
            kernels.tuned_scale[lambda meta: grid(4096, meta["BLOCK"])](x, out, count, 4096)
        self.assertTrue(self.torch.equal(out, 3 * x))
        self.assertEqual(int(count[0]), 4096 // bill.best_config.kwargs["BLOCK"])

    def test_other_devices_are_refused(self):
        with self.assertRaisesRegex(sol.ArgumentError, "a tensor is on meta"):
            with sol.audit():
                x = self.torch.empty(8, device="meta")
                kernels.vector_add[(1,)](x, x, x, 8, BLOCK=16)


class Gate(Case):
    def test_limits(self):
        with sol.audit() as bill:
            kernels.vector_add[(1,)](normal(64), normal(64), np.zeros(64, "f4"), 64, BLOCK=64)
        sol.assert_bill(bill, max_tax=100, max_time_us=100, max_sectors_per_request=32)
        with self.assertRaisesRegex(AssertionError, r"vector_add: tax .*x, at most 0.5x is allowed"):
            sol.assert_bill(bill, max_tax=0.5)
        with self.assertRaisesRegex(sol.BillError, "at most 0.1 us"):
            sol.assert_bill(bill.kernels[0], max_time_us=0.1)
        with self.assertRaisesRegex(sol.BillError, "sectors a request"):
            sol.assert_bill(bill, max_sectors_per_request=1)
        with self.assertRaisesRegex(sol.BillError, "nothing was launched"):
            sol.assert_bill(sol.Bill(), max_tax=1)
        with self.assertRaises(TypeError):
            sol.assert_bill(bill)

    def test_decorator(self):
        out = np.zeros(64, "f4")

        def launch():
            kernels.vector_add[(1,)](normal(64), normal(64), out, 64, BLOCK=64)
            return "done"

        self.assertEqual(sol.gate(max_tax=100)(launch)(), "done")
        with self.assertRaises(sol.BillError):
            sol.gate(max_tax=0.01)(launch)()


if __name__ == "__main__":
    unittest.main()
