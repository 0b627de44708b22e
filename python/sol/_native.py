"""libsol by ctypes: contexts, NumPy arrays as DLPack tensors, errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import TYPE_CHECKING, Any

from . import _dlpack, _find
from .errors import ArgumentError, Error, UnsupportedError

if TYPE_CHECKING:
    import numpy

_CPU_BACKEND, _DL_CPU = 1, 1
_ARGUMENT, _RANGE, _UNSUPPORTED = 1, 4, 5  # SolStatus
_CODES = {"i": 0, "u": 1, "f": 2}
_NAMED_CODES = {"bfloat16": 4, "float8_e4m3fn": 10}


class _SolError(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("offset", ctypes.c_int64), ("line", ctypes.c_int32), ("column", ctypes.c_int32),
                ("message", ctypes.c_char * 256), ("hint", ctypes.c_char * 256)]


class _Options(ctypes.Structure):
    _fields_ = [("backend", ctypes.c_int), ("device", ctypes.c_void_p), ("workers", ctypes.c_int), ("trust_pointers", ctypes.c_int)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def _raise(error: _SolError, what: str) -> None:
    text = error.message.decode(errors="replace")
    if not text.startswith(what):
        text = f"{what}: {text}"
    if error.hint:
        text += f"; {error.hint.decode(errors='replace')}"
    kinds: dict[int, type[Error]] = {_ARGUMENT: ArgumentError, _RANGE: ArgumentError, _UNSUPPORTED: UnsupportedError}
    raise kinds.get(error.status, Error)(text)


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_find.library()))
    library.sol_last_error.restype = ctypes.POINTER(_SolError)
    library.sol_quantize_scales.restype = ctypes.c_int64
    return library


@functools.lru_cache(maxsize=None)
def _context(process: int) -> ctypes.c_void_p:
    """One for each process: its threads do not survive a fork."""
    return make_context(_CPU_BACKEND)


def make_context(backend: int, **more: int) -> ctypes.c_void_p:
    context, error = ctypes.c_void_p(), _SolError()
    options = _Options(backend=backend, **more)
    if _library().sol_context_create(ctypes.byref(options), ctypes.byref(context), ctypes.byref(error)):
        _raise(error, "sol_context_create")
    return context


def _code(dtype: "numpy.dtype[Any]", what: str) -> int:
    code = _NAMED_CODES.get(dtype.name, _CODES.get(dtype.kind))
    if code is None or not dtype.isnative:
        raise ArgumentError(f"{what}: arrays of {dtype} are not supported")
    return code


def _tensor(array: "numpy.ndarray[Any, Any]", what: str) -> _Tensor:
    sizes = ctypes.c_int64 * max(array.ndim, 1)
    shape, strides = sizes(*array.shape), sizes(*(s // array.itemsize for s in array.strides))
    return _Tensor(array.ctypes.data, _DL_CPU, 0, array.ndim, _code(array.dtype, what), 8 * array.itemsize, 1, shape, strides, 0)


class Fp8:
    """An array of bytes that are fp8 (e4m3): NumPy has no such type of its own."""

    def __init__(self, array: "numpy.ndarray[Any, Any]") -> None:
        self.array = array


class Long(int):
    """An int64 of the C interface; other ints are int there."""


def _fp8_tensor(array: "numpy.ndarray[Any, Any]", what: str) -> _Tensor:
    tensor = _tensor(array, what)
    tensor.code = _NAMED_CODES["float8_e4m3fn"]
    return tensor


def _argument(value: Any, what: str, gpu: Any) -> Any:
    if isinstance(value, Fp8):
        return ctypes.byref(_fp8_tensor(value.array, what))
    if value is None:
        return ctypes.c_void_p()
    if isinstance(value, float):
        return ctypes.c_float(value)
    if isinstance(value, Long):
        return ctypes.c_int64(value)
    if isinstance(value, int):
        return ctypes.c_int(value)
    return gpu.tensor(value, what) if gpu else ctypes.byref(_tensor(value, what))


def quantize_scales(which: int, columns: int) -> int:
    """Scales of a row in a format of ``sol_quantize``."""
    return int(_library().sol_quantize_scales(ctypes.c_int(which), ctypes.c_int64(columns)))


def call(name: str, *arguments: Any) -> None:
    """``sol_<name>_dl(context, arguments..., stream)``: arrays, None, floats and ints, in the header's order.

    The first array says where: NumPy's are on the CPU.
    """
    gpu = _dlpack.Call(arguments[0]) if _dlpack.on_gpu(arguments[0]) else None
    given = [_argument(value, name, gpu) for value in arguments]
    function = getattr(_library(), f"sol_{name}_dl")
    context, stream = (gpu.context, ctypes.c_void_p(gpu.stream)) if gpu else (_context(os.getpid()), ctypes.c_void_p())
    if function(context, *given, stream):
        _raise(_library().sol_last_error().contents, name)
