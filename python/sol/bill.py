"""The bill as objects: what a kernel pays for memory, by source line, and what to change first.

Requests, sectors and wavefronts are exact; times, hits and DRAM bytes are modelled (docs/audit.md).
"""

from __future__ import annotations

import html
import os
import textwrap
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

_TOP = 10  # lines shown of a kernel, as the tool does
_WIDTH = 80


@dataclass(frozen=True)
class Line:
    """What one source line pays. ``share`` is its part of the kernel's costs, 0 to 1."""

    file: str | None
    line: int | None
    source: str
    share: float
    cost_us: float
    requests: float
    sectors: float
    ideal_sectors: float
    wavefronts: float
    ideal_wavefronts: float
    dram_bytes: float
    wasted_bytes: float
    json: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def place(self) -> str:
        """``kernel.py:12``"""
        return _place(self.file, self.line)


@dataclass(frozen=True)
class Finding:
    """What to change, and how many times faster (``gain``) the kernel would be then."""

    rule: str
    file: str | None
    line: int | None
    message: str
    fix: str
    evidence: str
    gain: float
    saved_us: float
    json: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def place(self) -> str:
        return _place(self.file, self.line)


@dataclass(frozen=True)
class Kernel:
    """One kernel's bill. ``tax`` is predicted time over ``light_us``: each byte once at the speed of a copy."""

    name: str
    launches: int
    time_us: float
    light_us: float
    tax: float
    bound: str
    occupancy: float
    registers: int
    dram_bytes: float
    floor_bytes: float
    lines: list[Line] = field(repr=False)
    findings: list[Finding] = field(repr=False)
    json: Mapping[str, Any] = field(repr=False, compare=False)
    config: Mapping[str, Any] = field(default_factory=dict)  # Triton: constants, num_warps, num_stages

    @property
    def shape(self) -> str:
        """``grid 98,1,1 block 128,1,1``: its first launch's"""
        shapes = self.json.get("shapes") or [{}]
        return f"grid {shapes[0].get('grid', '?')} block {shapes[0].get('block', '?')}"

    def __str__(self) -> str:
        return "\n".join(_kernel_text(self))


@dataclass
class Bill:
    """What an audit found: ``kernels``, in the order of their launches for Triton, the longest first otherwise."""

    device: str = ""
    kernels: list[Kernel] = field(default_factory=list)
    configs: list[tuple[Any, float]] = field(default_factory=list)  # autotuning: (config, predicted us), best first
    notes: list[str] = field(default_factory=list, repr=False)
    reports: list[Mapping[str, Any]] = field(default_factory=list, repr=False)

    @property
    def time_us(self) -> float:
        """Predicted time of all launches, one after another."""
        return sum(kernel.time_us for kernel in self.kernels)

    @property
    def light_us(self) -> float:
        return sum(kernel.light_us for kernel in self.kernels)

    @property
    def tax(self) -> float:
        return self.time_us / self.light_us if self.light_us else 0.0

    @property
    def lines(self) -> list[Line]:
        return [line for kernel in self.kernels for line in kernel.lines]

    @property
    def findings(self) -> list[Finding]:
        """Of all kernels, most time saved first."""
        return sorted((f for kernel in self.kernels for f in kernel.findings), key=lambda f: -f.saved_us)

    @property
    def best_config(self) -> Any:
        """The autotuned configuration with the shortest predicted time; None where nothing was tuned."""
        return self.configs[0][0] if self.configs else None

    @property
    def json(self) -> Mapping[str, Any]:
        """As the tool prints it (docs/json.md); of several launches: their kernels together."""
        if len(self.reports) == 1:
            return self.reports[0]
        merged = {"device": self.device, "kernels": [kernel.json for kernel in self.kernels]}
        return {**merged, "time_us": self.time_us, "light_us": self.light_us, "tax": self.tax}

    def kernel(self, name: str) -> Kernel:
        """The first kernel of that name."""
        for kernel in self.kernels:
            if kernel.name == name or kernel.name.startswith(name + "("):
                return kernel
        raise KeyError(f"no kernel {name!r} in the bill; it has {', '.join(k.name for k in self.kernels) or 'none'}")

    def add(self, report: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> list[Kernel]:
        """Takes what the tool printed; gives the kernels that were added."""
        added = [_kernel(data, config or {}) for data in report["kernels"]]
        self.device = report["device"]
        self.kernels += added
        self.notes += [note for note in report.get("notes", []) if note not in self.notes]
        self.reports.append(report)
        return added

    def __str__(self) -> str:
        parts = [f"{len(self.kernels)} kernel{'' if len(self.kernels) == 1 else 's'} on {self.device or 'no device'}, by emulation"]
        parts += [str(kernel) for kernel in self.kernels]
        if self.configs:
            rows = [[f"{time:.4g} us", str(config)] for config, time in self.configs]
            parts.append("\n".join(["Configurations, by predicted time", *_columns(rows)]))
        parts += [textwrap.fill(note, _WIDTH) for note in self.notes]
        parts.append("exact: requests, sectors, wasted; modelled: times, ratios, shares, DRAM")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return "".join(_kernel_html(kernel) for kernel in self.kernels) or "<p>no kernel was launched</p>"

    def to_pandas(self) -> Any:
        """A row for each line of each kernel (needs pandas)."""
        import pandas

        names = ["file", "line", "source", "share", "cost_us", "requests", "sectors", "ideal_sectors"]
        names += ["wavefronts", "ideal_wavefronts", "dram_bytes", "wasted_bytes"]
        rows = [
            {"kernel": kernel.name, "launch": i, **{name: getattr(line, name) for name in names}}
            for i, kernel in enumerate(self.kernels)
            for line in kernel.lines
        ]
        return pandas.DataFrame(rows, columns=["kernel", "launch", *names])


def _place(file: str | None, line: int | None) -> str:
    return f"{os.path.basename(file)}:{line}" if file else "(no line)"


def _line(data: Mapping[str, Any]) -> Line:
    names = ["share", "cost_us", "requests", "sectors", "ideal_sectors", "wavefronts", "ideal_wavefronts"]
    counts = {name: data[name] for name in [*names, "dram_bytes", "wasted_bytes"]}
    return Line(data.get("file"), data.get("line"), data.get("source") or "", json=data, **counts)


def _finding(data: Mapping[str, Any]) -> Finding:
    names = ["rule", "message", "fix", "evidence", "gain", "saved_us"]
    return Finding(file=data.get("file"), line=data.get("line"), json=data, **{name: data[name] for name in names})


def _kernel(data: Mapping[str, Any], config: Mapping[str, Any]) -> Kernel:
    names = ["name", "launches", "time_us", "light_us", "tax", "bound", "occupancy", "registers", "dram_bytes", "floor_bytes"]
    return Kernel(
        **{name: data[name] for name in names},
        lines=[_line(line) for line in data["lines"]],
        findings=[_finding(finding) for finding in data["findings"]],
        json=data,
        config=config,
    )


# ---- text ----


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.4g} {unit}"
        count /= 1000
    return ""


