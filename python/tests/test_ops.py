import ctypes
import threading
import types
import unittest
from unittest import mock

import common
import sol
from sol import _dlpack, _native
from common import near, needs_numpy, numpy as np


def rows(*shape, dtype="f4", seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def rms(x, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@needs_numpy
class Results(unittest.TestCase):
    """Every operator beside NumPy's own arithmetic."""

    def test_norms(self):
        x, w, b = rows(5, 7, 64), rows(64, seed=2), rows(64, seed=3)
        near(sol.rmsnorm(x, w, eps=1e-5), rms(x, 1e-5) * w)
        near(sol.rmsnorm(x, w, weight_offset=1), rms(x, 1e-6) * (w + 1))
        near(sol.rmsnorm(x), rms(x, 1e-6))
        y, s = sol.add_rmsnorm(x, 2 * x, w)
        near(s, 3 * x)
        near(y, rms(3 * x, 1e-6) * w)
        centred = x - x.mean(-1, keepdims=True)
        near(sol.layernorm(x, w, b), rms(centred, 1e-5) * w + b)

    def test_softmax(self):
        x = rows(6, 100)
        near(sol.softmax(x), soft(x))
        near(sol.log_softmax(x), np.log(soft(x)))

    def test_losses_and_choices(self):
        x, targets = rows(6, 100), np.array([3, 0, 99, -100, 7, 7])
        gradient = np.empty_like(x)
        loss = sol.cross_entropy(x, targets, gradient=gradient, scale=0.5)
        used = targets >= 0
        near(loss[used], -np.log(soft(x))[used, targets[used]])
        self.assertEqual(loss[3], 0)
        want = (soft(x) - np.eye(100)[np.clip(targets, 0, 99)]) * 0.5 * used[:, None]
        near(gradient, want)
        values, ids = sol.topk(x, 5)
        np.testing.assert_array_equal(ids, np.argsort(-x, axis=1, kind="stable")[:, :5])
        near(values, np.take_along_axis(x, ids, 1))
        np.testing.assert_array_equal(sol.sample(x, np.arange(6), temperature=0), x.argmax(1))
        first = sol.sample(x, np.arange(6), top_k=5)
        np.testing.assert_array_equal(first, sol.sample(x, np.arange(6), top_k=5))
        self.assertTrue(all(c in row for c, row in zip(first, ids)))

    def test_quantize_and_groups(self):
        x = rows(4, 256)
        y, scales = sol.quantize(x)
        near(scales[:, 0], np.abs(x).max(1) / 127)
        near(y * scales, x, 0.02)
        y, scales = sol.quantize(x, "nvfp4")
        self.assertEqual((y.shape, scales.shape), ((4, 128), (4, 16)))
        y, scales = sol.quantize(x, "mxfp8")
        self.assertEqual((y.shape, scales.shape), ((4, 256), (4, 8)))
        z, w, b = rows(2, 6, 5), rows(6, seed=2), rows(6, seed=3)
        grouped = z.reshape(2, 3, -1)
        centred = grouped - grouped.mean(-1, keepdims=True)
        want = rms(centred, 1e-5).reshape(z.shape) * w[:, None] + b[:, None]
        near(sol.group_norm(z, 3, w, b), want)
        near(sol.reduce(z, axis="columns"), z.sum(1))

    def test_products(self):
        a, b, bias, more = rows(5, 24, dtype="f2"), rows(24, 16, dtype="f2", seed=2), rows(16, dtype="f2", seed=3), rows(5, 16, dtype="f2", seed=4)
        exact = a.astype("f4") @ b.astype("f4")
        near(sol.gemm(a, b, dtype="f4"), exact, 1e-3)
        near(sol.gemm(np.asfortranarray(a), b.T.copy().T, bias, more.astype("f4"), alpha=0.5, activation="relu", dtype="f4"),
             np.maximum(0.5 * exact + bias, 0) + more, 2e-2)
        gate, up = np.split(exact, 2, 1)
        near(sol.gemm(a, b, activation="silu_mul", dtype="f4"), gate * sigmoid(gate) * up, 1e-2)
        self.assertEqual(sol.gemm(np.stack([a, a]), np.stack([b, 2 * b]))[1].dtype, np.dtype("f2"))
        near(sol.gemm(np.stack([a, a]), np.stack([b, 2 * b]), dtype="f4")[1], 2 * exact, 1e-3)

    def test_attention(self):
        q, k, v = rows(2, 5, 4, 64, dtype="f2"), rows(2, 9, 2, 64, dtype="f2", seed=2), rows(2, 9, 2, 64, dtype="f2", seed=3)
        wide = [np.repeat(t.astype("f4"), 2, 2) for t in (k, v)]
        scores = np.einsum("bqhd,bkhd->bhqk", q.astype("f4"), wide[0]) / 8
        near(sol.attention(q, k, v).astype("f4"), np.einsum("bhqk,bkhd->bqhd", soft(scores), wide[1]), 1e-2)
        hidden = np.where(np.tril(np.ones((5, 9)), 4), scores, -np.inf)
        near(sol.attention(q, k, v, causal=True).astype("f4"), np.einsum("bhqk,bkhd->bqhd", soft(hidden), wide[1]), 1e-2)

    def test_tables(self):
        table, ids, w = rows(10, 16), np.array([[1, 9], [0, 1]]), rows(16, seed=2)
        near(sol.embedding(table, ids), table[ids])
        near(sol.gather(table.astype("f2"), ids.astype("i4")), table.astype("f2")[ids])
        y, found = sol.embed_rmsnorm(table, ids, w)
        near(found, table[ids])
        near(y, rms(table[ids], 1e-6) * w)

    def test_elementwise(self):
        x, up, b = rows(8, 32), rows(8, 32, seed=2), rows(32, seed=3)
        near(sol.silu_mul(x, up), x * sigmoid(x) * up)
        near(sol.gated_mul(x, up), 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) * up)
        near(sol.gated_mul(x, up, "relu"), np.maximum(x, 0) * up)
        near(sol.add(x, up), x + up)
        near(sol.relu(x), np.maximum(x, 0))
        np.testing.assert_array_equal(sol.cast(x, "i1", y_scale=0.25), np.clip(np.rint(x / 0.25), -128, 127))
        near(sol.cast(np.array([3, -7], "i8"), "f4", x_scale=0.5), np.array([1.5, -3.5]))
        near(sol.scale_columns(x, b), x * b)
        near(sol.bias_relu_scale(x, b, scale=0.5), np.maximum(x + b, 0) * 0.5)
        z = x + b
        near(sol.bias_gelu(x, b), 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))))

    def test_moves(self):
        x = rows(3, 5, 7)
        near(sol.transpose(x), x.swapaxes(1, 2))
        near(sol.transpose(x[0].astype("i4")), x[0].astype("i4").T)
        near(sol.copy(x), x)
        near(sol.copy(x, out=np.empty(x.shape, "f2")), x.astype("f2"))

    def test_reductions(self):
        x = rows(9, 33)
        near(sol.reduce(x), x.sum(1))
        near(sol.reduce(x, "max", axis="columns"), x.max(0))
        near(sol.reduce(x, "sum_squares", axis="all"), [(x * x).sum()], 1e-4)
        np.testing.assert_array_equal(sol.argmax(x), x.argmax(1))

    def test_rope(self):
        x, angle = rows(4, 2, 8), rows(6, 4)
        positions = np.array([5, 0, 1, 1])
        c, s = np.cos(angle)[positions][:, None], np.sin(angle)[positions][:, None]
        low, high = x[..., :4], x[..., 4:]
        near(sol.rope(x, np.cos(angle), np.sin(angle), positions), np.concatenate([low * c - high * s, high * c + low * s], -1))

    def test_kv_append(self):
        k, v = rows(3, 2, 8), rows(3, 2, 8, seed=2)
        caches = np.zeros((2, 4, 2, 8), "f4"), np.zeros((2, 4, 2, 8), "f4")
        self.assertIsNone(sol.kv_append(*caches, k, v, np.array([5, -1, 0])))
        near(caches[0].reshape(8, 2, 8)[[5, 0]], k[[0, 2]])
        near(caches[1].reshape(8, 2, 8)[[5, 0]], v[[0, 2]])
        self.assertEqual(np.count_nonzero(caches[0].any((2, 3))), 2)


