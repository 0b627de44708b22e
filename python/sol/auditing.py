"""``sol.audit``: a bill for a program, a single kernel of a .cu or .ptx file, or Triton kernels."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from types import TracebackType
from typing import Any, Mapping, Sequence, Union, overload

from . import _tool
from ._memory import Array, Buffers, is_array, plain
from .accountant import devices
from .bill import Bill, Kernel
from .errors import ArgumentError, Error, KernelFault

Dims = Union[int, Sequence[int]]


def _dims(value: Dims) -> str:
    return ",".join(map(str, [value] if isinstance(value, int) else value))


def _argument(value: Any, index: int, buffers: Buffers) -> str:
    """An array, a number, or text as the tool takes it ("f32[1024]=iota")."""
    if isinstance(value, Array) or is_array(value):
        return buffers.pointer(value if isinstance(value, Array) else Array(value), f"arg{index}")
    value = plain(value)
    return str(int(value)) if isinstance(value, bool) else value if isinstance(value, str) else repr(value)


def call(bill: Bill, words: Sequence[str], config: Mapping[str, Any] | None = None) -> list[Kernel]:
    """``sol audit ... --json`` into the bill; a kernel that faults is a KernelFault with the bill so far."""
    at = list(words).index("--") if "--" in words else len(words)
    answer = _tool.run(["audit", *words[:at], "--json", *words[at:]])
    if answer.code not in (0, _tool.WENT_WRONG) or not answer.out.strip():
        raise _tool.error_of(answer, "audit")
    added = bill.add(json.loads(answer.out), config)
    if answer.code:
        raise KernelFault(_fault_text(bill, added, answer.err), bill)
    _tool.pass_on(answer.err)
    return added


def _fault_text(bill: Bill, added: list[Kernel], printed: str) -> str:
    faults = [f"{kernel.name}: {fault}" for kernel in added for fault in kernel.json.get("faults", [])]
    return "\n".join(faults or [printed.strip() or "; ".join(bill.notes) or "the kernel did not end as it should"])


@overload
def audit(source: None = None, *, device: str = ..., arch: int | None = ..., sample: int | None = ...,
          seconds: float | None = ..., workers: int | None = ..., **options: Any) -> Audit: ...
@overload
def audit(source: Any, *, device: str = ..., kernel: str | None = ..., grid: Dims | None = ...,
          block: Dims | None = ..., smem: int = ..., args: Sequence[Any] = ..., cubin: str | None = ...,
          sample: int | None = ..., seconds: float | None = ..., workers: int | None = ..., **options: Any) -> Bill: ...


def audit(source: Any = None, *, device: str = "h100", arch: int | None = None, kernel: str | None = None,
          grid: Dims | None = None, block: Dims | None = None, smem: int = 0, args: Sequence[Any] = (),
          cubin: str | None = None, sample: int | None = None, seconds: float | None = None,
          workers: int | None = None, **options: Any) -> Any:
    """What a kernel pays for memory, by source line, on a GPU that need not be there.

    ``with sol.audit(device="h100") as bill:`` runs every Triton or Numba kernel launched inside on the emulator, with
    NumPy arrays or CPU tensors, which get the results. ``arch`` is the compute capability that is compiled for, where
    it is to be older than the device's (80).

    ``sol.audit("prog.cu", args=["4096"])`` compiles and runs a program (nvcc of CUDA 13); ``sol.audit("k.ptx",
    kernel="k", grid=32, block=256, args=[y, x, 8192])`` runs a single kernel, from a file or from PTX text; its
    arguments are arrays, which get the results, numbers, or text as ``sol audit --arg`` takes it. Further options
    are the tool's, with underscores: ``cold=True``, ``nvcc="-Iinclude"``. ``steady=True`` predicts the time of a kernel of Triton, Numba or a
    file as benchmarks measure it: as one of many alike, each on other memory. Otherwise it has an empty L2 to write to.

    ``sol.audit(kernel, grid=32, block=256, args=[y, x, 8192])`` does the same for a CuPy RawKernel: its code and options.

    ``sample`` runs that many waves of blocks alone: faster, and results are then incomplete. ``seconds`` stops a
    kernel that takes longer. A kernel that faults raises KernelFault.
    """
    common = {"device": device, "sample": sample, "seconds": seconds, "workers": workers}
    if source is None:
        return Audit(device, arch, {**common, **options})
    if arch is not None:
        raise TypeError("arch is for kernels of Triton and Numba; a .cu file takes nvcc='-arch=sm_80'")
    bill = Bill()
    with tempfile.TemporaryDirectory(prefix="sol-") as folder:
        if _is_raw_kernel(source):
            kernel, text = source.name, _file_of(source, folder)
            options["nvcc"] = " ".join([*filter(None, [options.get("nvcc")]), *source.options]) or None
        else:
            text = os.fspath(source)
        if "\n" in text:
            text = _write(folder, "kernel.ptx", text)
        single = kernel is not None or grid is not None or block is not None or text.endswith(".ptx")
        words = [text, *_tool.options_of(**common, kernel=kernel, smem=smem or None, cubin=cubin, **options)]
        if not single:
            call(bill, [*words, *(["--", *map(str, args)] if args else [])])
            return bill
        buffers = Buffers(folder)
        for i, value in enumerate(args):
            words += ["--arg", _argument(value, i, buffers)]
        words += _tool.options_of(grid=_dims(grid) if grid is not None else None, block=_dims(block) if block is not None else None)
        added = call(bill, [*words, *buffers.words])
        buffers.read_back(added[0].name)
    return bill


def _is_raw_kernel(source: Any) -> bool:
    """A CuPy RawKernel, which cannot be called without a GPU, but has all that is needed to compile it."""
    return all(hasattr(source, name) for name in ("code", "name", "options", "file_path"))


def _file_of(kernel: Any, folder: str) -> str:
    return _write(folder, f"{kernel.name[:100]}.cu", kernel.code) if kernel.code else os.fspath(kernel.file_path)


def _write(folder: str, name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


class Audit:
    """The context that ``sol.audit()`` gives: Triton's and Numba's kernels launched inside run on the emulator."""

    _one = threading.Lock()  # Triton and Numba have one driver and one dispatcher for all threads

    def __init__(self, device: str, arch: int | None, options: Mapping[str, Any]) -> None:
        self.device, self.arch, self.options = device, arch, options
        self.bill = Bill()
        self._sessions: list[Any] = []

    def _make_sessions(self) -> None:
        device = devices(self.device)[0]
        arch = self.arch or device.cc
        if arch > device.cc:
            raise ArgumentError(f"arch={arch}: a {device.id} is {device.arch} and does not run that")
        self.bill.device = device.id
        if "triton" in sys.modules:
            from . import _triton

            self._sessions.append(_triton.Session(self, device, arch))
        if "numba.cuda" in sys.modules:
            from . import _numba

            self._sessions.append(_numba.Session(self, device, arch))
        if not self._sessions:
            raise Error("import triton or numba.cuda before the audit: its kernels are what is audited")

    def __enter__(self) -> Bill:
        if not Audit._one.acquire(blocking=False):
            raise Error("an audit is on already; audits do not nest")
        try:
            self._make_sessions()
        except BaseException:
            Audit._one.release()
            raise
        for session in self._sessions:
            session.start()
        return self.bill

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for session in reversed(self._sessions):
            session.stop()
        self._sessions.clear()
        Audit._one.release()
