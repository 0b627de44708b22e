"""Arrays of NumPy and CPU tensors of torch as memory of the emulated GPU, and back.

What owns an array's memory becomes one buffer, and each array points into it: views overlap on the GPU as they do
here. A buffer starts on a multiple of 256 bytes, as memory of a GPU does, wherever the array lies on this machine.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass, field
from typing import Any

from .errors import ArgumentError, Error

_ADDRESS = 1 << 40  # what an array's pointer seems to be: aligned as it will be on the GPU
_MAX_NAME = 31


def is_array(value: Any) -> bool:
    """A NumPy array or a torch tensor. NumPy's scalars are none."""
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__}
    return bool(kinds & {"numpy.ndarray", "torch.Tensor"})


def plain(value: Any) -> Any:
    """NumPy's scalars as Python's."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") and not is_array(value) else value


@dataclass(frozen=True)
class Memory:
    """Bytes of this machine, kept alive by ``owner``."""

    address: int
    size: int
    writable: bool
    owner: Any = field(repr=False, compare=False)

    def read(self) -> bytes:
        return ctypes.string_at(self.address, self.size)

    def write(self, data: bytes) -> None:
        ctypes.memmove(self.address, data, self.size)


def _extent(array: Any) -> tuple[int, int]:
    """The first byte of a NumPy array's elements, and how many there are up to the last."""
    low = high = 0
    for size, stride in zip(array.shape, array.strides):
        if size == 0:
            return array.ctypes.data, 0
        low += min(0, (size - 1) * stride)
        high += max(0, (size - 1) * stride)
    return array.ctypes.data + low, high - low + array.itemsize


_KINDS, _NAMES = "fiub", ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def _numpy_memory(array: Any) -> Memory:
    if array.dtype.kind not in _KINDS and array.dtype.name not in _NAMES or not array.dtype.isnative:
        raise ArgumentError(f"an array is of {array.dtype}, which kernels do not have")
    owner = array
    while is_array(owner.base):
        owner = owner.base
    address, size = _extent(owner)
    return Memory(address, size, array.flags.writeable, owner)


def _torch_memory(tensor: Any) -> Memory:
    if tensor.device.type != "cpu":
        raise ArgumentError(f"a tensor is on {tensor.device}; an audit on the emulator takes tensors on the CPU")
    storage = tensor.untyped_storage()
    return Memory(storage.data_ptr(), storage.nbytes(), True, tensor)


class Array:
    """An array as Triton wants it: with ``data_ptr()``. Everything else is the array's own."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.memory = _torch_memory(source) if hasattr(source, "untyped_storage") else _numpy_memory(source)
        address = source.data_ptr() if hasattr(source, "data_ptr") else source.ctypes.data
        self.offset = address - self.memory.address if self.memory.size else 0

    def data_ptr(self) -> int:
        return _ADDRESS + self.offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["source"], name)

    def zero_(self) -> None:  # these three are what triton.autotune calls
        self.source[...] = 0

    def clone(self) -> Array:
        return Array(self.source.clone() if hasattr(self.source, "clone") else self.source.copy())

    def copy_(self, other: Array) -> None:
        self.source[...] = other.source


def wrap(value: Any) -> Any:
    """Arrays with ``data_ptr()``, NumPy's scalars as Python's; all else as it is."""
    return Array(value) if is_array(value) else plain(value)


class Buffers:
    """The buffers of one launch: files in ``folder`` for the tool to read, and to write results to."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.words: list[str] = []  # --buffer and --save
        self._made: dict[tuple[int, int], tuple[str, Memory, bytes]] = {}
        self._read_only: dict[str, str] = {}

    def pointer(self, array: Array, name: str) -> str:
        """``@x+64``: the argument that points to the array."""
        key = (array.memory.address, array.memory.size)
        if key not in self._made:
            self._make(key, array.memory, name)
        label = self._made[key][0]
        if not array.memory.writable:
            self._read_only.setdefault(label, name)
        return f"@{label}+{array.offset}"

    def scratch(self, name: str, size: int) -> str:
        """Zeroed memory that is not wanted back."""
        label = self._label(name)
        self.words += ["--buffer", f"{label}:u8[{size}]=zero"]
        return f"@{label}"

    def _label(self, name: str) -> str:
        stem = re.sub(r"\W", "_", name)[: _MAX_NAME - 4] or "buffer"
        taken = " ".join(self.words)
        return next(label for i in range(1000) if f"{(label := stem + (str(i) if i else ''))}:" not in taken)

    def _make(self, key: tuple[int, int], memory: Memory, name: str) -> None:
        label, data = self._label(name), memory.read()
        if data:
            with open(self._file(label, "in"), "wb") as file:
                file.write(data)
            self.words += ["--buffer", f"{label}:u8[{len(data)}]=@{self._file(label, 'in')}"]
            self.words += ["--save", f"{label}={self._file(label, 'out')}"]
        else:
            self.words += ["--buffer", f"{label}:u8[1]=zero"]
        self._made[key] = (label, memory, data)

    def _file(self, label: str, end: str) -> str:
        return os.path.join(self.folder, f"{label}.{end}")

    def read_back(self, kernel: str) -> None:
        """Copies what the kernel wrote into the arrays; one that may not be written is an error, and is not."""
        for label, memory, before in self._made.values():
            if not before:
                continue
            with open(self._file(label, "out"), "rb") as file:
                after = file.read()
            if after == before:
                continue
            if label in self._read_only:
                raise ArgumentError(f"{kernel} writes to {self._read_only[label]}, which is read-only")
            if len(after) != memory.size:
                raise Error(f"{kernel}: {label} came back with {len(after)} bytes, not {memory.size}")
            memory.write(after)
