"""Numba's CUDA kernels on the emulator: launches are taken over while an audit is on.

Numba compiles the kernel to PTX for the GPU asked for, which takes NVVM (CUDA's toolkit) and no GPU.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any, Callable, Sequence

from numba import cuda, typeof, types
from numba.cuda.dispatcher import CUDADispatcher

from . import _tool
from ._memory import Array, Buffers, is_array
from .accountant import Device
from .auditing import Audit, call
from .errors import UnsupportedError

_SCALARS = {"bool": "u8", "float32": "f32", "float64": "f64", **{f"{sign}int{n}": f"{sign or 's'}{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}}


def _dims(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(int(value))


def _words(value: Any, name: str, buffers: Buffers) -> list[str]:
    """The parameters of one argument. An array is two pointers that are not used, sizes, the data, shape and strides."""
    if is_array(value):
        array = Array(value)
        sizes = [f"s64:{n}" for n in (value.size, value.itemsize)]
        return ["u64:0", "u64:0", *sizes, buffers.pointer(array, name), *(f"s64:{n}" for n in (*value.shape, *value.strides))]
    kind = _SCALARS.get(str(typeof(value)))
    if kind is None:
        raise UnsupportedError(f"{name}: arguments of type {typeof(value)} are not supported by an audit on the emulator yet")
    return [f"{kind}:{int(value) if kind[0] in 'us' else repr(float(value))}"]


class Session:
    """One audit: ``kernel[grid, block](...)`` runs on the emulator until it ends."""

    def __init__(self, audit: Audit, device: Device, arch: int) -> None:
        self.bill, self.options, self.arch = audit.bill, {**audit.options, "device": device.id}, arch
        self.compiled: dict[Any, str] = {}

    def start(self) -> None:
        self._before = CUDADispatcher.__getitem__
        CUDADispatcher.__getitem__ = lambda kernel, config: self._configured(kernel, config)

    def stop(self) -> None:
        CUDADispatcher.__getitem__ = self._before

    def _configured(self, kernel: Any, config: Sequence[Any]) -> Callable[..., None]:
        grid, block, _, shared = (*config, None, 0)[:4] if len(config) < 3 else (*config, 0)[:4]
        return lambda *args: self._launch(kernel.py_func, bool(kernel.targetoptions.get("fastmath")), grid, block, shared, args)

    def _compile(self, function: Any, fastmath: bool, args: Sequence[Any]) -> str:
        signature = types.void(*map(typeof, args))
        key = (function, fastmath, signature)
        if key not in self.compiled:
            ptx, _ = cuda.compile_ptx(function, signature, lineinfo=True, fastmath=fastmath, cc=divmod(self.arch, 10))
            symbol = re.findall(r"\.entry\s+(\w+)", ptx)[0]
            self.compiled[key] = ptx.replace(symbol, function.__name__)  # Numba's names are hundreds of letters long
        return self.compiled[key]

    def _launch(self, function: Any, fastmath: bool, grid: Any, block: Any, shared: int, args: Sequence[Any]) -> None:
        ptx = self._compile(function, fastmath, args)
        name, names = function.__name__, function.__code__.co_varnames
        with tempfile.TemporaryDirectory(prefix="sol-") as folder:
            path, buffers = os.path.join(folder, f"{name}.ptx"), Buffers(folder)
            with open(path, "w") as file:
                file.write(ptx)
            words = [word for value, what in zip(args, names) for text in _words(value, what, buffers) for word in ("--arg", text)]
            source = os.path.dirname(function.__code__.co_filename)
            options = _tool.options_of(kernel=name, grid=_dims(grid), block=_dims(block), smem=shared or None, source_dir=source or None)
            call(self.bill, [path, *options, *_tool.options_of(**self.options), *words, *buffers.words])
            buffers.read_back(name)
