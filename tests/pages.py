"""The pages of the documentation as written: not the copies that `scripts/docs` makes in folders with a `_`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DOCS", "NOTEBOOKS", "TEXTS", "written"]

DOCS = Path(__file__).resolve().parents[1] / "docs"


def written(folder: Path, suffix: str) -> list[Path]:
    """Files of this suffix below `folder`, sorted, without those of folders whose names begin with `_`."""
    found = sorted(folder.rglob(f"*{suffix}"))
    return [path for path in found if not any(part.startswith("_") for part in path.relative_to(folder).parent.parts)]


TEXTS = written(DOCS, ".md")
NOTEBOOKS = written(DOCS, ".ipynb")
