"""Gates: a test that fails when a kernel pays more than it may. Works with any test runner."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from .auditing import audit
from .bill import Bill, Kernel
from .errors import BillError

_F = TypeVar("_F", bound=Callable[..., Any])


def _too_much(kernel: Kernel, max_tax: float | None, max_time_us: float | None, max_sectors: float | None) -> list[str]:
    said = []
    if max_tax is not None and kernel.tax > max_tax:
        said.append(f"{kernel.name}: tax {kernel.tax:.2f}x, at most {max_tax:g}x is allowed")
    if max_time_us is not None and kernel.time_us > max_time_us:
        said.append(f"{kernel.name}: {kernel.time_us:.4g} us, at most {max_time_us:g} us are allowed")
    for line in kernel.lines if max_sectors is not None else []:
        if line.requests and line.sectors / line.requests > max_sectors:  # type: ignore[operator]
            said.append(f"{line.place}: {line.sectors / line.requests:.1f} sectors a request, at most {max_sectors:g} are allowed")
    return said


def assert_bill(kernel_or_bill: Bill | Kernel, *, max_tax: float | None = None, max_time_us: float | None = None,
                max_sectors_per_request: float | None = None) -> None:
    """Raises BillError, an AssertionError that shows the bill, where a kernel is beyond a limit.

    The bill must have a kernel: a gate that nothing passes through is an error too.
    """
    if max_tax is None and max_time_us is None and max_sectors_per_request is None:
        raise TypeError("assert_bill needs a limit: max_tax, max_time_us or max_sectors_per_request")
    kernels = kernel_or_bill.kernels if isinstance(kernel_or_bill, Bill) else [kernel_or_bill]
    if not kernels:
        raise BillError("the bill has no kernel: nothing was launched")
    said = [text for kernel in kernels for text in _too_much(kernel, max_tax, max_time_us, max_sectors_per_request)]
    if said:
        raise BillError("\n".join(said) + f"\n\n{kernel_or_bill}")


def gate(*, device: str = "h100", arch: int | None = None, **limits: float) -> Callable[[_F], _F]:
    """A decorator: the function's Triton launches are audited, and held to the limits of ``assert_bill``.

    >>> @sol.gate(device="h200", max_tax=1.3)
    ... def test_softmax():
    ...     softmax_kernel[grid](y, x, BLOCK=1024)
    """

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def gated(*args: Any, **kwargs: Any) -> Any:
            with audit(device=device, arch=arch) as bill:
                result = function(*args, **kwargs)
            assert_bill(bill, **limits)
            return result

        return gated  # type: ignore[return-value]

    return decorate
