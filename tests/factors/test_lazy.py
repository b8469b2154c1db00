"""K~ on Dask arrays: the bits of the sweeps, nothing before it is asked for, and no vector held between two uses."""

from __future__ import annotations

import uuid
import weakref
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from factored import rows_of, session, stored
from problems import basis_of, zarr_of_chunks

from streamkernel.errors import DTypeError, ParameterError, ShapeMismatchError
from streamkernel.factors import FeatureRows, kernel_operator, lazy_product, lazy_solve, preconditioner
from streamkernel.table import open_table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20_000, 3))
V = RNG.standard_normal((20_000, 2))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> FeatureRows:
    path = zarr_of_chunks(tmp_path_factory.mktemp("lazy") / "rows.zarr", X, X[:, 0], 1000)
    return FeatureRows(open_table(path).slice(300, 18_700), basis_of(X, range(0, 20_000, 900)))


@pytest.mark.parametrize("chunks", [(18_400, 2), (777, 1), (5000, 2)])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_products_and_solves_are_those_of_the_sweeps(rows: FeatureRows, chunks: Any, scheduler: str) -> None:
    vectors = da.from_array(V[:18_400], chunks=chunks)
    sums = rows.gram(session())
    lazy = {
        "product": (lazy_product(rows, vectors), kernel_operator(rows, session())),
        "solve": (lazy_solve(rows, vectors, 0.3, sums), preconditioner(rows, 0.3, session(), sums)),
    }
    for name, (found, operator) in lazy.items():
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype) == ((18_400, 2), np.float64)
        assert found.numblocks[0] > 2
        with dask.config.set(scheduler=scheduler):
            np.testing.assert_array_equal(found.compute(), operator @ V[:18_400], err_msg=name)
    one = lazy_product(rows, vectors[:, 0])
    assert one.shape == (18_400,)
    np.testing.assert_allclose(
        one.compute(scheduler=scheduler), kernel_operator(rows, session()) @ V[:18_400, 0], rtol=1e-10, atol=1e-10
    )


def test_a_stored_factor() -> None:
    factor = stored(rows_of(X[:3000], range(0, 3000, 100)))
    v = da.from_array(V[:3000, 0], chunks=1000)
    found = lazy_solve(factor, v, 0.1, factor.gram(session())).compute(scheduler="synchronous")
    np.testing.assert_allclose(found, preconditioner(factor, 0.1, session()) @ V[:3000, 0], rtol=1e-10, atol=1e-10)


def test_vectors_are_computed_when_asked_for_and_not_held(rows: FeatureRows) -> None:
    """Of a vector larger than memory, that is computed anew for its second use, few chunks are there at once."""
    held, most = 0, 0

    def release() -> None:
        nonlocal held
        held -= 1

    def load(block: Any) -> Any:
        nonlocal held, most
        chunk = block.copy()
        held += 1
        most = max(most, held)
        weakref.finalize(chunk, release)
        return chunk

    def vectors() -> Any:
        plain = da.from_array(V[:18_400], chunks=(500, 2), name=False)
        return plain.map_blocks(load, dtype=np.float64, meta=np.empty((0, 0)), name=f"load-{uuid.uuid4().hex}")

    sums = rows.gram(session())
    product, solve = lazy_product(rows, vectors()), lazy_solve(rows, vectors(), 0.3, sums, again=vectors())
    assert most == 0
    for lazy in (product, solve):
        lazy.sum().compute(scheduler="synchronous")
        assert 0 < most < 20 < 37
        most = 0
    lazy_solve(rows, vectors(), 0.3, sums).sum().compute(scheduler="synchronous")
    assert most >= 37  # what `again` is for


def test_bad_vectors(rows: FeatureRows) -> None:
    with pytest.raises(ParameterError, match="Dask array"):
        lazy_product(rows, V[:18_400])
    with pytest.raises(ShapeMismatchError, match="18400 rows"):
        lazy_product(rows, da.zeros(5))
    with pytest.raises(DTypeError, match="complex"):
        lazy_product(rows, da.zeros(18_400, dtype=complex))
    with pytest.raises(ParameterError, match="rho"):
        lazy_solve(rows, da.zeros(18_400), 0.0, rows.gram(session()))
