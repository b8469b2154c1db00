"""The parts of `scripts/reproduce`, which no package holds: imported from their files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

REPRODUCTIONS = Path(__file__).resolve().parents[1] / "scripts" / "reproductions"


def private(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPRODUCTIONS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up there.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
