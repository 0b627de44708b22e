"""Torch tensors to libsol without copies, on the current stream.

Two ways. The quick one hands the tensor objects to the library, which looks into them itself (sol_python_call: torch 2.10 and newer);
what it refuses, such as rows that must be copied first, and older torch, takes the other: tensors are checked here and
each operation's argument structure is packed in one go. The layouts are those of include/sol/ops.h (tests/abi.sh holds them).
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from typing import Any, Callable, NamedTuple, Sequence

import torch

from . import _native
from .errors import ArgumentError, Error

_CUDA_BACKEND = 3
REALS = {torch.float32: 2, torch.float16: 4, torch.bfloat16: 5}  # SolDtype
_IDS = {torch.int32: 9, torch.int64: 10}
GATES = {"gelu": 0, "relu": 1, "sigmoid": 2, "silu": 3}  # SolGate
# The structures of sol/ops.h, as struct.pack writes them: P a pointer, q an int64, i an enumeration, f a float; 0q ends each as C does.
LAYOUTS = {
    "rmsnorm": "4P 4q 3i 2f i 0q", "add_rmsnorm": "5P 6q 3i 2f 0q", "layernorm": "4P 4q 3i 2f 0q", "softmax": "2P 4q 2i 0q",
    "log_softmax": "2P 4q 2i 0q", "silu_mul": "4P 5q 3i 0q", "gated_mul": "4P 5q 3i 0q", "bias_gelu": "3P 4q 3i f 0q",
    "rope": "5P 7q 5i 0q", "embedding": "4P 5q 3i i 0q", "cross_entropy": "4P 4q 2i f 0q", "attention": "7P 17q i 2f i 0q",
}


class _Work(NamedTuple):
    """A call as the library takes it: tensors in the order of their pointers after the output's, and what comes after the pointers."""

    tensors: tuple[Any, ...]
    values: tuple[Any, ...]
    shape: Any = None  # of the output, where it is not as the first tensor
    dtype: Any = None


class Operation:
    """``sol_<name>(context, arguments, stream)`` on tensors; ``describe`` checks them and says what the structure holds."""

    def __init__(self, name: str, describe: Callable[..., _Work]) -> None:
        self.name, self.describe = name, describe
        self.quick = _quick(name)  # quick(outputs..., tensors..., numbers...): 0 where it was done

    @functools.cached_property
    def function(self) -> Any:
        function = getattr(_native._library(), f"sol_{self.name}")
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return function

    def pack(self, addresses: Sequence[int], values: Sequence[Any]) -> bytes:
        """The structure; pointers that are not given are NULL."""
        missing = int(LAYOUTS[self.name].partition("P")[0]) - len(addresses)
        return struct.pack("@" + LAYOUTS[self.name], *addresses, *(0,) * missing, *values)

    def __call__(self, tensors: Sequence[Any], numbers: Sequence[Any] = ()) -> Any:
        """The output, or NotImplemented where the library does not have this type or device."""
        given = [t for t in tensors if t is not None]
        places = {str(t.device): None for t in given}
        if len(places) > 1:
            raise ArgumentError(f"{self.name}: tensors are on {' and '.join(places)}")
        if not takes(*given):
            return NotImplemented
        work = self.describe(*tensors, *numbers)
        x = work.tensors[0]
        y = torch.empty(x.shape if work.shape is None else work.shape, dtype=work.dtype or x.dtype, device=x.device)
        arguments = self.pack([y.data_ptr(), *(0 if t is None else t.data_ptr() for t in work.tensors)], work.values)
        if x.is_cuda:
            with torch.cuda.device(x.device):
                status = self.function(_context(x.get_device()), arguments, torch._C._cuda_getCurrentRawStream(x.get_device()))
        else:
            status = self.function(_context(-1), arguments, None)
        if status:
            _native._raise(_native._library().sol_last_error().contents, self.name)
        return y


# ---- contexts, and the quick way ----

_MOST_GPUS = 64
_contexts = (ctypes.c_void_p * (1 + _MOST_GPUS))()  # of the CPU, then of GPU 0, 1 ...; a child process makes its own
os.register_at_fork(after_in_child=lambda: ctypes.memset(_contexts, 0, ctypes.sizeof(_contexts)))


def _context(index: int) -> Any:
    """Of a GPU, in the CUDA context that torch has made, or of the CPU (-1)."""
    if not _contexts[1 + index]:
        if index < 0:
            _contexts[0] = _native._context(os.getpid()).value
        else:
            with torch.cuda.device(index):
                torch.empty(1, device="cuda")
                # Tensors are torch's, so the library need not ask the driver what each pointer points to.
                _contexts[1 + index] = _native.make_context(_CUDA_BACKEND, trust_pointers=1).value
    return _contexts[1 + index]


class _PythonCall(ctypes.Structure):  # SolPythonCall
    _fields_ = [("operation", ctypes.c_int64), ("exchange", ctypes.c_void_p), ("contexts", ctypes.c_void_p), ("count", ctypes.c_int64)]


