"""A task that holds more than its worker may: the nanny ends the worker, the error says what to do."""

from __future__ import annotations

import time
from typing import Any

import pytest
from runs import CHUNK, Cluster, fit

from streamkernel.engine.cluster import connect
from streamkernel.errors import ResourceLimitError


@pytest.mark.fault("memory")
@pytest.mark.slow
def test_the_error_says_what_would_help(cluster: Cluster, store: str, figure: Any) -> None:
    with connect(cluster.address) as executor:
        cluster.behave(row=7 * CHUNK, hold=1_500_000_000)
        began = time.monotonic()
        with pytest.raises(ResourceLimitError, match=r"that it may; use a smaller n_components") as caught:
            fit(store, executor)
        seconds = time.monotonic() - began
    assert "rows 14000:16000, chunk X/c/7/0" in str(caught.value)
    assert "of the 1 GB that it may" in str(caught.value)
    assert seconds <= 20.0
    figure(f"advice in {seconds:.1f} s")
