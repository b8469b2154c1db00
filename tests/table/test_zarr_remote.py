"""Stores whose requests fail: distinct errors, never as empty; what may pass is tried again."""

import numpy as np
import pytest
import zarr
from table.zarr_stores import WANT, gathered
from zarr.storage import WrapperStore

from streamkernel.errors import (
    ParameterError,
    StoreAccessError,
    StoreError,
    StoreNotFoundError,
)
from streamkernel.table import open_table
from streamkernel.table.stored import metadata
from streamkernel.table.stored.metadata import node_kind


class Endpoint(WrapperStore):
    """A remote store whose every request fails."""

    error: Exception = ConnectionError()

    async def get(self, key, prototype, byte_range=None):
        raise self.error


class DriverError(Exception):
    """As an object store's client raises: of no common class."""


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (PermissionError(13, "403"), StoreAccessError),
        (ConnectionRefusedError(111, "refused"), StoreError),
        (DriverError("endpoint down"), StoreError),
        (OSError(28, "odd"), StoreError),
    ],
)
def test_remote_stores_fail_with_distinct_errors_and_never_as_empty(error, becomes):
    endpoint = Endpoint(zarr.storage.MemoryStore())
    endpoint.error = error
    with pytest.raises(StoreError) as caught:
        node_kind(endpoint, "")
    assert type(caught.value) is becomes


def test_memory_url_that_is_not_there():
    with pytest.raises(StoreNotFoundError):
        open_table("memory://bucket/none")
    with pytest.raises(ParameterError, match="driver"):
        open_table("nosuchscheme://bucket/none")


class Flaky(WrapperStore):
    """Fails the first `times` reads of chunks."""

    def __init__(self, store, error=None, times=0):
        super().__init__(store)
        self.error, self.times = error, times

    async def get(self, key, prototype, byte_range=None):
        if self.times > 0 and "/c/" in key:
            self.times -= 1
            raise self.error
        return await super().get(key, prototype, byte_range)


@pytest.mark.parametrize(
    "error", [ConnectionResetError("reset"), TimeoutError("slow"), OSError(5, "Input/output error")]
)
def test_transient_errors_are_tried_again(store, error, monkeypatch):
    monkeypatch.setattr(metadata, "_PAUSES", (0.0, 0.0))
    flaky = Flaky(zarr.storage.LocalStore(store, read_only=True))
    table = open_table(zarr.open_group(flaky, mode="r"))
    flaky.error, flaky.times = error, 2
    np.testing.assert_array_equal(gathered(table), WANT)
    flaky.times = 10**9
    with pytest.raises(StoreError, match="3 attempts"):
        gathered(table)


def test_permanent_errors_are_not(store):
    flaky = Flaky(zarr.storage.LocalStore(store, read_only=True))
    table = open_table(zarr.open_group(flaky, mode="r"))
    flaky.error, flaky.times = PermissionError(13, "403"), 1
    with pytest.raises(StoreAccessError, match="access"):
        gathered(table)
