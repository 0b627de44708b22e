"""pytest finds this by itself once the package is installed: fixtures ``assert_bill`` and ``sol_audit``."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from . import auditing, gates


@pytest.fixture
def assert_bill() -> Callable[..., None]:
    """``assert_bill(bill, max_tax=1.3)``"""
    return gates.assert_bill


@pytest.fixture
def sol_audit() -> Callable[..., Any]:
    """``with sol_audit(device="h100") as bill:``"""
    return auditing.audit
