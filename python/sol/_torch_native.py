"""Torch tensors to libsol without copies: each operation's argument structure is packed in one go, on the current stream.

The layouts are those of include/sol/ops.h (tests/abi.sh holds them). A call costs a few microseconds: nothing is looked
up twice, and the library itself allocates and waits for nothing.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from typing import Any

import torch

from . import _native
from .errors import Error

_CUDA_BACKEND = 3
REALS = {torch.float32: 2, torch.float16: 4, torch.bfloat16: 5}  # SolDtype
_IDS = {torch.int32: 9, torch.int64: 10}
# The structures of sol/ops.h, as struct.pack writes them: P a pointer, q an int64, i an enumeration, f a float; 0q ends each as C does.
LAYOUTS = {
    "rmsnorm": "4P 4q 3i 2f i 0q", "add_rmsnorm": "5P 6q 3i 2f 0q", "layernorm": "4P 4q 3i 2f 0q", "softmax": "2P 4q 2i 0q",
    "log_softmax": "2P 4q 2i 0q", "silu_mul": "4P 5q 3i 0q", "bias_gelu": "3P 4q 3i f 0q", "rope": "5P 7q 5i 0q",
    "embedding": "4P 5q 3i i 0q",
}


class _Call:
    """``sol_<name>(context, arguments, stream)``."""

    def __init__(self, name: str) -> None:
        self.name, self.pack = name, struct.Struct("@" + LAYOUTS[name]).pack

    @functools.cached_property
    def function(self) -> Any:
        function = getattr(_native._library(), f"sol_{self.name}")
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return function

    def __call__(self, x: Any, *values: Any) -> None:
        if x.is_cuda:
            index = x.get_device()
            if index != torch._C._cuda_getDevice():
                with torch.cuda.device(index):
                    return self(x, *values)
            status = self.function(_contexts.get(index) or _make_context(index), self.pack(*values), torch._C._cuda_getCurrentRawStream(index))
        else:
            status = self.function(_native._context(os.getpid()), self.pack(*values), None)
        if status:
            _native._raise(_native._library().sol_last_error().contents, self.name)
        return None


CALLS = {name: _Call(name) for name in LAYOUTS}
_contexts: dict[int, int] = {}  # of each GPU, in the CUDA context that torch has made; a child process makes its own
os.register_at_fork(after_in_child=_contexts.clear)


def _make_context(index: int) -> int:
    """Tensors are torch's, so the library need not ask the driver what each pointer points to."""
    with torch.cuda.device(index):
        torch.empty(1, device="cuda")
        _contexts[index] = _native.make_context(_CUDA_BACKEND, trust_pointers=1).value or 0
    return _contexts[index]


@functools.lru_cache(maxsize=None)
def _has_gpu_kernels() -> bool:
    """libsol runs on NVIDIA's GPUs where it was built with nvcc."""
    try:
        return torch.version.cuda is not None and bool(_make_context(torch.cuda.current_device()))
    except Error:
        return False


def takes(x: Any, *others: Any) -> bool:
    """Whether the library has these types, on one device; otherwise torch's own formula is used."""
    kind, on_cpu = x.dtype, x.is_cpu
    if kind not in REALS or not (on_cpu or x.is_cuda and _has_gpu_kernels()):
        return False
    place = x.get_device()
    for other in others:
        if other is not None and (other.is_cpu is not on_cpu or other.get_device() != place or other.dtype not in (kind, torch.float32)):
            return False
    return True


def _rows(x: Any) -> tuple[Any, int, int, int]:
    """x (..., N) as M rows of N elements with a stride; copied where its axes do not allow that."""
    shape = x.shape
    n = shape[-1]
    if x.is_contiguous():
        return x, x.numel() // n if n else 0, n, n
    steps = x.stride()
    if steps[-1] == 1 and steps[-2] >= n and all(steps[i - 1] == steps[i] * shape[i] for i in range(1, len(shape) - 1)):
        return x, x.numel() // n if n else 0, n, steps[-2]
    return _rows(x.contiguous())


def _dense_like(x: Any, n: int, stride: int) -> Any:
    """empty_like costs a quarter of empty, and keeps the layout: it serves what is dense."""
    return torch.empty_like(x) if stride == n else torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _weight(weight: Any, n: int, name: str) -> tuple[Any, int, int]:
    """The tensor, which has to be kept until the call, its address and type."""
    if weight is None:
        return None, 0, 0
    if weight.numel() != n:
        raise _native.ArgumentError(f"{name}: rows have {n} elements and the weight {weight.numel()}")
    weight = weight.contiguous()
    return weight, weight.data_ptr(), REALS[weight.dtype]


def rmsnorm(x: Any, weight: Any, eps: float, weight_offset: float) -> Any:
    x, m, n, stride = _rows(x)
    y, (kept, w, kind), dtype = _dense_like(x, n, stride), _weight(weight, n, "rmsnorm"), REALS[x.dtype]
    CALLS["rmsnorm"](x, y.data_ptr(), x.data_ptr(), w, 0, m, n, n, stride, dtype, dtype, kind, eps, weight_offset, 0)
    return y


