"""``sol.profile()``: what PyTorch code takes by module, measured, beside what its bytes would take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from .accountant import devices
from .errors import Error


@dataclass
class ModuleTime:
    """A module's calls: ``time_us`` with its children, ``self_us`` without; ``bytes`` are inputs, outputs and own parameters, each once."""

    name: str
    kind: str
    calls: int = 0
    time_us: float = 0.0
    self_us: float = 0.0
    bytes: float = 0.0
    light_us: float | None = None

    @property
    def tax(self) -> float | None:
        """Measured time over ``light_us``, of modules without children: those of others count their children's work too."""
        return self.time_us / self.light_us if self.light_us else None


@dataclass
class Profile:
    """What was measured: ``modules``, the one that takes most by itself first. ``print(profile)`` is the table."""

    device: str = ""
    modules: list[ModuleTime] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [["self us", "with children", "calls", "bytes", "light us", "tax", "module"]]
        for m in self.modules:
            light = ["", ""] if m.light_us is None else [f"{m.light_us:.4g}", f"{m.tax:.2f}x"]
            rows.append([f"{m.self_us:.4g}", f"{m.time_us:.4g}", str(m.calls), f"{m.bytes / 1e6:.3g} MB", *light, f"{m.name} ({m.kind})"])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        lines = ["  ".join([*(cell.rjust(w) for cell, w in zip(row, widths)), row[-1]]) for row in rows]
        return "\n".join([f"{len(self.modules)} modules on {self.device or 'no device'}, measured", *lines])


def _tensors(value: Any) -> Any:
    if hasattr(value, "element_size"):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _bytes(*values: Any) -> float:
    return float(sum(t.numel() * t.element_size() for value in values for t in _tensors(value)))


class _Clock:
    """Moments on a GPU's current stream (events, read at the end), or on this machine."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.on_gpu = torch, torch.cuda.is_available()

    def now(self) -> Any:
        if not self.on_gpu:
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def microseconds(self, start: Any, end: Any) -> float:
        return float(1e3 * start.elapsed_time(end) if self.on_gpu else 1e6 * (end - start))


class profile:
    """Around any PyTorch code: measures every module that is called inside, and prints the bill at the end.

    >>> with sol.profile() as p:
    ...     model(x)
    >>> p.modules[0].self_us

    Times are those of the GPU's stream where torch has one (the gaps between launches count), otherwise of this machine. ``light_us`` is what the
    module's bytes take at the speed of ``device``'s memory (default: the GPU of this machine, where Sol knows it). ``show=False``
    prints nothing. Modules under torch.compile are seen as the whole that was compiled.
    """

    def __init__(self, device: str | None = None, *, show: bool = True) -> None:
        self.result, self.show, self._asked = Profile(), show, device
        self._open: list[tuple[Any, Any, float]] = []
        self._seen: list[tuple[int, str, int, Any, Any, float]] = []  # module, its kind, its depth, start, end, bytes
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
        self._handles: list[Any] = []

    def __enter__(self) -> Profile:
        import torch
        from torch.nn.modules import module as hooks

        self._clock = _Clock(torch)
        self._bandwidth = self._find_bandwidth(torch)
        self._handles = [
            hooks.register_module_forward_pre_hook(self._before),
            hooks.register_module_forward_hook(self._after, always_call=True),
        ]
        return self.result

    def _find_bandwidth(self, torch: Any) -> float | None:
        try:
            name = self._asked or (torch.cuda.get_device_name().removeprefix("NVIDIA ").replace(" ", "-").lower() if self._clock.on_gpu else None)
            found = devices(name)[0] if name else None
        except Error:
            if self._asked:
                raise
            found = None
        self.result.device = found.id if found else "this machine"
        return found.mem_bandwidth if found else None

    def _before(self, module: Any, args: Any) -> None:
        if not self._open:
            self._kept.append(module)  # an id is a module's as long as it lives
            self._names.update({id(m): name or type(m).__name__ for name, m in module.named_modules()})
        own = _bytes(args, list(module.parameters(recurse=False)))
        self._open.append((module, self._clock.now(), own))

    def _after(self, module: Any, args: Any, output: Any) -> None:
        while self._open:  # a forward that raised leaves those below it open
            top, start, own = self._open.pop()
            if top is module:
                self._seen.append((id(module), type(module).__name__, len(self._open), start, self._clock.now(), own + _bytes(output)))
                return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for handle in self._handles:
            handle.remove()
        if self._clock.on_gpu:
            self._clock.torch.cuda.synchronize()
        self._add_up()
        if self.show and error is None:
            print(self.result)

    def _add_up(self) -> None:
        found: dict[int, ModuleTime] = {}
        below: dict[int, float] = {}  # of each depth: what the calls inside the one that is still open took
        parents: set[int] = set()
        for key, kind, depth, start, end, size in self._seen:  # a module comes after its children
            took = self._clock.microseconds(start, end)
            inside = below.pop(depth + 1, None)
            row = found.setdefault(key, ModuleTime(self._names.get(key, kind), kind))
            row.calls, row.time_us, row.bytes = row.calls + 1, row.time_us + took, row.bytes + size
            row.self_us += took - (inside or 0.0)
            below[depth] = below.get(depth, 0.0) + took
            if inside is not None:
                parents.add(key)
        for key, row in found.items():
            if self._bandwidth and key not in parents:
                row.light_us = 1e6 * row.bytes / self._bandwidth
        self.result.modules = sorted(found.values(), key=lambda row: -row.self_us)
