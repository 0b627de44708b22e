"""Operators on NumPy arrays, by Sol's C library on the CPU: the same definitions as its GPU kernels (docs/ops.md).

Arrays on a GPU that speak DLPack (torch's, CuPy's) are taken where they are, on the current stream, and the result is one of theirs:
nothing is copied and nothing waits, so ids outside a table give zeros there. On the CPU inputs are anything ``numpy.asarray`` takes; rows may be strided, what is less regular is copied. ``out`` gets the
result where it is given: it must be writable, and its type may differ from the input's where the operation allows.
bfloat16 is that of the package ml_dtypes. A shape or type that Sol does not take is an ArgumentError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from . import _dlpack, _native
from .errors import ArgumentError

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]


def _np() -> Any:
    import numpy

    return numpy


def _in(value: Any) -> Any:
    """As the library can read it: up to two axes with rows of any stride, otherwise dense."""
    if value is None or _dlpack.on_gpu(value):
        return value
    array = _np().asarray(value)
    rows = array.ndim <= 2 and all(s > 0 and s % array.itemsize == 0 for s in array.strides)
    if rows and (array.ndim == 0 or array.shape[-1] == 1 or array.strides[-1] == array.itemsize):
        return array
    return _np().ascontiguousarray(array)


def _dense(value: Any) -> Any:
    return value if _dlpack.on_gpu(value) else _np().ascontiguousarray(value)


def _out(out: Any, like: Any, shape: Sequence[int] | None = None, dtype: Any = None, name: str = "out") -> Array:
    """``out``, or a new array of ``like``'s kind, and of its shape and type where no other is given."""
    gpu = _dlpack.on_gpu(like)
    if out is None:
        shape, dtype = like.shape if shape is None else shape, dtype or like.dtype
        made: Array = _dlpack.empty(like, shape, dtype) if gpu else _np().empty(shape, dtype)
        return made
    if not gpu and not isinstance(out, _np().ndarray):
        raise TypeError(f"{name} must be a NumPy array, not {type(out).__name__}")
    given: Array = out
    if not gpu and not given.flags.writeable:
        raise ArgumentError(f"{name} is read-only")
    return given


def _bad_flag(table: Any) -> Any:
    """Where the library says that an id is outside; on a GPU reading it would wait."""
    return None if _dlpack.on_gpu(table) else _np().zeros(1, "int32")


def _ids_in_range(bad: Any, name: str) -> None:
    if bad is not None and bad[0]:
        raise ArgumentError(f"{name}: an id is outside the table; its row is zeros")


def copy(x: Any, *, out: Array | None = None) -> Array:
    """y = x, converted to the type of ``out``."""
    x = _in(x)
    y = _out(out, x)
    _native.call("copy", y, x)
    return y


def rmsnorm(x: Any, weight: Any = None, *, eps: float = 1e-6, weight_offset: float = 0.0, out: Array | None = None) -> Array:
    """y = x / sqrt(mean(x^2) + eps) * (weight + weight_offset), by rows of x (..., N)."""
    x = _in(x)
    y = _out(out, x)
    _native.call("rmsnorm", y, x, _in(weight), float(eps), float(weight_offset))
    return y


def add_rmsnorm(x: Any, residual: Any, weight: Any = None, *, eps: float = 1e-6, weight_offset: float = 0.0,
                out: Array | None = None, residual_out: Array | None = None) -> tuple[Array, Array]:
    """s = x + residual; gives (rmsnorm(s), s). ``residual`` itself is not written."""
    x, residual = _in(x), _in(residual)
    y, s = _out(out, x), _out(residual_out, residual, name="residual_out")
    _native.call("add_rmsnorm", y, x, residual, s, _in(weight), float(eps), float(weight_offset))
    return y, s


def embed_rmsnorm(table: Any, ids: Any, weight: Any = None, *, eps: float = 1e-6, weight_offset: float = 0.0,
                  out: Array | None = None) -> tuple[Array, Array]:
    """Gives (rmsnorm(table[ids]), table[ids])."""
    table, ids = _in(table), _dense(ids)
    bad = _bad_flag(table)
    shape = (*ids.shape, table.shape[-1])
    y, rows = _out(out, table, shape), _out(None, table, shape)
    _native.call("embed_rmsnorm", y, rows, table, ids, _in(weight), bad, float(eps), float(weight_offset))
    _ids_in_range(bad, "embed_rmsnorm")
    return y, rows


