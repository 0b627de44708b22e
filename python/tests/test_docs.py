import os
import re
import subprocess
import sys
import tempfile
import unittest

import common

ACCOUNTANT = 1  # blocks of the page that need nothing but the tool


def blocks():
    with open(os.path.join(common.TREE, "docs", "python.md")) as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)


class Page(unittest.TestCase):
    """The Python that docs/python.md shows runs, from top to bottom as one program."""

    def run_blocks(self, some):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scale.py")  # a file: Triton reads its source
            with open(path, "w") as file:
                file.write("".join(some))
            done = subprocess.run([sys.executable, "-W", "ignore", path], cwd=common.TREE, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_accountant(self):
        self.run_blocks(blocks()[:ACCOUNTANT])

    def test_torch(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("torch is not installed")
        printed = self.run_blocks(["import sol\n", *(block for block in blocks() if "sol.torch" in block)])
        self.assertIn("1 x LayerNorm -> layernorm", printed)
        self.assertIn("1 (Linear)", printed)

    def test_all(self):
        try:
            import numpy  # noqa: F401
            import triton  # noqa: F401
        except ImportError:
            self.skipTest("Triton is not installed (SOL_TEST_TRITON=1 installs it)")
        calls = "import sol\ntest_scale(sol.assert_bill, sol.audit)\ntest_scale_again()\n"
        printed = self.run_blocks([*blocks()[ACCOUNTANT:4], "x, y = np.ones(99_984, 'f4'), np.ones(99_984, 'f4')\n",
                                   re.search(r"@triton.jit\ndef scale.*?\n\n", blocks()[ACCOUNTANT], re.S).group(0),
                                   blocks()[4], calls, blocks()[5]])
        for line in ("scale (BLOCK=1024, num_warps=4, num_stages=3)", "16.0 (4.0)", "uncoalesced, scale.py:", "Fix: Where lanes are 16 bytes apart"):
            self.assertIn(line, printed)


if __name__ == "__main__":
    unittest.main()
