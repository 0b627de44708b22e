"""Arrays on a GPU, of any library that speaks DLPack (torch, CuPy): handed to libsol where they are, on that library's current stream."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any, Sequence

from .errors import ArgumentError

_GPUS, _CUDA_BACKEND = (2, 13), 3  # kDLCUDA, kDLCUDAManaged; SOL_BACKEND_CUDA
_LEGACY_STREAM = 1  # DLPack's number for the default stream


def on_gpu(value: Any) -> bool:
    """Whether it is an array in a GPU's memory."""
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and int(device()[0]) in _GPUS


def _library_of(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def empty(like: Any, shape: Sequence[int], dtype: Any) -> Any:
    """A new array of the same library on the same GPU."""
    name = _library_of(like)
    library = sys.modules.get(name)
    if name == "torch":
        return library.empty(tuple(shape), dtype=getattr(library, dtype) if isinstance(dtype, str) else dtype, device=like.device)  # type: ignore[union-attr]
    if name == "cupy":
        return library.empty(tuple(shape), dtype)  # type: ignore[union-attr]
    raise ArgumentError(f"arrays of {name}: give out=; Sol cannot make one there")


def _current_stream(value: Any) -> int:
    name = _library_of(value)
    if name == "torch":
        return int(sys.modules["torch"].cuda.current_stream(value.device).cuda_stream)
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr) if name == "cupy" else 0


@functools.lru_cache(maxsize=None)
def _context(process: int, device: int) -> ctypes.c_void_p:
    """In the CUDA context that is current, which is that of the arrays' library."""
    from . import _native  # which imports this

    return _native.make_context(_CUDA_BACKEND)


class Call:
    """One call's tensors: their capsules live as long as this, so that nothing is freed before the launch."""

    def __init__(self, first: Any) -> None:
        self.stream, self.context = _current_stream(first), _context(os.getpid(), int(first.__dlpack_device__()[1]))
        self._kept: list[Any] = []

    def tensor(self, value: Any, what: str) -> ctypes.c_void_p:
        if not on_gpu(value):
            raise ArgumentError(f"{what}: some arrays are on a GPU and a {type(value).__name__} is not")
        capsule = value.__dlpack__(stream=self.stream or _LEGACY_STREAM)
        self._kept.append(capsule)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return ctypes.c_void_p(pointer(capsule, b"dltensor"))  # a DLManagedTensor begins with its DLTensor
