"""Strict reading of Zarr metadata: files are checked before zarr parses them or memory is allocated for them.

zarr raises a JSONDecodeError for an empty `zarr.json` and an AttributeError for `[]`, opens a shape of 10^15 rows
without an error, and creates a group where nothing was. Here each of these raises one typed error, and nothing is ever
created.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import zarr
from zarr.abc.store import Store
from zarr.dtype import parse_dtype
from zarr.storage import LocalStore, StorePath

from streamkernel.atomic import parsed_json, read_file
from streamkernel.blobs import check_link, display_form, first_line, normalised, with_retries
from streamkernel.errors import (
    CorruptMetadataError,
    ResourceLimitError,
    ShapeError,
    StoreAccessError,
    StoreError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.table.stored._store_values import read_value
from streamkernel.table.stored.blob_store import BlobStore
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import call

ZarrArray: TypeAlias = zarr.Array[Any]
"""An array of any format and codec."""

_T = TypeVar("_T")

# A grid of more chunks than this cannot be listed; 16 million chunks of 8 MiB are 128 TiB.
MAX_CHUNKS = 1 << 24
# Rule 16 and the bad-input table: three decoded chunks must fit into this machine's memory before one is decoded.
CHUNKS_IN_MEMORY = 3
# Of arrays in version 3. Other fields are extensions, which a reader must know unless they say otherwise.
_FIELDS = {
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
    "consolidated_metadata",
}
_PAUSES = (0.1, 0.5)
_TRANSIENT = {
    errno.EAGAIN,
    errno.EIO,
    errno.EINTR,
    errno.EBUSY,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.ENETRESET,
    errno.EPIPE,
}


def open_store(path: str | os.PathLike[str]) -> Store:
    """A read-only store at a local path or a URL; nothing is created.

    Raises
    ------
    StoreNotFoundError, StoreAccessError
        There is no store, or this user may not read it.
    """
    local = display_form(path)
    if isinstance(local, str):
        return BlobStore(local)
    try:
        is_folder = local.is_dir()
        exists = is_folder or os.path.lexists(local)
    except PermissionError as error:
        raise StoreAccessError(f"{local} may not be read by this user; ask for access") from error
    except (OSError, ValueError) as error:  # a name that is too long, or that no path can have
        why = getattr(error, "strerror", None) or error
        raise StoreNotFoundError(f"there can be no store at {str(local)[:200]!r} ({why}); check the path") from error
    if not exists:
        raise StoreNotFoundError(f"there is no store at {local}; check the path (nothing was created)")
    check_link(local)
    if not is_folder:
        raise StoreError(f"{local} is a file, not a Zarr store; convert it by {call('ingest')} first")
    if not os.access(local, os.R_OK | os.X_OK):
        raise StoreAccessError(f"{local} may not be read by this user; ask for access")
    # The process may be in another folder when its chunks are read.
    return LocalStore(normalised(local), read_only=True)


def place(store: Store, key: str = "") -> str:
    """A name for people: local path, relative to this process's folder if it is in there; or the store's own name."""
    root = _from_here(store.root) if isinstance(store, LocalStore) else str(store)
    return f"{root}/{key}" if key else root


def _from_here(path: Path) -> str:
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return str(path)
    return str(path.relative_to(here) if path.is_relative_to(here) and path != here else path)


def join(path: str, name: str) -> str:
    """A key inside a group."""
    return f"{path}/{name}" if path else name


def retried(action: Callable[[], _T], what: str) -> _T:
    """Return `action()`, with three attempts for temporary errors (rule 17); every OSError becomes a `StoreError`.

    Raises
    ------
    StoreAccessError
        Permission denied (403).
    StoreError
        Three attempts failed, or the error is not temporary.
    """
    try:
        return with_retries(action, _passes, _PAUSES)
    except StreamKernelError:
        raise
    except PermissionError as error:
        raise StoreAccessError(f"{what} may not be read by this user; ask for access") from error
    except OSError as error:
        tries = f"after {len(_PAUSES) + 1} attempts " if _passes(error) else ""
        raise StoreError(
            f"{what} cannot be read {tries}({first_line(error)}); check the disk or the endpoint and start again"
        ) from error


def _passes(error: BaseException) -> bool:
    return isinstance(error, (ConnectionError, TimeoutError)) or getattr(error, "errno", None) in _TRANSIENT


@contextmanager
def remote_errors() -> Iterator[None]:
    """Turn the drivers' own error classes for a dead endpoint into ConnectionError."""
    try:
        yield
    except (OSError, MemoryError, StreamKernelError):
        raise
    except Exception as error:  # the drivers' classes share no base
        raise ConnectionError(first_line(error)) from error