@needs_numpy
class Arrays(unittest.TestCase):
    def test_layouts(self):
        x = rows(12, 5, 40)
        for view in [x[::2, :, ::-1], x[:, ::3, 1::2], x[0], x[0][:, :20], x[0].T, x[0][::-1], np.broadcast_to(x[0][:1], (4, 40))]:
            near(sol.softmax(view), soft(view))

    def test_out(self):
        x, big = rows(4, 8), np.zeros((4, 16), "f4")
        self.assertIs(sol.softmax(x, out=(y := big[:, :8])), y)  # rows of another stride
        near(big[:, :8], soft(x))
        self.assertFalse(big[:, 8:].any())
        near(sol.softmax(x, out=np.empty((4, 8), "f2")), soft(x), 1e-3)
        y = x.copy()
        near(sol.softmax(y, out=y), soft(x))

    def test_empty(self):
        self.assertEqual(sol.softmax(np.zeros((0, 8), "f4")).shape, (0, 8))

    def test_refusals(self):
        x = rows(4, 8)
        fixed = np.zeros((4, 8), "f4")
        fixed.flags.writeable = False
        cases = [
            (lambda: sol.rmsnorm(x, x[0][:3]), "rmsnorm: weight has 3 elements, not 8"),
            (lambda: sol.softmax(x.astype("f8")), "fp64"),
            (lambda: sol.softmax(x.astype("c8")), "complex64"),
            (lambda: sol.softmax(x.astype(">f4")), ">f4"),
            (lambda: sol.softmax(x, out=np.empty((2, 2), "f4")), "y is 2 x 2, x is 4 x 8"),
            (lambda: sol.softmax(x, out=np.empty((4, 16), "f4")[:, ::2]), "the last axis of y must be contiguous"),
            (lambda: sol.softmax(x, out=fixed), "read-only"),
            (lambda: sol.softmax(x[:, :4], out=x[:, 2:6]), "overlap"),
            (lambda: sol.kv_append(fixed, fixed, x, x, [0]), "k_cache is read-only"),
            (lambda: sol.embedding(x, [1, 4]), "outside the table"),
            (lambda: sol.embedding(x, [-1]), "outside the table"),
            (lambda: sol.embedding(x, [0.5]), "embedding: "),
            (lambda: sol.transpose(x[0]), "1 axes"),
            (lambda: sol.reduce(x, "median"), "sum_squares"),
            (lambda: sol.gemm(x, x), "fp32|rows of b"),
            (lambda: sol.gemm(x.astype("f2"), x.astype("f2")), "rows of b is 4, not 8"),
            (lambda: sol.gemm(x.astype("f2"), x[0]), "2 axes and b 1"),
            (lambda: sol.gemm(x.astype("f2"), x.T.astype("f2"), activation="tanh"), "silu_mul"),
            (lambda: sol.attention(x, x, x), "they are .batch, tokens, heads, D."),
            (lambda: sol.attention(*[rows(1, 2, 3, 40, dtype="f2")] * 3), "attention: "),
            (lambda: sol.attention(*[rows(1, 2, 3, 64)] * 3), "fp32"),
            (lambda: sol.gated_mul(x, x, "tanh"), "sigmoid"),
            (lambda: sol.quantize(x, "int3"), "int8_row"),
            (lambda: sol.cross_entropy(x, [1, 2]), "targets has 2 elements, not 4"),
        ]
        for call, words in cases:
            with self.subTest(words), self.assertRaisesRegex(sol.ArgumentError, words):
                call()
        with self.assertRaisesRegex(TypeError, "NumPy array"):
            sol.softmax(x, out=[])

    def test_threads(self):
        """Errors are the thread's own."""
        x, wrong = rows(64, 64), []

        def work(i):
            for _ in range(50):
                try:
                    sol.rmsnorm(x, x[0][: i + 1])
                except sol.ArgumentError as error:
                    if f"weight has {i + 1} elements" not in str(error):
                        wrong.append(str(error))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_bfloat16(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        x = rows(4, 64).astype(ml_dtypes.bfloat16)
        near(sol.softmax(x).astype("f4"), soft(x.astype("f4")), 1e-2)


class EmulatedArray:
    """An array in the memory of an emulated GPU, as a library on a GPU would export it."""

    context = None

    def __init__(self, host, columns=None):
        self.host, self.shape, self.dtype, self.streams = host, host[..., :columns].shape, host.dtype, []
        self.pointer, error = ctypes.c_void_p(), _native._SolError()
        library = _native._library()
        assert library.sol_context_alloc(self.context, ctypes.c_size_t(host.nbytes), ctypes.byref(self.pointer), ctypes.byref(error)) == 0
        assert library.sol_context_write(self.context, self.pointer, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes), ctypes.byref(error)) == 0

    def numpy(self):
        error = _native._SolError()
        assert _native._library().sol_context_read(self.context, ctypes.c_void_p(self.host.ctypes.data), self.pointer, ctypes.c_size_t(self.host.nbytes), ctypes.byref(error)) == 0
        return self.host[..., : self.shape[-1]]

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        self.tensor = _native._tensor(self.host[..., : self.shape[-1]], "test")
        self.tensor.data, self.tensor.device_type = self.pointer, 2
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


