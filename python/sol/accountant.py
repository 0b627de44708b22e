"""The accountant: GPUs, rooflines, transformers, occupancy. Bytes and FLOPs are counted; times are modelled."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence, TypeVar, Union

from . import _tool

_T = TypeVar("_T")
Shape = Union[str, int, Sequence[int]]


def _read(kind: type[_T], data: Mapping[str, Any], **more: Any) -> _T:
    """The fields of a dataclass that the JSON has; all of it under ``json``."""
    names = {f.name for f in dataclasses.fields(kind)} - more.keys()  # type: ignore[arg-type]
    return kind(**{name: data[name] for name in names if name in data}, **{"json": data, **more})


@dataclass(frozen=True)
class Device:
    """A GPU. Every figure of ``sol devices`` is an attribute, in plain SI units; None where it is not published."""

    id: str
    name: str
    family: str
    arch: str  # "sm_90"
    sources: Mapping[str, str] = field(repr=False)
    json: Mapping[str, Any] = field(repr=False)

    def __getattr__(self, figure: str) -> Any:
        data = self.__dict__.get("json", {})
        if figure in data:
            return data[figure]
        raise AttributeError(f"a device has no figure {figure!r}; see sol.devices()[0].json")

    @property
    def cc(self) -> int:
        """Compute capability, 90 for 9.0."""
        return int(self.arch.removeprefix("sm_"))


@dataclass(frozen=True)
class Roofline:
    """Work under a device's roof. ``bound`` is memory, compute or launch."""

    device: str
    work: str
    bytes: float
    flops: float
    launches: float
    intensity: float
    ridge: float
    bound: str
    time_us: float
    terms: Mapping[str, float]
    json: Mapping[str, Any] = field(repr=False)
    advice: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps an SM holds, and what limits them."""

    device: str
    threads: int
    regs: int
    smem: int
    blocks_per_sm: int
    warps_per_sm: int
    max_warps_per_sm: int
    occupancy: float
    limiter: str
    json: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ModelKernel:
    """A kernel of a forward pass; bytes, flops and time_us are those of all ``count`` launches."""

    name: str
    part: str
    count: int
    bytes: float
    flops: float
    bound: str
    time_us: float
    share: float
    json: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Model:
    """A transformer's forward pass, every kernel at its roof."""

    model: str
    device: str
    phase: str
    total_us: float
    launch_us: float
    tokens_per_s: float
    kernels: list[ModelKernel] = field(repr=False)
    json: Mapping[str, Any] = field(repr=False)


def devices(*names: str) -> list[Device]:
    """The GPUs that Sol knows, oldest first; or those named, by id or alias ("h100")."""
    return [_read(Device, row) for row in _tool.ask("devices", *names)]


def roofline(op: str | None = None, shape: Shape | None = None, *, device: str = "h100", **options: Any) -> Roofline:
    """How fast an operation could be: ``roofline("rmsnorm", (8192, 4096), dtype="bf16")``.

    Without an operation, raw work: ``roofline(bytes=40e6, flops=5e6)``. Options are those of ``sol roofline``, with
    underscores: ``kv_heads=8``, ``phase="decode"``, ``graph=True``.
    """
    words = [] if op is None else [op]
    if shape is not None:
        words.append(shape if isinstance(shape, str) else "x".join(map(str, [shape] if isinstance(shape, int) else shape)))
    return _read(Roofline, _tool.ask("roofline", *words, device=device, **options))


def model(name: str, *, device: str = "h100", **options: Any) -> Model:
    """How fast a transformer could be: a preset ("llama-3-8b") or the path of a Hugging Face config.json.

    Options are those of ``sol model``: ``phase="decode"``, ``batch=32``, ``context=4096``, ``tp=8``, ``fused=True``.
    """
    data = _tool.ask("model", name, device=device, **options)
    return _read(Model, data, kernels=[_read(ModelKernel, kernel) for kernel in data["kernels"]])


def occupancy(threads: int, regs: int = 0, smem: int = 0, *, device: str = "h100") -> Occupancy:
    """Blocks and warps per SM for a block of ``threads`` with ``regs`` registers each and ``smem`` bytes shared."""
    return _read(Occupancy, _tool.ask("occupancy", threads=threads, regs=regs or None, smem=smem or None, device=device))
