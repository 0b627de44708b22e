"""Triton kernels on the emulator: a driver for Triton that says it is the GPU asked for, and a launcher that calls sol.

Triton compiles as for that GPU and hands over its PTX, the machine code, the grid and the bytes of shared memory.
While an audit is on, its driver is the active one, and ``run`` of kernels and autotuners takes NumPy arrays.
"""

from __future__ import annotations

import functools
import os
import pathlib
import re
import struct
import tempfile
import threading
from typing import Any, Callable, Iterator, Mapping, Sequence

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime.autotuner import Autotuner
from triton.runtime.cache import get_cache_manager
from triton.runtime.jit import JITFunction

from . import _tool
from ._memory import Array, Buffers, wrap
from .accountant import Device
from .advice import in_triton_words
from .auditing import Audit, call
from .errors import ArgumentError, Error, UnsupportedError

_PACKAGE = os.path.dirname(os.path.abspath(triton.__file__))
_FORMATS = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d",
}


# ---- arguments ----


def _flat(signature: Any, value: Any, name: str) -> Iterator[tuple[str, Any, str]]:
    """(type, value, name) of every argument that the compiled kernel takes."""
    if isinstance(signature, tuple):
        for i, (kind, part) in enumerate(zip(signature, value)):
            yield from _flat(kind, part, f"{name}_{i}")
    elif signature != "constexpr":
        yield signature, value, name


def _number(kind: str, value: Any) -> str:
    if kind == "bf16":
        return "hex:" + struct.pack("<f", value)[2:].hex()
    signed = _FORMATS[kind] in "bhiq"
    bits = 8 * struct.calcsize(_FORMATS[kind])
    if _FORMATS[kind] not in "efd":
        value = int(value) & ((1 << bits) - 1)  # as C would convert it
        value -= (1 << bits) if signed and value >> (bits - 1) else 0
    return "hex:" + struct.pack("<" + _FORMATS[kind], value).hex()


def _word(kind: str, value: Any, name: str, buffers: Buffers) -> str:
    value = wrap(value)
    if kind.startswith("*"):
        if value is None:
            return "u64:0"
        if not isinstance(value, Array):
            raise ArgumentError(f"{name} is no NumPy array or CPU tensor: {type(value).__name__}")
        return buffers.pointer(value, name)
    if kind not in _FORMATS and kind != "bf16":
        raise UnsupportedError(f"{name}: arguments of type {kind} are not supported by an audit on the emulator yet; "
                               "make the descriptor in the kernel, or pass pointers")
    return _number(kind, value)


# ---- PTX ----

_LOC = re.compile(r"(?m)^(\s*\.loc\s+)(\d+)\s+(\d+)\s+(\d+)(, function_name \S+, inlined_at (\d+) (\d+) (\d+))?")
_DEEPEST = 64  # calls of the library within each other
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)


def _own_file(ptx: str, source: str) -> str:
    """Triton's cache may have the PTX of the same kernel in another file: the file of its first line is ``source``."""
    if set(source) & set('"\\\n'):
        return ptx  # no name that PTX could hold
    first = _LOC.search(ptx)
    number = first.group(2) if first else "1"
    return re.sub(rf'^(\s*\.file\s+{number}\s+)"[^"]*"', lambda found: f'{found.group(1)}"{source}"', ptx, flags=re.M)


def own_lines(ptx: str) -> str:
    """The PTX with the kernel's own line at every instruction; as many lines of text as before.

    Two things are put right. LLVM counts each line of inline assembly as a further line of the source: there the line
    in front of it holds. And code of Triton's own library (tl.sum) counts at the line of the kernel that calls it.
    """
    library = {number for number, name in _FILE.findall(ptx) if name.startswith(_PACKAGE + os.sep)}
    called: dict[Sequence[str], Sequence[str]] = {}  # where code of a place was inlined last

    def climb(found: re.Match[str]) -> str:
        place: Sequence[str] = found.group(2, 3, 4)
        if found.group(5):
            called[place] = found.group(6, 7, 8)
        for _ in range(_DEEPEST):
            if place[0] not in library or place not in called:
                break
            place = called[place]
        return found.group(0) if place == found.group(2, 3, 4) else found.group(1) + " ".join(place)

    text, outside, inside = [], "", False
    for line in ptx.split("\n"):
        if "// begin inline asm" in line or "// end inline asm" in line:
            inside = "begin" in line
        elif found := _LOC.match(line):
            line = outside = outside if inside and outside else climb(found)
        text.append(line)
    return "\n".join(text)


def _parameter_count(ptx: str, name: str) -> int:
    head = re.search(rf"\.entry\s+{re.escape(name)}\s*\((.*?)\)\s*[.{{]", ptx, re.S)
    return len(re.findall(r"\.param\b", head.group(1))) if head else 0