@needs_numpy
class OnAGpu(unittest.TestCase):
    """Arrays that speak DLPack, on the emulator in the place of a GPU."""

    def setUp(self):
        try:
            EmulatedArray.context = EmulatedArray.context or _native.make_context(2)
            patcher = mock.patch.object(_dlpack, "_context", lambda *_: EmulatedArray.context)
            patcher.start()
            self.addCleanup(patcher.stop)
            sol.copy(EmulatedArray(rows(1, 4)), out=EmulatedArray(rows(1, 4)))
        except sol.UnsupportedError:
            self.skipTest("the library was built without nvcc")

    def test_results(self):
        x, w, y = EmulatedArray(rows(3, 48), columns=40), EmulatedArray(rows(40, seed=2)), EmulatedArray(np.zeros((3, 40), "f4"))
        self.assertIs(sol.rmsnorm(x, w, out=y), y)
        near(y.numpy(), rms(x.numpy(), 1e-6) * w.numpy())
        self.assertEqual((x.streams, w.streams), ([1], [1]))  # the default stream, as DLPack numbers it

    def test_the_current_stream_and_new_arrays(self):
        """Of CuPy, by its documented functions: the stream is asked for, and results are arrays of its own."""
        made = []
        cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=77)),
                                     empty=lambda shape, dtype: made.append(EmulatedArray(np.zeros(shape, dtype))) or made[-1])
        ids, table = EmulatedArray(np.array([2, 0, 9], "i4")), EmulatedArray(rows(5, 16))
        with mock.patch.dict("sys.modules", cupy=cupy), mock.patch.object(EmulatedArray, "__module__", "cupy.core"):
            found = sol.embedding(table, ids)
            best = sol.argmax(table)
        near(found.numpy(), np.vstack([table.host[[2, 0]], np.zeros(16)]))  # nobody waits to say that an id is outside
        near(best.numpy(), table.host.argmax(1))
        self.assertEqual((made[0] is found, best.dtype, ids.streams), (True, np.dtype("int64"), [77]))

    def test_what_is_refused(self):
        x = EmulatedArray(rows(3, 8))
        with self.assertRaisesRegex(sol.ArgumentError, "some arrays are on a GPU and a ndarray is not"):
            sol.rmsnorm(x, np.ones(8, "f4"), out=EmulatedArray(rows(3, 8)))
        with self.assertRaisesRegex(sol.ArgumentError, "give out="):
            sol.softmax(x)


if __name__ == "__main__":
    unittest.main()