class _MethodDef(ctypes.Structure):  # PyMethodDef
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


_FASTCALL, _DLPACK = 0x80, 1  # METH_FASTCALL; DLPack's major version, whose layouts sol_python_call has
_kept: list[Any] = []  # what functions of Python's own point to, for as long as they live
_python = ctypes.pythonapi


def _refused(*_: Any) -> int:
    return 1


def _quick(name: str) -> Callable[..., int]:
    """sol_python_call for this operation as a function of Python's own; one that refuses where there is none."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    try:
        library = _native._library()
        number = library.sol_python_operation(name.encode())
    except (Error, AttributeError):  # no library; one that is older
        return _refused
    if capsule is None or number < 0:
        return _refused
    get, new, function = _python.PyCapsule_GetPointer, _python.PyCapsule_New, _python.PyCFunction_NewEx
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    function.restype, function.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    exchange = get(capsule, b"dlpack_exchange_api")
    if ctypes.c_uint32.from_address(exchange).value != _DLPACK:
        return _refused
    call = _PythonCall(number, exchange, ctypes.addressof(_contexts), len(_contexts))
    method = _MethodDef(name.encode(), ctypes.cast(library.sol_python_call, ctypes.c_void_p), _FASTCALL, None)
    _kept.append((call, method))
    made: Callable[..., int] = function(ctypes.addressof(method), new(ctypes.addressof(call), b"sol", None), None)
    return made


@functools.lru_cache(maxsize=None)
def _has_gpu_kernels() -> bool:
    """libsol runs on NVIDIA's GPUs where it was built with nvcc."""
    try:
        return torch.version.cuda is not None and bool(_context(torch.cuda.current_device()))
    except Error:
        return False


def takes(x: Any, *others: Any) -> bool:
    """Whether the library has these types on this device; otherwise torch's own formula is used."""
    if x.dtype not in REALS or not (x.is_cpu or x.is_cuda and _has_gpu_kernels()):
        return False
    return all(t.dtype in (x.dtype, torch.float32) or t.dtype in _IDS for t in others)


# ---- what each structure holds ----


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


def _weight(weight: Any, n: int, name: str) -> tuple[Any, int]:
    """The tensor, dense, and its type."""
    if weight is None:
        return None, 0
    if weight.numel() != n:
        raise ArgumentError(f"{name}: rows have {n} elements and the weight {weight.numel()}")
    if weight.dtype not in REALS:
        raise ArgumentError(f"{name}: the weight is {weight.dtype}")
    return weight.contiguous(), REALS[weight.dtype]


def _check_same(name: str, x: Any, other: Any) -> None:
    if other.shape != x.shape or other.dtype != x.dtype:
        raise ArgumentError(f"{name}: {list(x.shape)} of {x.dtype} and {list(other.shape)} of {other.dtype}; they must be alike")


def _check_ids(name: str, what: str, ids: Any, x: Any) -> int:
    if ids.dtype not in _IDS:
        raise ArgumentError(f"{name}: {what} are {ids.dtype}; they must be int32 or int64")
    return _IDS[ids.dtype]


def _rmsnorm(x: Any, weight: Any, eps: float, weight_offset: float) -> _Work:
    x, m, n, stride = _rows(x)
    (weight, kind), dtype = _weight(weight, n, "rmsnorm"), REALS[x.dtype]
    return _Work((x, weight), (m, n, n, stride, dtype, dtype, kind, eps, weight_offset, 0))


def _add_rmsnorm(x: Any, residual: Any, total: Any, weight: Any, eps: float, weight_offset: float) -> _Work:
    """``total`` is a second output: x + residual."""
    _check_same("add_rmsnorm", x, residual)
    x, m, n, stride = _rows(x)
    residual, _, _, old = _rows(residual)
    (weight, kind), dtype = _weight(weight, n, "add_rmsnorm"), REALS[x.dtype]
    return _Work((x, residual, total, weight), (m, n, n, stride, old, n, dtype, dtype, kind, eps, weight_offset))


def _layernorm(x: Any, weight: Any, bias: Any, eps: float) -> _Work:
    x, m, n, stride = _rows(x)
    (weight, kind), (bias, bias_kind), dtype = _weight(weight, n, "layernorm"), _weight(bias, n, "layernorm"), REALS[x.dtype]
    if weight is not None and bias is not None and kind != bias_kind:
        raise ArgumentError("layernorm: weight and bias have different types")
    return _Work((x, weight, bias), (m, n, n, stride, dtype, dtype, kind or bias_kind, eps, 0.0))


def _by_rows(x: Any) -> _Work:
    x, m, n, stride = _rows(x)
    return _Work((x,), (m, n, n, stride, REALS[x.dtype], REALS[x.dtype]))


def _gated(name: str, gate: Any, up: Any, last: int) -> _Work:
    _check_same(name, gate, up)
    gate, m, n, stride = _rows(gate)
    up, _, _, up_stride = _rows(up)
    return _Work((gate, up), (m, n, n, stride, up_stride, REALS[gate.dtype], REALS[gate.dtype], last))


