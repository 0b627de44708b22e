import base64
import csv
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

import common
import sol

TEST = """
import sol
BILL = sol.audit({scale!r}, kernel="contiguous_scale", grid=4, block=64,
                 args=["out:f32[256]", "f32[256]", "f32[64]", 256, 64])

def test_within(assert_bill):
    assert_bill(BILL, max_tax=100)

def test_beyond(assert_bill, sol_audit):
    assert sol_audit is sol.audit
    assert_bill(BILL, max_tax=0.5)
"""


class Plugin(unittest.TestCase):
    def test_fixtures(self):
        if importlib.util.find_spec("pytest") is None:
            self.skipTest("pytest is not installed")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "test_it.py"), "w") as file:
                file.write(TEST.format(scale=common.SCALE))
            # Where the package is not installed, pytest is told of the plug-in.
            words = [] if self._is_installed() else ["-p", "sol.pytest_plugin"]
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, folder],
                                  capture_output=True, text=True)
        self.assertIn("1 failed, 1 passed", done.stdout, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "contiguous_scale: tax .*x, at most 0.5x is allowed")

    @staticmethod
    def _is_installed():
        from importlib import metadata

        return any(point.value == "sol.pytest_plugin" for point in metadata.entry_points(group="pytest11"))


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        spec = importlib.util.spec_from_file_location("backend", os.path.join(common.TREE, "python", "backend.py"))
        cls.backend = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.backend)

    def build(self, folder, **env):
        with mock.patch.dict(os.environ, env):
            return os.path.join(folder, self.backend.build_wheel(folder))

    def check_record(self, wheel):
        with zipfile.ZipFile(wheel) as file:
            record = next(name for name in file.namelist() if name.endswith("/RECORD"))
            listed = {row[0]: row[1:] for row in csv.reader(file.read(record).decode().splitlines())}
            self.assertEqual(set(listed), set(file.namelist()))
            for name, (digest, size) in listed.items():
                if name != record:
                    data = file.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, int(size)), ("sha256=" + expected, len(data)))
            return file.namelist()

    def test_plain(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = self.build(folder, SOL_BUNDLE="")
            self.assertTrue(wheel.endswith(f"sol-{sol.__version__}-py3-none-any.whl"))
            names = self.check_record(wheel)
            self.assertTrue({"sol/py.typed", "sol/_built.txt", "sol/_triton.py"} <= set(names))

    def test_bundled(self):
        """The tool and the library inside, executable; tagged by the newest glibc that they ask for."""
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made")
            os.mkdir(made)
            with self.assertRaisesRegex(SystemExit, "run make first"):
                self.build(folder, SOL_BUNDLE="1", SOL_BUILD=made)
            shim = [f"shim/lib{name}" for name in ("cudart.so.13", "cuda.so.1", "curand.so.10", "cufft.so.12", "solredirect.so")]
            os.mkdir(os.path.join(made, "shim"))
            for name, version in (("sol", b"2.17"), ("libsol.so.0.2", b"2.34"), *((name, b"2.17") for name in shim)):
                with open(os.path.join(made, name), "wb") as file:
                    file.write(b"\x7fELF\0GLIBC_" + version + b"\0GLIBC_2.2.5\0")
            wheel = self.build(folder, SOL_BUNDLE="1", SOL_BUILD=made)
            self.assertRegex(wheel, r"-py3-none-manylinux_2_34_\w+\.whl$")
            self.assertTrue({f"sol/_bundle/{name}" for name in ("sol", "libsol.so.0.2", *shim)} <= set(self.check_record(wheel)))
            with zipfile.ZipFile(wheel) as file:
                self.assertEqual(file.getinfo("sol/_bundle/sol").external_attr >> 16, 0o100755)

    def test_every_stand_in_is_bundled(self):
        """What the Makefile builds beside the shim goes into the wheel."""
        built = os.path.join(os.path.dirname(os.environ.get("SOL") or os.path.join(common.TREE, "build", "sol")), "shim")
        if not os.path.isdir(built):
            self.skipTest("the shim is not built")
        with mock.patch.dict(os.environ, SOL_BUILD=os.path.dirname(built)):
            bundled = {name for name in self.backend._bundle() if name.startswith("shim/")}
        self.assertEqual(bundled, {f"shim/{name}" for name in os.listdir(built)})

    def test_versions_agree(self):
        with open(os.path.join(common.TREE, "include", "sol", "version.h")) as file:
            version = re.search(r'SOL_VERSION "([^"]+)"', file.read()).group(1)
        self.assertEqual((sol.__version__, self.backend._project()["version"]), (version, version))


if __name__ == "__main__":
    unittest.main()