def layernorm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, weight_offset: float = 0.0,
              out: Array | None = None) -> Array:
    """y = (x - mean) / sqrt(variance + eps) * (weight + weight_offset) + bias, by rows of x (..., N)."""
    x = _in(x)
    y = _out(out, x)
    _native.call("layernorm", y, x, _in(weight), _in(bias), float(eps), float(weight_offset))
    return y


def softmax(x: Any, *, out: Array | None = None) -> Array:
    """exp(x - max) / sum(exp(x - max)), by rows."""
    x = _in(x)
    y = _out(out, x)
    _native.call("softmax", y, x)
    return y


def log_softmax(x: Any, *, out: Array | None = None) -> Array:
    """The logarithm of softmax, by rows."""
    x = _in(x)
    y = _out(out, x)
    _native.call("log_softmax", y, x)
    return y


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, out: Array | None = None) -> Array:
    """x (batch, C, ...) normalised over each of `groups` groups of channels, then times weight (C) plus bias (C)."""
    x = _dense(x)
    y = _out(out, x)
    _native.call("group_norm", y, x, _in(weight), _in(bias), int(groups), float(eps))
    return y


def cross_entropy(x: Any, targets: Any, *, gradient: Array | None = None, scale: float = 1.0) -> Array:
    """The loss of each row of logits x (..., N); ``gradient`` gets (softmax(x) - onehot) * scale, and may be x itself.

    A target outside 0..N-1 is ignored: its loss and gradient are 0.
    """
    x, targets = _in(x), _dense(targets)
    loss = _out(None, x, x.shape[:-1], "float32")
    into = None if gradient is None else _out(gradient, x, name="gradient")
    _native.call("cross_entropy", loss, x, targets, into, float(scale))
    return loss


def topk(x: Any, k: int) -> tuple[Array, Array]:
    """The k largest of each row of x (..., N), the largest first, and their columns."""
    x = _in(x)
    shape = (*x.shape[:-1], k)
    values, ids = _out(None, x, shape), _out(None, x, shape, "int64")
    _native.call("topk", values, ids, x)
    return values, ids


def sample(x: Any, seeds: Any, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, step: int = 0) -> Array:
    """A column of each row of logits x (..., N), by softmax(x / temperature) among the top_k and top_p largest.

    It follows from the row, its seed and the step; temperature 0 takes the largest.
    """
    x = _in(x)
    seeds = seeds if _dlpack.on_gpu(seeds) else _np().ascontiguousarray(seeds, "int64")
    ids = _out(None, x, x.shape[:-1], "int64")
    _native.call("sample", ids, x, seeds, float(temperature), int(top_k), float(top_p), int(step))
    return ids


_FORMATS = ("int8_row", "int8_block", "fp8_row", "fp8_block", "mxfp8", "nvfp4")


