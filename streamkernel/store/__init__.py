"""Models, factors, checkpoints and row outputs on disk: Zarr arrays and JSON, no pickle, each whole or absent.

This layer knows none of our classes. They pass a configuration and named arrays (`Bundle`) to it, and get back the
same, or an error that names the file.
"""

from __future__ import annotations

from streamkernel.blobs import page_aligned
from streamkernel.outputs import check_target
from streamkernel.store.bundle import (
    Bundle,
    as_read,
    bundle_digest,
    bundle_kind,
    is_foreign,
    read_bundle,
    write_bundle,
)
from streamkernel.store.checkpoint import Checkpoints, read_step, step_bundle
from streamkernel.store.row_codes import RowCodes
from streamkernel.store.rows import RowSink, remove_factor_rows

__all__ = [
    "Bundle",
    "Checkpoints",
    "RowCodes",
    "RowSink",
    "as_read",
    "bundle_digest",
    "bundle_kind",
    "check_target",
    "is_foreign",
    "page_aligned",
    "read_bundle",
    "read_step",
    "remove_factor_rows",
    "step_bundle",
    "write_bundle",
]
