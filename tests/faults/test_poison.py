"""A task that ends its worker, wherever it runs: an error that names the chunk, and no innocent one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from runs import CHUNK, Cluster, fit

from streamkernel.engine.cluster import connect
from streamkernel.errors import ClusterError


@pytest.mark.fault("poison")
@pytest.mark.slow
@pytest.mark.parametrize("chunk", [7, 19])
def test_the_error_names_the_chunk(cluster: Cluster, store: str, figure: Any, chunk: int) -> None:
    with connect(cluster.address) as executor:
        cluster.behave(row=chunk * CHUNK + 100, kill=True)
        began = time.monotonic()
        with pytest.raises(ClusterError) as caught:
            fit(store, executor)
        seconds = time.monotonic() - began
    print(seconds, caught.value)
    assert str(caught.value).startswith(
        f"the task of rows {chunk * CHUNK}:{chunk * CHUNK + CHUNK}, chunk X/c/{chunk}/0"
    )
    assert seconds <= 15.0
    figure(f"named in {seconds:.1f} s")
