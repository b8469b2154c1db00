"""A Numba cache that cannot be read: cleared once, with a warning. All ways to damage one: tests/kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kernels.test_compiled import run


@pytest.mark.fault("numba")
def test_it_recovers(tmp_path: Path, figure: Any) -> None:
    _, _, _, total = run(tmp_path)
    for path in tmp_path.rglob("*.nbi"):
        path.write_bytes(path.read_bytes()[:40])
    ours, warnings, _, again = run(tmp_path)
    assert (ours, warnings) == ("1", "1")
    assert again == total
    figure("success, 1 warning")
