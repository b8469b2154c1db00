"""Cases of a parametrized test that only `scripts/test --all` runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["slow_but"]


def slow_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """All cases, those outside `quick` marked slow. A tuple is a case of several arguments.

    `quick` has one case for each branch of the code; the others repeat the statement with other combinations.
    """
    found = list(cases)
    assert set(quick) <= set(found)
    slow = [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow) for each in found]
    return [each if each in quick else late for each, late in zip(found, slow, strict=True)]