def registers_of(cubin: bytes) -> int:
    """Registers a thread, from the section .nv.info: attribute 0x2f is a symbol and its registers."""
    table, = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + 64 * i) for i in range(count)]
    for name, _, _, _, at, size in headers:
        start = headers[names][4] + name
        if cubin[start : cubin.index(b"\0", start)] != b".nv.info":
            continue
        end = at + size
        while at + 4 <= end:
            form, attribute, length = struct.unpack_from("<BBH", cubin, at)
            if form == 4 and attribute == 0x2F:
                return int(struct.unpack_from("<I", cubin, at + 8)[0]) & 1023
            at += 4 + (length if form == 4 else 0)
    return 0


# ---- what Triton calls ----


class _Utils:
    """Of a driver: what Triton asks about the GPU, and a loader that loads nothing."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def get_device_properties(self, _: Any = None) -> dict[str, int]:
        d = self.device
        return {
            "max_shared_mem": d.smem_per_block, "max_num_regs": d.regs_per_sm, "multiprocessor_count": d.sms,
            "warpSize": 32, "sm_clock_rate": int((d.boost_clock or 0) / 1e3), "mem_clock_rate": 0, "mem_bus_width": d.mem_bus_bits or 0,
        }

    def load_binary(self, name: str, cubin: bytes, shared: int, device: Any) -> tuple[Any, Any, int, int, int]:
        return object(), cubin, registers_of(cubin), 0, 1024

    def unload_module(self, _: Any) -> None:
        pass


class Driver(DriverBase):
    """A GPU of Sol's table, as far as Triton's compiler and runtime want to know."""

    def __init__(self, device: Device, arch: int, benchmark: Callable[..., Any]) -> None:
        self.device, self.arch, self.benchmark = device, arch, benchmark
        self.utils = _Utils(device)
        self.launcher_cls = Launcher

    @classmethod
    def is_active(cls) -> bool:
        return Session.on is not None

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.arch, 32)

    def get_current_device(self) -> str:  # the key of Triton's table of compiled kernels
        return f"sol {self.device.id} sm_{self.arch}"

    def set_current_device(self, _: Any) -> None:
        pass

    def get_current_stream(self, _: Any = None) -> int:
        return 0

    def get_device_capability(self, _: Any = None) -> tuple[int, int]:
        return divmod(self.arch, 10)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_benchmarker(self) -> Callable[..., Any]:
        return self.benchmark

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_empty_cache_for_benchmark(self) -> None:
        return None

    def clear_cache(self, _: Any) -> None:
        pass


class Launcher:
    """A compiled kernel that is launched by running sol. Triton keeps one for each compiled kernel."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self.src, self.metadata = src, metadata

    @functools.cached_property
    def files(self) -> tuple[str, str, str]:
        """The PTX's text, and the files of its machine code and of the kernel's source."""
        group = get_cache_manager(self.metadata.hash).get_group(f"{self.src.name[:150]}.json") or {}
        paths = {pathlib.Path(path).suffix: path for path in group.values()}
        if ".ptx" not in paths:
            raise Error(f"Triton's cache has no PTX of {self.src.name}; unset TRITON_STORE_BINARY_ONLY")
        source = str(self.src.fn.fn.__code__.co_filename)
        return own_lines(_own_file(pathlib.Path(paths[".ptx"]).read_text(), source)), str(paths.get(".cubin", "")), source

    def __call__(self, x: int, y: int, z: int, stream: Any, function: Any, packed: Any, launch_metadata: Any,
                 enter: Any, leave: Any, *args: Any) -> None:
        session = Session.on
        if session is None:
            raise Error(f"{self.metadata.name} was compiled under sol.audit and can only be launched there")
        if enter is not None:
            enter(launch_metadata)
        with session.lock:
            session.launch(self, (x, y, z), args)
        if leave is not None:
            leave(launch_metadata)

    def argument_words(self, args: Sequence[Any], buffers: Buffers, blocks: int) -> list[str]:
        names = self.src.signature
        words = [_word(*flat, buffers) for (name, kind), value in zip(names.items(), args) for flat in _flat(kind, value, str(name))]
        hidden = _parameter_count(self.files[0], self.metadata.name) - len(words)
        for name in ("global_scratch", "profile_scratch")[: max(hidden, 0)]:
            size = getattr(self.metadata, f"{name}_size", 0) or 0
            words.append(buffers.scratch(name, size * blocks) if size else "u64:0")
        return [word for pair in words for word in ("--arg", pair)]

    def words(self, grid: tuple[int, int, int], args: Sequence[Any], folder: str, buffers: Buffers) -> list[str]:
        m = self.metadata
        ptx, cubin, source = self.files
        ctas = getattr(m, "num_ctas", 1) or 1
        path = os.path.join(folder, f"{m.name[:100]}.ptx")
        with open(path, "w") as file:
            file.write(ptx)
        arguments = self.argument_words(args, buffers, ctas * grid[0] * grid[1] * grid[2])
        options = _tool.options_of(
            kernel=m.name, grid=f"{grid[0] * ctas},{grid[1]},{grid[2]}", block=32 * m.num_warps, smem=m.shared or None,
            cluster=ctas if ctas > 1 else None, cooperative=bool(getattr(m, "launch_cooperative_grid", False)),
            cubin=cubin or None, source_dir=os.path.dirname(source) or None,
        )
        return [path, *options, *arguments, *buffers.words]

    def config(self) -> dict[str, Any]:
        names = list(self.src.signature)
        constants = {names[key[0]] if isinstance(key, tuple) else key: value for key, value in self.src.constants.items()}
        written = {name: value for name, value in constants.items() if name in self._constexprs() and value is not None}
        return {**written, "num_warps": self.metadata.num_warps, "num_stages": getattr(self.metadata, "num_stages", None)}

    def _constexprs(self) -> set[str]:
        return {p.name for p in getattr(self.src.fn, "params", []) if p.is_constexpr}


