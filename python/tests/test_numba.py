import unittest

import common
import sol
from common import near, numpy as np

try:
    from numba import cuda

    import numba_kernels as kernels

    cuda.compile_ptx(lambda x: None, (__import__("numba").float32[::1],), cc=(9, 0))
    missing = None
except ImportError:
    missing = "Numba is not installed"
except Exception as error:  # no NVVM
    missing = f"Numba cannot compile here: {type(error).__name__}"


@unittest.skipIf(missing, missing)
class Numba(unittest.TestCase):
    def test_scale(self):
        x, y = np.arange(1000, dtype="f4"), np.zeros(1000, "f4")
        with sol.audit(device="h100") as bill:
            kernels.scale[8, 128](x, y, np.float32(2.5))
        near(y, 2.5 * x)
        (kernel,) = bill.kernels
        self.assertEqual((kernel.name, kernel.shape), ("scale", "grid 8,1,1 block 128,1,1"))
        line = max(kernel.lines, key=lambda line: line.requests)
        self.assertIn("y[i] = x[i] * a", line.source)
        self.assertEqual(line.sectors, 2 * 1000 * 4 // 32)

    def test_two_axes_and_shared_memory(self):
        x = np.arange(64 * 96, dtype="f4").reshape(64, 96)
        y = np.zeros((96, 64), "f4")
        with sol.audit() as bill:
            kernels.transpose[(3, 2), (32, 32)](x, y)
        near(y, x.T)
        self.assertGreater(bill.kernels[0].json["shared_load"]["requests"], 0)
        with sol.audit() as bill:
            kernels.transpose[(3, 2), (32, 32)](x[:, ::-1], y)  # strides are part of the argument
        near(y, x[:, ::-1].T)

    def test_scalars(self):
        out = np.zeros(3)
        with sol.audit():
            kernels.scalars[1, 1](out, -(1 << 40), 0.1, True)
        near(out, [-float(1 << 40), 0.1, 1])

    def test_what_is_refused(self):
        with self.assertRaisesRegex(sol.KernelFault, "out of bounds.*numba_kernels.py"):
            with sol.audit():
                kernels.scale_unguarded[8, 128](np.zeros(1000, "f4"))
        with self.assertRaisesRegex(sol.UnsupportedError, "pair: arguments of type"):
            with sol.audit():
                kernels.first[1, 1](np.zeros(4), (1, 2))


if __name__ == "__main__":
    unittest.main()
