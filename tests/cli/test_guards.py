"""Options that would be passed over in silence are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "x", "y", "--scheduler", "threads", "--workers", "2"], "--workers is for the local cluster"),
        (["fit", "x", "y", "--scheduler", "tcp://127.0.0.1:1", "--workers", "2"], "--workers is for the local cluster"),
        (["fit", "x", "y", "--scheduler", "nonsense"], "--scheduler must be local, threads or an address"),
        (["fit", "x", "y", "--kernel", "gaussian", "--degree", "3"], "--degree means nothing to the kernel gaussian"),
        (["submit", "x", "y"], "a job outlives this process"),
        (["submit", "x", "y", "--scheduler", "threads"], "a job outlives this process"),
        (["report", "x", "y.html", "--rows", "0:5"], "give --data"),
        (["jobs"], "which jobs?"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_it_is_refused(cli: Callable[..., Any], arguments: list[str], said: str) -> None:
    assert said in cli(*arguments).error
