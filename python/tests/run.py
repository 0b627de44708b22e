"""Runs the tests here with unittest, and adds them up as tests/run.sh wants it; pytest runs them as well."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    sys.path.insert(0, HERE)
    names = sys.argv[1:] or sorted(f[:-3] for f in os.listdir(HERE) if f.startswith("test_"))
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(name) for name in names)
    result = unittest.TextTestRunner(sys.stdout, verbosity=1).run(suite)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    for reason in sorted({reason for _, reason in result.skipped}):
        print(f"skipped: {reason}")
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