def quantize(x: Any, format: str = "int8_row", *, tensor_scale: Any = None) -> tuple[Array, Array]:
    """Gives (y, scales) of x (..., N): int8, fp8 as bytes, or nvfp4 as bytes of two columns; fp32 scales, or bytes (docs/ops.md)."""
    if format not in _FORMATS:
        raise ArgumentError(f"quantize: format is one of {', '.join(_FORMATS)}")
    x, which = _in(x), _FORMATS.index(format)
    columns, fp8, gpu = x.shape[-1], "fp8" in format, _dlpack.on_gpu(x)
    y = _out(None, x, (*x.shape[:-1], columns // 2 if format == "nvfp4" else columns), "float8_e4m3fn" if fp8 and gpu else "int8")
    scales = _out(None, x, (*x.shape[:-1], _native.quantize_scales(which, columns)), "float32" if which < 4 else "int8")
    _native.call("quantize", _native.Fp8(y) if fp8 and not gpu else y, x, scales, _scale(tensor_scale), which)
    return y, scales


def embedding(table: Any, ids: Any, *, out: Array | None = None) -> Array:
    """table[ids]; an id outside the table is an ArgumentError."""
    table, ids = _in(table), _dense(ids)
    bad = _bad_flag(table)
    y = _out(out, table, (*ids.shape, table.shape[-1]))
    _native.call("embedding", y, table, ids, bad)
    _ids_in_range(bad, "embedding")
    return y


def gather(x: Any, ids: Any, *, out: Array | None = None) -> Array:
    """x[ids] by rows of any type; an id outside is an ArgumentError."""
    x, ids = _in(x), _dense(ids)
    bad = _bad_flag(x)
    y = _out(out, x, (*ids.shape, x.shape[-1]))
    _native.call("gather", y, x, ids, None, bad)
    _ids_in_range(bad, "gather")
    return y


def transpose(x: Any, *, out: Array | None = None) -> Array:
    """The last two axes of x (M, N) or (batch, M, N) exchanged, as a dense copy."""
    x = _in(x)
    if x.ndim not in (2, 3):
        raise ArgumentError(f"transpose: x has {x.ndim} axes; it takes (M, N) or (batch, M, N)")
    y = _out(out, x, (*x.shape[:-2], x.shape[-1], x.shape[-2]))
    _native.call("transpose", y, x)
    return y


def scale_columns(x: Any, scale: Any, *, out: Array | None = None) -> Array:
    """x * scale[column]."""
    x = _in(x)
    y = _out(out, x)
    _native.call("scale_columns", y, x, _in(scale))
    return y


def bias_relu_scale(x: Any, bias: Any = None, *, scale: float = 1.0, out: Array | None = None) -> Array:
    """max(x + bias[column], 0) * scale."""
    x = _in(x)
    y = _out(out, x)
    _native.call("bias_relu_scale", y, x, _in(bias), float(scale))
    return y


def bias_gelu(x: Any, bias: Any = None, *, out: Array | None = None) -> Array:
    """gelu(x + bias[column]), the tanh form."""
    x = _in(x)
    y = _out(out, x)
    _native.call("bias_gelu", y, x, _in(bias))
    return y


def silu_mul(gate: Any, up: Any, *, out: Array | None = None) -> Array:
    """silu(gate) * up."""
    gate, up = _in(gate), _in(up)
    y = _out(out, gate)
    _native.call("silu_mul", y, gate, up)
    return y


_GATES = ("gelu", "relu", "sigmoid", "silu")


def gated_mul(gate: Any, up: Any, activation: str = "gelu", *, scale: Any = None, out: Array | None = None) -> Array:
    """activation(gate) * up, gelu in its tanh form; divided by ``scale`` where ``out`` is fp8 or int8."""
    if activation not in _GATES:
        raise ArgumentError(f"gated_mul: activation is one of {', '.join(_GATES)}")
    gate, up = _in(gate), _in(up)
    y = _out(out, gate)
    _native.call("gated_mul", y, gate, up, _scale(scale), _GATES.index(activation))
    return y


def _scale(value: Any) -> Any:
    return value if value is None or _dlpack.on_gpu(value) else _np().asarray(value, "float32").reshape(1)


def add(a: Any, b: Any, *, out: Array | None = None) -> Array:
    """a + b, of one shape."""
    a, b = _in(a), _in(b)
    y = _out(out, a)
    _native.call("add", y, a, b)
    return y


def relu(x: Any, *, out: Array | None = None) -> Array:
    """max(x, 0)."""
    x = _in(x)
    y = _out(out, x)
    _native.call("relu", y, x)
    return y


def cast(x: Any, dtype: Any = None, *, x_scale: Any = None, y_scale: Any = None, out: Array | None = None) -> Array:
    """x * x_scale / y_scale in another type; integers are rounded to the nearest and saturate."""
    x = _in(x)
    y = _out(out, x, dtype=dtype)
    _native.call("cast", y, x, _scale(x_scale), _scale(y_scale))
    return y


def rope(x: Any, cos: Any, sin: Any, positions: Any = None, *, interleaved: bool = False, out: Array | None = None) -> Array:
    """Rotary position embedding of x (..., H, D); cos and sin are (rows, rotary / 2), positions (...) or None."""
    x = _dense(x)
    y = _out(out, x)
    _native.call("rope", y, x, _in(cos), _in(sin), None if positions is None else _dense(positions), int(interleaved))
    return y


_REDUCTIONS, _AXES = ("sum", "max", "mean", "sum_squares"), ("rows", "columns", "all")


def _reduce_workspace(x: Any, axis: str) -> Any:
    """Room for partial sums on a GPU, as much as the library asks for at most: of 4096 blocks, or of 1024 strips of 256 columns."""
    if axis == "rows" or not _dlpack.on_gpu(x) or 0 in x.shape:
        return None
    rows, columns = x.shape[-2:]
    batch = x.shape[0] if x.ndim == 3 else 1
    return _dlpack.empty(x, (4096 if axis == "all" else batch * min(1 << 18, columns * max(1, rows // 8)),), "float32")


def reduce(x: Any, reduction: str = "sum", *, axis: str = "rows", out: Array | None = None) -> Array:
    """Sum, max, mean or sum_squares of x (M, N) over each row, each column, or all; of x (B, M, N) by columns for each of B."""
    x = _in(x)
    if reduction not in _REDUCTIONS or axis not in _AXES:
        raise ArgumentError(f"reduce: reduction is one of {', '.join(_REDUCTIONS)}, axis one of {', '.join(_AXES)}")
    if x.ndim != 2 and (x.ndim != 3 or axis != "columns"):
        raise ArgumentError(f"reduce: x has {x.ndim} axes; it takes (M, N), and by columns (B, M, N)")
    columns = (*x.shape[:-2], x.shape[-1])
    y = _out(out, x, {"rows": x.shape[:1], "columns": columns, "all": (1,)}[axis])
    _native.call("reduce", y, x, _reduce_workspace(x, axis), _REDUCTIONS.index(reduction), _AXES.index(axis))
    return y


def argmax(x: Any, *, out: Array | None = None) -> Array:
    """The column of the largest element of each row, the first of equals; int64 unless ``out`` is int32."""
    x = _in(x)
    y = _out(out, x, x.shape[:-1], "int64")
    _native.call("argmax", y, x)
    return y


def kv_append(k_cache: Array, v_cache: Array, k: Any, v: Any, slots: Any, *, k_scale: float = 1.0, v_scale: float = 1.0) -> None:
    """K and V of tokens (..., H, D) into caches (pages, page_size, H, D), in place; a negative slot skips its token."""
    k_cache, v_cache = (_out(c, c, (), name=name) for c, name in ((k_cache, "k_cache"), (v_cache, "v_cache")))
    _native.call("kv_append", k_cache, v_cache, _dense(k), _dense(v), _dense(slots), float(k_scale), float(v_scale))


_ACTIVATIONS = ("none", "relu", "gelu", "silu_mul")


def _matrix(value: Any) -> Any:
    """As ``gemm`` can read it: each matrix by rows or by columns, otherwise dense."""
    if _dlpack.on_gpu(value):
        return value
    array = _np().asarray(value)
    if array.ndim in (2, 3) and array.size and min(array.strides) > 0 and array.itemsize in array.strides[-2:]:
        return array
    return _np().ascontiguousarray(array)


def gemm(a: Any, b: Any, bias: Any = None, residual: Any = None, *, alpha: float = 1.0, activation: str = "none", dtype: Any = None,
         out: Array | None = None) -> Array:
    """activation(alpha * a @ b + bias) + residual; a (M, K) and b (K, N), or batches of them, fp16 or bf16.

    A transposed view (``weights.T``) is not copied. gelu is the tanh form; with silu_mul b is (K, 2N), gate then up. ``dtype`` or ``out``: fp32, too.
    """
    if activation not in _ACTIVATIONS:
        raise ArgumentError(f"gemm: activation is one of {', '.join(_ACTIVATIONS)}")
    a, b = _matrix(a), _matrix(b)
    if a.ndim not in (2, 3) or b.ndim != a.ndim:
        raise ArgumentError(f"gemm: a has {a.ndim} axes and b {b.ndim}; both have (rows, columns) or (batch, rows, columns)")
    columns = b.shape[-1] // 2 if activation == "silu_mul" else b.shape[-1]
    c = _out(out, a, (*a.shape[:-1], columns), dtype)
    _native.call("gemm", c, a, b, _in(bias), _in(residual), float(alpha), 0.0, _ACTIVATIONS.index(activation))
    return c


def attention(q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None, window: int = 0, soft_cap: float = 0.0,
              out: Array | None = None) -> Array:
    """softmax(scale * q k') v: q (batch, queries, heads, D), k and v (batch, keys, kv heads, D), fp16 or bf16, D of 64, 128 or 256.

    Groups of heads share a key head. With ``causal`` queries are the last of the keys and see those up to their own, ``window`` of them at most.
    """
    q, k, v = _dense(q), _dense(k), _dense(v)
    if q.ndim != 4 or k.ndim != 4:
        raise ArgumentError(f"attention: q has {q.ndim} axes and k {k.ndim}; they are (batch, tokens, heads, D)")
    o = _out(out, q)
    _native.call("attention", o, q, k, v, None, float(scale or 0.0), float(soft_cap), _native.Long(window), int(causal))
    return o
