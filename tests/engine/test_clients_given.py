"""What a user may give as a client: one error for what is none, before any work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import data_sets
import pytest
from distributed import Client
from thread_clients import thread_client

from streamkernel import KernelRidge, compress, cross_validate, factorize, plan
from streamkernel.errors import ClusterError, ParameterError

DATA = data_sets.friedman(400, 5)


def fitted(client: Any) -> KernelRidge:
    return KernelRidge(10, client=client, random_state=0).fit(DATA.X, DATA.y)


CALLS: dict[str, Callable[[Any], Any]] = {
    "fit": fitted,
    "plan": lambda client: plan(KernelRidge(10, client=client), DATA.X, DATA.y),
    "factorize": lambda client: factorize(DATA.X, n_components=5, client=client),
    "compress": lambda client: compress(DATA.X, size=20, client=client),
    "cross_validate": lambda client: cross_validate(
        DATA.X, {"a": KernelRidge(5), "b": KernelRidge(10)}, y=DATA.y, client=client
    ),
}


@pytest.mark.parametrize("client", ["tcp://127.0.0.1:8786", "threads", False, 4, Client], ids=str)
def test_what_is_no_client(client: Any) -> None:
    with pytest.raises(ParameterError, match=r"client must be a distributed.Client, not .*leave it out for threads"):
        fitted(client)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_cluster_and_a_closed_client(call: Callable[[Any], Any]) -> None:
    with thread_client(1) as client:
        with pytest.raises(ParameterError, match=r"not LocalCluster\(.*; give Client\(...\) of a cluster"):
            call(client.cluster)
        closed = Client(client.scheduler.address, set_as_default=False)
        closed.close()
        with pytest.raises(ClusterError, match="the client is closed; connect a new one"):
            call(closed)


def test_an_asynchronous_client_in_its_event_loop_and_in_a_thread() -> None:
    usual = fitted(None).model_.digest
    with thread_client(1) as plain:

        async def coroutine() -> str:
            async with Client(plain.scheduler.address, asynchronous=True, set_as_default=False) as client:
                with pytest.raises(ParameterError, match=r"client is an asynchronous one.*asyncio.to_thread"):
                    fitted(client)
                return str((await asyncio.to_thread(fitted, client)).model_.digest)

        assert asyncio.run(coroutine()) == usual
