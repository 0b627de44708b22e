"""Exceptions. Their text is the message of Sol's C code: what is wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .bill import Bill


class Error(Exception):
    """Whatever went wrong in Sol."""


class MissingError(Error, FileNotFoundError):
    """The ``sol`` tool or its library is not there."""


class ArgumentError(Error, ValueError):
    """A value, shape, type or name that Sol does not take."""


class UnsupportedError(Error, NotImplementedError):
    """Understood, but this device, the emulator or this version of Sol cannot do it."""


class KernelFault(Error, RuntimeError):
    """A kernel or program failed while it ran. ``bill`` covers what ran before, where there is any."""

    def __init__(self, message: str, bill: "Bill | None" = None) -> None:
        super().__init__(message)
        self.bill = bill


class BillError(Error, AssertionError):
    """A gate: a kernel pays more than was allowed. The text is the bill."""