def _columns(rows: Iterable[list[str]]) -> list[str]:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table)]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in table]


def _row(line: Line) -> list[str]:
    per = f"{line.sectors / line.requests:.1f} ({line.ideal_sectors / line.requests:.1f})" if line.requests else ""
    return [f"{100 * line.share:.1f}%", per, _bytes(line.dram_bytes), _bytes(line.wasted_bytes), line.place, line.source.strip()]


_HEAD = ["cost", "sectors (ideal)", "DRAM", "wasted", "line", "source"]


def _shown(kernel: Kernel) -> list[Line]:
    paying = [line for line in kernel.lines if line.requests or line.wavefronts or line.share >= 0.1]
    return (paying or kernel.lines)[:_TOP]


def _kernel_text(kernel: Kernel) -> list[str]:
    config = ", ".join(f"{name}={value}" for name, value in kernel.config.items())
    text = [f"{kernel.name}{f' ({config})' if config else ''}"]
    text.append(f"  {kernel.time_us:.4g} us, light {kernel.light_us:.4g} us, tax {kernel.tax:.2f}x, bound by {kernel.bound}")
    text.append(f"  {kernel.shape}, {kernel.registers} registers, occupancy {100 * kernel.occupancy:.0f}%")
    text.append(f"  DRAM {_bytes(kernel.dram_bytes)}, each byte once would be {_bytes(kernel.floor_bytes)}")
    rows = [[cell if len(cell) < 44 else cell[:43] + "…" for cell in _row(line)] for line in _shown(kernel)]
    text += ["", *_columns([_HEAD, *rows])]
    for i, finding in enumerate(kernel.findings, 1):
        text += ["", f"  {i}. {finding.gain:.2f}x faster, saves {finding.saved_us:.4g} us: {finding.rule}, {finding.place}"]
        for sentence in (finding.message, "Fix: " + finding.fix):
            text += textwrap.wrap(sentence, _WIDTH, initial_indent="     ", subsequent_indent="     ")
    return text


# ---- HTML ----


def _html_row(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _kernel_html(kernel: Kernel) -> str:
    title = html.escape(f"{kernel.time_us:.4g} us, tax {kernel.tax:.2f}x, bound by {kernel.bound}")
    rows = "".join(_html_row(_row(line)) for line in _shown(kernel))
    fixes = "".join(
        f"<li><b>{finding.gain:.2f}x</b> {html.escape(f'{finding.rule}, {finding.place}: {finding.message} {finding.fix}')}</li>"
        for finding in kernel.findings
    )
    return f"<h4>{html.escape(kernel.name)}: {title}</h4><table>{_html_row(_HEAD, 'th')}{rows}</table><ol>{fixes}</ol>"
