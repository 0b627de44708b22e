"""What the tests share: where the tree is, and what may be missing."""

import os
import unittest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCALE = os.path.join(TREE, "examples", "scale.ptx")

try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = unittest.skipIf(numpy is None, "NumPy is not installed")


def near(actual, expected, tolerance=1e-5):
    numpy.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
