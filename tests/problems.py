"""Selection and reduction problems in memory, small enough for the dense oracles of naive."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, cycle, pairwise, takewhile
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.layout import Layout
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.models import RidgeModel
from streamkernel.reductions import Reduction, State
from streamkernel.reductions.pools import PoolGram, PoolRoot, PoolSums, RootSums
from streamkernel.reductions.pools.pool import PoolColumns
from streamkernel.selection import Problem, RowCache, Rule, Selection
from streamkernel.selection._csi_look_ahead import CSIPath, csi_path
from streamkernel.selection._draws import Draw, Drawn, UniformDraw
from streamkernel.table import RowBlock, Table, open_table
from streamkernel.table.row_keys import row_keys

Float = NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)


def basis_of(X: NDArray[Any], rows: Iterable[int], kernel: Kernel | None = None) -> Basis:
    """Rows of X as a basis, in the order given."""
    numbers = np.asarray(list(rows), dtype=np.int64)
    return Basis(kernel or Gaussian(1.0), np.ascontiguousarray(X[numbers]), numbers)


def columns_of(Y: ArrayLike) -> Float:
    Y = np.asarray(Y, dtype=np.float64)
    return Y[:, None] if Y.ndim == 1 else Y


def blocks(X: NDArray[Any], Y: Float | None, chunks: Iterable[int], weights: Float | None = None) -> Iterator[RowBlock]:
    """The rows, cut into blocks of these lengths."""
    start = 0
    for length in chunks:
        rows = slice(start, start + length)
        yield RowBlock(
            start,
            np.ascontiguousarray(X[rows]),
            None if Y is None else Y[rows],
            None if weights is None else weights[rows],
            row_keys(X[rows]),
        )
        start += length


def scratch_of(work: Reduction[Any], state: State, block: RowBlock) -> int:
    """Bytes that `fold` allocates at most, beside the block and the state."""
    tracemalloc.start()
    try:
        work.fold(state, block)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def pool_columns(
    X: NDArray[Any],
    Y: Float | None,
    basis: Iterable[int],
    pool: Iterable[int],
    kernel: Kernel | None = None,
    precision: np.dtype[Any] = FLOAT64,
) -> PoolColumns:
    d = 0 if Y is None else Y.shape[1]
    return PoolColumns(basis_of(X, basis, kernel), basis_of(X, pool, kernel), np.zeros(d), precision)


def pool_sums(
    X: NDArray[Any], Y: Float | None, basis: Iterable[int], pool: Iterable[int], weights: Float | None = None
) -> PoolSums:
    reduction = PoolGram(pool_columns(X, Y, basis, pool))
    return reduction.finalize(reduction.map_block(RowBlock(0, X, Y, weights)))


def root_sums(
    X: NDArray[Any], Y: Float | None, basis: Iterable[int], pool: Iterable[int], weights: Float | None = None
) -> RootSums:
    reduction = PoolRoot(pool_columns(X, Y, basis, pool))
    return reduction.finalize(reduction.map_block(RowBlock(0, X, Y, weights)))


def problem_of(
    X: ArrayLike, Y: ArrayLike | None = None, *, n: int, kernel: Kernel | None = None, **options: Any
) -> Problem:
    """A selection problem on rows in memory; targets keep their units (centre 0, scale 1)."""
    table = open_table(X, Y)
    d = table.n_targets
    return Problem(table, kernel or Gaussian(1.0), n, centre=np.zeros(d), scale=np.ones(d), **options)


def select(rule: Rule, problem: Problem, session: Session | None = None) -> tuple[Selection, Session]:
    """Run a rule; returns what it chose and the session that counted its sweeps."""
    session = session or Session(ThreadExecutor(1))
    cache = RowCache(problem.table, session)
    wanted = rule.prefetch(problem)
    if len(wanted):
        cache.fetch(wanted)
    return rule.select(problem, session, cache), session


class CutExecutor(ThreadExecutor):
    """Cuts small tables too: in spans of these lengths, over and over, and blocks of at most so many rows."""

    def __init__(self, cuts: Sequence[int], block_rows: int, threads: int = 1, *, backwards: bool = False) -> None:
        super().__init__(threads, (lambda leaves: leaves[::-1]) if backwards else None)
        self._cuts, self._block_rows = cuts, block_rows

    def reduce(self, reduction: Reduction[Any], table: Table, layout: Layout, advance: Callable[[int], None]) -> State:
        inner = takewhile(lambda end: end < table.stop, accumulate(cycle(self._cuts), initial=table.start))
        spans = list(pairwise([*inner, table.stop]))
        return super().reduce(reduction, table, Layout(spans, self._block_rows), advance)


def cut_session(cuts: Sequence[int], block_rows: int = 1, threads: int = 1, *, backwards: bool = False) -> Session:
    """Sweeps in pieces of so many rows, over the table and over samples of it; the last piece first if backwards."""
    return Session(CutExecutor(cuts, block_rows, threads, backwards=backwards))


def predicted(model: RidgeModel, table: Table) -> Any:
    """(m, d) what a model of ridge regression says of the rows of a table."""
    rows = model.prepare(table)
    return model.predictions().check_values(rows.read(rows.start, rows.stop).X)["predicted"]


class Recorded:
    """Any draw, that remembers what it drew."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.drawn: list[Drawn] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._draw, name)

    def draw(self, *problem: Any) -> Drawn:
        self.drawn.append(self._draw.draw(*problem))
        return self.drawn[-1]


