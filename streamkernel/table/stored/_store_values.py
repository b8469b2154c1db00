"""The values of any Zarr store, read from code that is not a coroutine.

A Zarr store has coroutines only. Those of a remote store must run in the event loop of zarr's own reads, to which the
store's connections belong. zarr documents no way into it, and not the classes that ask for a part of a value.
"""

from __future__ import annotations

from zarr.abc.store import Store
from zarr.buffer import default_buffer_prototype

from streamkernel.dependencies import missing_part

try:
    from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.core.sync import sync
except ImportError as error:
    raise missing_part("zarr", str(error)) from error

__all__ = ["ByteRequest", "bounds", "read_value", "value_size"]


def read_value(store: Store, key: str, first: int = 0, last: int | None = None) -> bytes | None:
    """Bytes [first, last) of a value, or the last ``-first`` ones for a negative `first`; None for an absent key."""
    part: ByteRequest | None = None
    if first < 0:
        part = SuffixByteRequest(-first)
    elif last is not None:
        part = RangeByteRequest(first, last)
    elif first > 0:
        part = OffsetByteRequest(first)
    buffer = sync(store.get(key, default_buffer_prototype(), part))
    return None if buffer is None else buffer.to_bytes()


def value_size(store: Store, key: str) -> int:
    """Bytes of a key's value.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    return sync(store.getsize(key))


def bounds(part: ByteRequest | None) -> tuple[int, int | None]:
    """`first` and `last` of `read_value` for a request of zarr's."""
    if isinstance(part, RangeByteRequest):
        return part.start, part.end
    if isinstance(part, OffsetByteRequest):
        return part.offset, None
    if isinstance(part, SuffixByteRequest):
        return -part.suffix, None
    return 0, None