def _silu_mul(gate: Any, up: Any) -> _Work:
    return _gated("silu_mul", gate, up, 0)


def _gated_mul(gate: Any, up: Any, activation: str) -> _Work:
    if activation not in GATES:
        raise ArgumentError(f"gated_mul: activation is one of {', '.join(GATES)}")
    return _gated("gated_mul", gate, up, GATES[activation])


def _bias_gelu(x: Any, bias: Any) -> _Work:
    x, m, n, stride = _rows(x)
    (bias, kind), dtype = _weight(bias, n, "bias_gelu"), REALS[x.dtype]
    return _Work((x, bias), (m, n, n, stride, dtype, dtype, kind, 0.0))


def _tokens_dense(x: Any) -> Any:
    """x where heads are dense within a token and tokens have one stride; else a copy."""
    *_, h, d = x.shape
    steps = x.stride()
    dense = steps[-1] == 1 and steps[-2] == d and (x.dim() < 3 or steps[-3] >= h * d)
    return x if dense and all(steps[i - 1] == steps[i] * x.shape[i] for i in range(1, x.dim() - 2)) else x.contiguous()


def _rope(x: Any, cos: Any, sin: Any, interleaved: bool) -> _Work:
    """x (..., T, H, D) with cos and sin (rows, rotary / 2), a row for each token, counted over all axes before H."""
    *_, h, d = x.shape
    x = x if x.is_contiguous() else _tokens_dense(x)
    t, rotary = x.numel() // (h * d) if h * d else 0, 2 * cos.shape[-1]
    if cos.shape != sin.shape or cos.numel() != t * (rotary // 2) or rotary > d or cos.dtype != sin.dtype:
        raise ArgumentError(f"rope: {t} tokens with {d} elements a head, cos {list(cos.shape)} and sin {list(sin.shape)}")
    stride, dtype, kind = x.stride(-3) if x.dim() > 2 else h * d, REALS[x.dtype], REALS[cos.dtype]
    return _Work((x, cos.contiguous(), sin.contiguous()),
                 (t, h, d, rotary, t, h * d, stride, dtype, dtype, kind, 0, int(interleaved)))


def _embedding(table: Any, ids: Any) -> _Work:
    kind, ids = _check_ids("embedding", "ids", ids, table), ids.contiguous()
    table, vocab, n, stride = _rows(table)
    dtype = REALS[table.dtype]
    return _Work((table, ids), (ids.numel(), n, vocab, n, stride, dtype, dtype, kind, 0), (*ids.shape, n))


def _cross_entropy(x: Any, target: Any, gradient: Any) -> _Work:
    """``gradient`` is a second output, or None."""
    kind = _check_ids("cross_entropy", "targets", target, x)
    if target.shape != x.shape[:-1]:
        raise ArgumentError(f"cross_entropy: logits {list(x.shape)} and targets {list(target.shape)}; targets have all axes but the last")
    x, m, n, stride = _rows(x)
    return _Work((x, target.contiguous(), gradient), (m, n, stride, n, REALS[x.dtype], kind, 1.0), target.shape, torch.float32)


def _heads_dense(x: Any) -> tuple[Any, int, int]:
    """x (batch, tokens, heads, D), copied unless heads are dense within a token, and its strides from token to token and sequence to sequence."""
    b, n, h, d = x.shape
    dense = x.stride(3) == 1 and (h == 1 or x.stride(2) == d) and (n == 1 or x.stride(1) >= h * d) and (b == 1 or x.stride(0) > 0)
    x = x if dense else x.contiguous()
    token = x.stride(1) if n > 1 else h * d
    return x, token, x.stride(0) if b > 1 else n * token


def _attention(q: Any, k: Any, v: Any, causal: bool, scale: float) -> _Work:
    (b, n, h, d), (_, keys, kv_heads, _) = q.shape, k.shape
    if k.shape != v.shape or k.shape[0] != b or k.shape[3] != d or kv_heads == 0 or h % kv_heads:
        raise ArgumentError(f"attention: q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} do not fit together")
    (q, *q_steps), (k, *k_steps), (v, *v_steps) = (_heads_dense(x) for x in (q, k, v))
    steps = (step for pair in zip((h * d, n * h * d), q_steps, k_steps, v_steps) for step in pair)
    sizes = (b, h, kv_heads, n, keys, d, 0, 0, *steps, 0)
    return _Work((q, k, v), (*sizes, REALS[q.dtype], scale, 0.0, int(causal)), q.shape)


_DESCRIBE: dict[str, Callable[..., _Work]] = {
    "rmsnorm": _rmsnorm, "add_rmsnorm": _add_rmsnorm, "layernorm": _layernorm, "softmax": _by_rows, "log_softmax": _by_rows,
    "silu_mul": _silu_mul, "gated_mul": _gated_mul, "bias_gelu": _bias_gelu, "rope": _rope, "embedding": _embedding,
    "cross_entropy": _cross_entropy, "attention": _attention,
}
OPERATIONS = {name: Operation(name, describe) for name, describe in _DESCRIBE.items()}
