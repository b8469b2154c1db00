"""Named byte strings in a local folder or an object store, and the agreements that several machines reach through them.

Level 0: a place needs three operations only: read a whole value, write a whole value, and *create*. If several
processes create one key at once, exactly one succeeds. Folders (a hard link), S3, Google and Azure (a conditional put)
have all three. The numbered records of `RecordLog` use `create`; the pointer to the latest generation of an output and
the `Lease` of a run use these records.
"""

from __future__ import annotations

from streamkernel.blobs._normal_form import GENERATED, display_form, is_url, normalised, shown
from streamkernel.blobs.blobs import Blobs, Level, Stamp
from streamkernel.blobs.clock import place_time
from streamkernel.blobs.direct_file import Bytes, page_aligned
from streamkernel.blobs.generations import (
    MOST_FOLLOWED,
    Generation,
    Generations,
    Layer,
    content_digest,
    generation_of,
)
from streamkernel.blobs.lease import Lease
from streamkernel.blobs.local import LocalBlobs
from streamkernel.blobs.locations import beside, blobs_at, joined, local_path, parent_of
from streamkernel.blobs.lock import Lock, PathLock, lease_of
from streamkernel.blobs.os_errors import check_link, first_line, is_disk_full, store_error, translated_os_errors
from streamkernel.blobs.records import Record, RecordLog
from streamkernel.blobs.retries import with_retries
from streamkernel.blobs.transfer import at_once, download, upload

__all__ = [
    "GENERATED",
    "MOST_FOLLOWED",
    "Blobs",
    "Bytes",
    "Generation",
    "Generations",
    "Layer",
    "Lease",
    "Level",
    "LocalBlobs",
    "Lock",
    "PathLock",
    "Record",
    "RecordLog",
    "Stamp",
    "at_once",
    "beside",
    "blobs_at",
    "check_link",
    "content_digest",
    "display_form",
    "download",
    "first_line",
    "generation_of",
    "is_disk_full",
    "is_url",
    "joined",
    "lease_of",
    "local_path",
    "normalised",
    "page_aligned",
    "parent_of",
    "place_time",
    "shown",
    "store_error",
    "translated_os_errors",
    "upload",
    "with_retries",
]
