"""Rows that arrive together are predicted together: in pairs, in order, each for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from streamkernel.errors import NumericRangeError
from streamkernel.models.few_rows import DirectPredictions
from streamkernel.service import batching
from streamkernel.service.batching import Batcher


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as found:
        yield found


@pytest.mark.parametrize("inline", [True, False])
def test_every_row_gets_its_own_answer(
    estimators: dict[str, Any], rows: np.ndarray, pool: ThreadPoolExecutor, inline: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(batching, "_INLINE_FLOPS", 1e9 if inline else 0.0)
    sizes: list[int] = []

    async def ask() -> list[Any]:
        direct = DirectPredictions(estimators["ridge"].model_)
        batcher = Batcher(direct, 0.001, 64, pool, sizes.append)

        async def one(i: int) -> Any:
            await asyncio.sleep(0.0001 * (i % 7))
            return (await batcher.submit(rows[i]))["prediction"]

        return await asyncio.gather(*(one(i) for i in range(300)))

    found = asyncio.run(ask())
    assert found == [estimators["ridge"].predict(row[None])[0] for row in rows[:300]]
    assert sum(sizes) == 300
    assert max(sizes) <= 64
    assert max(sizes) > 1


def test_a_bad_row_takes_none_with_it(estimators: dict[str, Any], rows: np.ndarray, pool: ThreadPoolExecutor) -> None:
    async def ask() -> list[Any]:
        batcher = Batcher(DirectPredictions(estimators["two"].model_), 0.001, 512, pool)
        asked = [rows[i] if i != 5 else np.full(4, 1e300) for i in range(10)]
        return await asyncio.gather(*map(batcher.submit, asked), return_exceptions=True)

    found = asyncio.run(ask())
    assert isinstance(found[5], NumericRangeError)
    for i in set(range(10)) - {5}:
        assert found[i]["prediction"] == estimators["two"].predict(rows[i : i + 1])[0].tolist()


def test_who_has_gone_is_not_waited_for(estimators: dict[str, Any], rows: np.ndarray, pool: ThreadPoolExecutor) -> None:
    async def ask() -> Any:
        batcher = Batcher(DirectPredictions(estimators["ridge"].model_), 0.01, 512, pool)
        gone, stays = batcher.submit(rows[0]), batcher.submit(rows[1])
        gone.cancel()
        return (await stays)["prediction"]

    assert asyncio.run(ask()) == estimators["ridge"].predict(rows[1:2])[0]


def test_a_fault_reaches_everyone_who_waits(
    estimators: dict[str, Any], rows: np.ndarray, pool: ThreadPoolExecutor, monkeypatch: Any
) -> None:
    direct = DirectPredictions(estimators["ridge"].model_)
    monkeypatch.setattr(direct, "each_alone", lambda rows: 1 / 0)

    async def ask() -> list[Any]:
        batcher = Batcher(direct, 0.001, 512, pool)
        return await asyncio.gather(batcher.submit(rows[0]), batcher.submit(rows[1]), return_exceptions=True)

    assert [type(error) for error in asyncio.run(ask())] == [ZeroDivisionError] * 2


def test_memory_that_ends_while_answers_are_written_reaches_everyone() -> None:
    class Full:
        def tolist(self) -> list[float]:
            raise MemoryError("no memory")

    class Direct:
        def prepared(self, X: np.ndarray) -> np.ndarray:
            return X

        def each_alone(self, X: np.ndarray) -> dict[str, Any]:
            return {"prediction": Full()}

    direct: Any = Direct()
    first, second = batching._answers(direct, [np.zeros(2), np.ones(2)])
    assert isinstance(first, MemoryError)
    assert isinstance(second, MemoryError)
