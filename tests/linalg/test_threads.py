"""The BLAS limit holds from whichever thread it is asked for, and is given back by the last to leave."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from streamkernel.linalg import single_threaded_blas


def blas_threads() -> set[int]:
    scipy.linalg.cholesky(np.eye(2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads() -> object:
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this machine's BLAS has one thread only")
        yield


def test_limit_from_main_and_other_threads_in_turn(two_threads: object) -> None:
    def limited() -> set[int]:
        with single_threaded_blas():
            return blas_threads()

    for _ in range(2):
        assert limited() == {1}
        assert blas_threads() == {2}
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(limited).result() == {1}
        assert blas_threads() == {2}


def test_the_last_to_leave_restores(two_threads: object) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with single_threaded_blas():
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=hold)
    with single_threaded_blas():
        other.start()
        assert inside.wait(10)
    assert blas_threads() == {1}, "a neighbour's task is still inside"
    leave.set()
    other.join()
    assert blas_threads() == {2}
