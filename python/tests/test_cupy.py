import importlib.util
import os
import shutil
import subprocess
import types
import unittest
import warnings

import common
import sol
from common import near, numpy as np

CODE = """extern "C" __global__ void axpy(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += SIGN a * x[i * STRIDE % n];
}
"""


def raw_kernel():
    """CuPy's own where it is installed; else an object with the attributes that its documentation lists."""
    options = ("-DSIGN=-", "-DSTRIDE=1")
    if importlib.util.find_spec("cupy"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a GPU
            import cupy
        return cupy.RawKernel(CODE, "axpy", options=options)
    return types.SimpleNamespace(code=CODE, name="axpy", options=options, file_path=None)


def has_nvcc():
    script = os.path.join(common.TREE, "scripts", "cuda-env")
    return shutil.which("sh") and subprocess.run([script, "nvcc"], stdout=subprocess.DEVNULL, check=False).returncode == 0


@common.needs_numpy
@unittest.skipUnless(has_nvcc(), "nvcc is not installed")
class RawKernel(unittest.TestCase):
    def test_results_and_bill(self):
        x, y = np.arange(1000, dtype="f4"), np.ones(1000, "f4")
        bill = sol.audit(raw_kernel(), grid=8, block=128, args=[y, x, np.float32(0.5), 1000], device="h200")
        near(y, 1 - 0.5 * x)
        (kernel,) = bill.kernels
        self.assertEqual((kernel.name, kernel.shape), ("axpy", "grid 8,1,1 block 128,1,1"))
        line = max(kernel.lines, key=lambda line: line.requests)
        self.assertIn("y[i] += SIGN a", line.source)
        self.assertEqual(line.sectors, 3 * 1000 * 4 // 32)

    def test_options_of_the_audit_come_first(self):
        x, y = np.arange(64, dtype="f4"), np.zeros(64, "f4")
        kernel = types.SimpleNamespace(code=CODE, name="axpy", options=("-DSTRIDE=1",), file_path=None)
        sol.audit(kernel, grid=1, block=64, args=[y, x, 2.0, 64], nvcc="-DSIGN=+")
        near(y, 2 * x)


if __name__ == "__main__":
    unittest.main()
