"""A place with models in an object store."""

from __future__ import annotations

from typing import Any

from streamkernel.blobs import blobs_at

OTHERS = 8


def filled(url: str, estimators: dict[str, Any]) -> str:
    """Two models, and what else may lie beside them."""
    for name in ("ridge", "gp"):
        estimators[name].save(f"{url}/{name}")
    blobs = blobs_at(url)
    for number in range(OTHERS):
        blobs.write(f"table-{number}/zarr.json", b"{}")
    for key in ("notes.txt", ".ridge.run/lock/00000001.json", "empty/deeper/notes.txt"):
        blobs.write(key, b"nothing")
    return url