def read_bytes(store: Store, key: str) -> bytes | None:
    """The whole value of a key, or None where there is none."""

    def get() -> bytes | None:
        if not isinstance(store, LocalStore):
            with remote_errors():
                return read_value(store, key)
        # LocalStore.get returns None also for a folder, and for a file in place of a folder; so does this.
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return read_file(store.root / key)
        return None

    return retried(get, place(store, key))


def _json_object(store: Store, key: str) -> tuple[Fields, bytes] | None:
    content = read_bytes(store, key)
    if content is None:
        return None
    name = place(store, key)
    if not content.strip():
        raise CorruptMetadataError(f"{name} is empty; restore it or write the store again")
    try:
        value = parsed_json(content)
    except (ValueError, RecursionError) as error:
        raise CorruptMetadataError(
            f"{name} is not JSON ({first_line(error)}): truncated? restore it or write the store again"
        ) from error
    if not isinstance(value, dict):
        raise CorruptMetadataError(
            f"{name} holds a JSON {type(value).__name__}, not an object; restore it or write the store again"
        )
    return value, content


def node_kind(store: Store, path: str) -> tuple[str, Fields, bytes]:
    """("array" | "group", attributes, bytes of the metadata) of the node at `path`.

    Raises
    ------
    StoreNotFoundError
        No metadata file there.
    CorruptMetadataError
        The metadata is empty, truncated, or not of Zarr's form.
    """
    key = join(path, "zarr.json")
    found = _json_object(store, key)
    if found is not None:
        value, content = found
        kind = value.get("node_type")
        attributes = value.get("attributes", {})
        version = value.get("zarr_format")
        if isinstance(version, int) and version > 3:
            raise StoreError(
                f"{place(store, key)} is of version {version} of Zarr's format, which is not known here; write the "
                "store again in version 3"
            )
        if version != 3 or kind not in ("array", "group") or not isinstance(attributes, dict):
            raise CorruptMetadataError(
                f"{place(store, key)} is not Zarr metadata (node_type {kind!r}, zarr_format {version!r}); restore it"
            )
        return kind, attributes, content
    for name, kind in ((".zarray", "array"), (".zgroup", "group")):
        found = _json_object(store, join(path, name))
        if found is not None:
            extra = _json_object(store, join(path, ".zattrs"))
            return kind, extra[0] if extra else {}, found[1]
    raise StoreNotFoundError(f"{place(store, path)} holds no Zarr array or group (no zarr.json); check the path")


def array_metadata(store: Store, path: str) -> bytes:
    """The bytes of an array's metadata file, which pin its shape, chunks, dtype and codecs."""
    kind, _, content = node_kind(store, path)
    if kind != "array":
        raise CorruptMetadataError(
            f"{place(store, path)} is a Zarr {kind} where an array is needed; restore its {_file_of(content, kind)}"
        )
    return content


def _file_of(content: bytes, kind: str = "array") -> str:
    """The name of the file that holds the metadata of an array or a group."""
    return "zarr.json" if parsed_json(content).get("zarr_format") == 3 else {"array": ".zarray"}.get(kind, ".zgroup")