# ---- an audit ----


def _wrap_all(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    return [wrap(a) for a in args], {name: wrap(a) for name, a in kwargs.items()}


class Session:
    """One audit: sets Triton's driver and lets arrays in, and undoes both."""

    on: "Session | None" = None  # Triton keeps launchers for longer than an audit

    def __init__(self, audit: Audit, device: Device, arch: int) -> None:
        self.bill, self.options, self.arch = audit.bill, {**audit.options, "device": device.id}, arch
        self.driver = Driver(device, arch, self.benchmark)
        self.trial: list[float] | None = None  # predicted times of the launches that an autotuner makes
        self.caches: dict[int, Any] = {}
        self.lock = threading.Lock()

    def start(self) -> None:
        try:
            self._before = triton.runtime.driver.active
        except RuntimeError:  # there is no GPU
            self._before = None
        self._runs = (JITFunction.run, Autotuner.run)
        Session.on = self
        triton.runtime.driver.set_active(self.driver)
        JITFunction.run, Autotuner.run = self._jit_run(), self._tuner_run()

    def stop(self) -> None:
        JITFunction.run, Autotuner.run = self._runs
        triton.runtime.driver.set_active(self._before)
        Session.on = None

    def _jit_run(self) -> Callable[..., Any]:
        run = self._runs[0]

        def sol_run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            args_, kwargs_ = _wrap_all(args, kwargs)
            return run(kernel, *args_, **kwargs_)

        return sol_run

    def _tuner_run(self) -> Callable[..., Any]:
        run = self._runs[1]

        def sol_run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            args_, kwargs_ = _wrap_all(args, kwargs)
            # What was tuned elsewhere is not this GPU's, and what is predicted here must not stay.
            kept = {name: tuner.__dict__.get(name) for name in ("cache", "cache_results", "do_bench")}
            tuner.cache, tuner.cache_results = self.caches.setdefault(id(tuner), {}), False
            tuner.__dict__["do_bench"] = self.benchmark
            tuner.configs_timings = {}
            try:
                return run(tuner, *args_, **kwargs_)
            finally:
                self._note_configs(tuner.configs_timings)
                tuner.__dict__.update(kept)
                if kept["do_bench"] is None:
                    del tuner.__dict__["do_bench"]

        return sol_run

    def _note_configs(self, timings: Mapping[Any, Any]) -> None:
        found = [(config, 1e3 * (t[0] if isinstance(t, (list, tuple)) else t)) for config, t in timings.items()]
        if found:
            self.bill.configs = sorted(found, key=lambda pair: pair[1])

    def benchmark(self, kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **_: Any) -> Any:
        """In place of Triton's: predicted milliseconds. The arrays stay as they are."""
        self.trial = []
        try:
            kernel_call()
            ms = sum(self.trial) / 1e3
        finally:
            self.trial = None
        return [ms] * len(quantiles) if quantiles else ms

    def launch(self, launcher: Launcher, grid: tuple[int, int, int], args: Sequence[Any]) -> None:
        if 0 in grid:
            return
        bill = self.bill if self.trial is None else type(self.bill)()
        with tempfile.TemporaryDirectory(prefix="sol-") as folder:
            buffers = Buffers(folder)
            words = launcher.words(grid, args, folder, buffers)
            added = self._call(bill, [*words, *_tool.options_of(**self.options)], launcher)
            if self.trial is None:
                buffers.read_back(launcher.metadata.name)
        bill.kernels[-len(added) :] = map(in_triton_words, added)
        if self.trial is not None:
            self.trial.append(bill.time_us)

    def _call(self, bill: Any, words: list[str], launcher: Launcher) -> Any:
        try:
            return call(bill, words, launcher.config())
        except UnsupportedError as error:
            older = " (or pass arch=80 to sol.audit: Triton then compiles for sm_80)" if self.arch >= 90 else ""
            raise UnsupportedError(f"{launcher.metadata.name}, compiled for sm_{self.arch}: {error}{older}") from None