@dataclass(frozen=True)
class GivenDraw(UniformDraw):
    """Candidates from a list: the r-th round is given the r-th subset, and all rows score."""

    subsets: tuple[tuple[int, ...], ...] = ()

    def prefetch(self, problem: Problem, take: Any) -> NDArray[np.int64]:
        return np.unique(np.concatenate([np.asarray(subset, np.int64) for subset in self.subsets]))

    def draw(self, problem: Problem, session: Session, cache: RowCache, basis: Basis, picks: int, round_: int) -> Drawn:
        rows = np.asarray([i for i in self.subsets[round_] if i not in basis.rows], np.int64)
        pool = Basis(problem.kernel, np.ascontiguousarray(cache.get(rows).X), rows)
        return Drawn(pool, None, np.arange(len(rows)) // self.per_pick if self.split else None)


@dataclass(frozen=True)
class RecordingDraw(UniformDraw):
    """A uniform draw that remembers what it drew, in the order of the pool."""

    drawn: list[list[int]] = field(default_factory=list)

    def draw(self, problem: Problem, session: Session, cache: RowCache, basis: Basis, picks: int, round_: int) -> Drawn:
        found = super().draw(problem, session, cache, basis, picks, round_)
        self.drawn.append(found.pool.rows.tolist())
        return found


def smooth_pool(count: int = 200) -> Any:
    """One feature, wide kernel: residuals fall by ten orders of magnitude within a hundred picks."""
    return np.sort(np.random.default_rng(0).uniform(0, 60, count))[:, None]


def right_picks(K: Any, count: int) -> list[int]:
    """Greedy by the factor form, g = R_i / sqrt(R_ii), R deflated itself: what the oracle does, in digits it keeps."""
    R, picks = K.astype(np.longdouble), list[int]()
    for _ in range(count):
        pivots = np.diag(R).copy()
        live = pivots > 1e-12
        live[picks] = False
        score = np.where(live, (R**2).sum(axis=0) / np.where(live, pivots, 1), -1)
        i = int(np.argmax(score))
        R = R - np.outer(R[:, i], R[i] / pivots[i])
        picks.append(i)
    return picks


def csi_path_of(
    K: Float, Y: ArrayLike, n: int, *, kappa: float, delta: int, centred: bool = False, **more: Any
) -> CSIPath:
    """The algebra of look-ahead CSI on a dense kernel matrix."""
    constant = np.full(len(K), len(K) ** -0.5) if centred else None
    targets = np.atleast_2d(np.asarray(Y, np.float64).T)
    if constant is not None:
        targets = targets - np.outer(targets @ constant, constant)
    found = csi_path(
        lambda j: K[:, j].copy(),
        np.diagonal(K).copy(),
        np.ascontiguousarray(targets),
        n=n,
        delta=min(delta, len(K)),
        kappa=kappa,
        constant=constant,
        **more,
    )
    assert len(found.picks) == len(found.gains) == len(found.predicted) == len(found.traces) - 1
    return found


def table_of_chunks(path: Any, X: NDArray[Any], y: NDArray[Any], chunk_rows: int) -> Table:
    """X and y written as a bare Zarr group with a checksum, in chunks of so many rows, and opened."""
    return open_table(zarr_of_chunks(path, X, y, chunk_rows))


def zarr_of_chunks(path: Any, X: NDArray[Any], y: NDArray[Any], chunk_rows: int) -> str:
    import zarr
    from zarr.codecs import BytesCodec, Crc32cCodec

    group = zarr.open_group(str(path), mode="w")
    for name, values in (("X", X), ("y", y)):
        array = group.create_array(
            name,
            shape=values.shape,
            chunks=(chunk_rows, *values.shape[1:]),
            dtype=values.dtype,
            fill_value=float("nan"),
            config={"write_empty_chunks": True},
            serializer=BytesCodec(),
            compressors=Crc32cCodec(),
        )
        array[:] = values
    return str(path)