def open_array(store: Store, path: str, content: bytes, name: str) -> ZarrArray:
    """The array whose metadata is `content`, checked against this machine's memory before any chunk is touched."""
    file, raw = _file_of(content), parsed_json(content)
    where = place(store, join(path, file))
    shape = raw.get("shape")
    if not (isinstance(shape, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)):
        raise CorruptMetadataError(f"{where} has no valid shape ({shape!r}); restore it")
    if len(shape) not in (1, 2):
        raise ShapeError(
            f"{name} at {place(store, path)} has shape {tuple(shape)}; a table needs 2-d X (and 1-d or 2-d y)"
        )
    try:
        if raw.get("zarr_format") == 3:
            array: ZarrArray = zarr.Array.from_dict(StorePath(store, path), raw)
        else:  # its metadata is in two files
            array = zarr.open_array(store=store, path=path, mode="r", zarr_format=2)
        itemsize = max(1, array.dtype.itemsize)
        band = (array.shards or array.chunks)[0]
        chunks = array.chunks
    except StreamKernelError:
        raise
    except OSError as error:
        raise StoreError(f"{where} cannot be read ({first_line(error)}); check the disk") from error
    except Exception as error:  # zarr's parsers raise errors of any class: KeyError, TypeError, AttributeError ...
        # Of version 2 the class is numcodecs', of version 3 zarr's.
        if type(error).__name__ == "UnknownCodecError":
            codec = first_line(error).partition(":")[2].strip(" '")
            raise StoreError(
                f"{name} at {place(store, path)} is encoded by {codec!r}, a codec that is not installed here; install "
                "the package that has it, or write the array again with another one, such as zstd"
            ) from error
        unknown = _unknown_part(raw)
        if unknown is not None:
            raise StoreError(f"{name} at {place(store, path)} has {unknown}, if its {file} is not damaged") from error
        raise CorruptMetadataError(f"{where} is not valid array metadata ({first_line(error)}); restore it") from error
    if min(band, *chunks) < 1:
        raise CorruptMetadataError(f"{where} has a chunk of no rows {chunks}; restore it")
    _check_size(array, itemsize, place(store, path), name)
    return array


def _unknown_part(raw: Fields) -> str | None:
    """What in the metadata of an array only other programs know, and the way out; None where all has known names."""
    version = raw.get("zarr_format")
    if version == 3:
        fields = [name for name, value in raw.items() if name not in _FIELDS and not _may_be_ignored(value)]
        if fields:
            return f"the field {fields[0]!r} in its metadata, which is not known here; write the array again without it"
        if raw.get("storage_transformers"):
            return "storage transformers, which cannot be read here; write the array again without them"
        for field, known, what in (
            ("chunk_grid", ("regular",), "the chunk grid"),
            ("chunk_key_encoding", ("default", "v2"), "the chunk keys"),
        ):
            found = _name_of(raw.get(field))
            if found is not None and found not in known:
                return f"{what} {found!r}, which cannot be read here; write the array again with {known[0]!r}"
    kind: Any = raw.get("data_type" if version == 3 else "dtype")
    told = _name_of(kind) if version == 3 else kind
    if not isinstance(told, str):
        return None
    try:
        parse_dtype(kind, zarr_format=3 if version == 3 else 2)
    except Exception:  # as above
        return f"the data type {told!r}, which is not known here; write the array again as numbers, such as float64"
    return None


def _name_of(extension: Unchecked) -> str | None:
    """The name of a part that programs may add to Zarr; None where this is none."""
    found = extension.get("name") if isinstance(extension, dict) else extension
    return found if isinstance(found, str) else None


def _may_be_ignored(value: Unchecked) -> bool:
    return isinstance(value, dict) and value.get("must_understand") is False


def _check_size(array: ZarrArray, itemsize: int, where: str, name: str) -> None:
    chunks = array.chunks
    width = array.shape[1] if array.ndim == 2 else 1
    # Zarr stores full chunks, so that the last one decodes to full size even where the array is shorter.
    across = math.ceil(width / chunks[1]) * chunks[1] if array.ndim == 2 else 1
    decoded = chunks[0] * max(across, 1) * itemsize
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if CHUNKS_IN_MEMORY * decoded > limit:
        raise ResourceLimitError(
            f"{name} at {where} has chunks that decode to {decoded / 1e9:.3g} GB; {CHUNKS_IN_MEMORY} of them exceed "
            f"this machine's {limit / 1e9:.3g} GB; rewrite it with smaller chunks ({call('ingest', 'chunk_rows')})"
        )
    count = math.prod(math.ceil(n / c) for n, c in zip(array.shape, array.shards or chunks, strict=True))
    if count > MAX_CHUNKS:
        raise ResourceLimitError(
            f"{name} at {where} declares shape {array.shape} in {count:.3g} chunks; more than {MAX_CHUNKS} cannot "
            "be checked; rewrite it with larger chunks or shards"
        )
