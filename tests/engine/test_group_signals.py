"""Signals that a whole group of processes is sent: workers of the local cluster go on, and end with their driver."""

from __future__ import annotations

import os
import signal
import time

import data_sets
import psutil
from distributed import Client, get_client

from streamkernel import open_table
from streamkernel.engine import Session
from streamkernel.engine.cluster import local_cluster
from streamkernel.fits import fit_ridge
from streamkernel.settings import RidgeSettings

DATA = data_sets.friedman(1500, 5)


def processes(client: Client) -> set[int]:
    return set(client.run(os.getpid).values())


def test_workers_do_not_hear_of_them() -> None:
    with local_cluster(1) as executor:
        client = get_client()
        before = processes(client)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            for process in before:
                os.kill(process, number)
        time.sleep(0.2)
        fit_ridge(
            open_table(DATA.X, DATA.y),
            RidgeSettings(n_components=20, kernel="gaussian", metric="none"),
            Session(executor),
        )
        assert processes(client) == before
    assert not any(psutil.pid_exists(process) for process in before)