def add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, weight_offset: float) -> tuple[Any, Any]:
    _check_same("add_rmsnorm", x, residual)
    x, m, n, stride = _rows(x)
    residual, _, _, old = _rows(residual)
    y, s = _dense_like(x, n, stride), _dense_like(x, n, stride)
    (kept, w, kind), dtype = _weight(weight, n, "add_rmsnorm"), REALS[x.dtype]
    CALLS["add_rmsnorm"](x, y.data_ptr(), x.data_ptr(), residual.data_ptr(), s.data_ptr(), w, m, n, n, stride, old, n, dtype, dtype, kind,
                         eps, weight_offset)
    return y, s


def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    x, m, n, stride = _rows(x)
    y, dtype = _dense_like(x, n, stride), REALS[x.dtype]
    (kept, w, kind), (kept_bias, b, bias_kind) = _weight(weight, n, "layernorm"), _weight(bias, n, "layernorm")
    if weight is not None and bias is not None and kind != bias_kind:
        raise _native.ArgumentError("layernorm: weight and bias have different types")
    CALLS["layernorm"](x, y.data_ptr(), x.data_ptr(), w, b, m, n, n, stride, dtype, dtype, kind or bias_kind, eps, 0.0)
    return y


def _by_rows(name: str, x: Any) -> Any:
    x, m, n, stride = _rows(x)
    y, dtype = _dense_like(x, n, stride), REALS[x.dtype]
    CALLS[name](x, y.data_ptr(), x.data_ptr(), m, n, n, stride, dtype, dtype)
    return y


def softmax(x: Any) -> Any:
    return _by_rows("softmax", x)


def log_softmax(x: Any) -> Any:
    return _by_rows("log_softmax", x)


def _check_same(name: str, x: Any, other: Any) -> None:
    if other.shape != x.shape or other.dtype != x.dtype:
        raise _native.ArgumentError(f"{name}: {list(x.shape)} of {x.dtype} and {list(other.shape)} of {other.dtype}; they must be alike")


def silu_mul(gate: Any, up: Any) -> Any:
    _check_same("silu_mul", gate, up)
    gate, m, n, stride = _rows(gate)
    up, _, _, up_stride = _rows(up)
    y, dtype = _dense_like(gate, n, stride), REALS[gate.dtype]
    CALLS["silu_mul"](gate, y.data_ptr(), gate.data_ptr(), up.data_ptr(), 0, m, n, n, stride, up_stride, dtype, dtype, 0)
    return y


def bias_gelu(x: Any, bias: Any) -> Any:
    x, m, n, stride = _rows(x)
    y, (kept, b, kind), dtype = _dense_like(x, n, stride), _weight(bias, n, "bias_gelu"), REALS[x.dtype]
    CALLS["bias_gelu"](x, y.data_ptr(), x.data_ptr(), b, m, n, n, stride, dtype, dtype, kind, 0.0)
    return y


def rope(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """x (..., T, H, D) with cos and sin (rows, rotary / 2), a row for each token, counted over all axes before H."""
    *tokens, h, d = x.shape
    flat = x if x.is_contiguous() else _tokens_dense(x)
    t, rotary = flat.numel() // (h * d) if h * d else 0, 2 * cos.shape[-1]
    if cos.shape != sin.shape or cos.numel() != t * (rotary // 2) or rotary > d or cos.dtype != sin.dtype:
        raise _native.ArgumentError(f"rope: {t} tokens with {d} elements a head, cos {list(cos.shape)} and sin {list(sin.shape)}")
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    size = cos.numel()
    (kept, c, kind), (kept_sin, s, _), dtype = _weight(cos, size, "rope"), _weight(sin, size, "rope"), REALS[x.dtype]
    stride = flat.stride(-3) if flat.dim() > 2 else h * d
    CALLS["rope"](x, y.data_ptr(), flat.data_ptr(), c, s, 0, t, h, d, rotary, t, h * d, stride, dtype, dtype, kind, 0, int(interleaved))
    return y


def _tokens_dense(x: Any) -> Any:
    """x where heads are dense within a token and tokens have one stride; else a copy."""
    *tokens, h, d = x.shape
    steps = x.stride()
    dense = steps[-1] == 1 and steps[-2] == d and (x.dim() < 3 or steps[-3] >= h * d)
    return x if dense and all(steps[i - 1] == steps[i] * x.shape[i] for i in range(1, x.dim() - 2)) else x.contiguous()


def embedding(table: Any, ids: Any) -> Any:
    if ids.device != table.device or ids.dtype not in _IDS:
        raise _native.ArgumentError(f"embedding: ids are {ids.dtype} on {ids.device}; they must be int32 or int64 on {table.device}")
    ids = ids.contiguous()
    table, vocab, n, stride = _rows(table)
    y = torch.empty((*ids.shape, n), dtype=table.dtype, device=table.device)
    dtype = REALS[table.dtype]
    CALLS["embedding"](table, y.data_ptr(), table.data_ptr(), ids.data_ptr(), 0, ids.numel(), n, vocab, n, stride, dtype, dtype,
                       _IDS[ids.dtype], 0)
    return y
