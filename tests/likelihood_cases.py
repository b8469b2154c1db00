"""Problems of generalised regression in memory, small enough for the dense oracle, and what sweeps over them."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
from problems import basis_of, blocks

from streamkernel.kernels import Gaussian
from streamkernel.reductions.likelihoods import Bernoulli, Likelihood, Poisson, Softmax
from streamkernel.reductions.sums import Features
from streamkernel.solvers import GeneralisedFit, solve_newton

SIX = [17, 4, 27, 33, 29, 20]  # SGMA's picks of the card
TIGHT = {"tolerance": 1e-13}
EVERY: dict[str, Likelihood] = {"bernoulli": Bernoulli(), "poisson": Poisson(), "softmax": Softmax(3)}


class Sweeps:
    """Runs reductions over rows in memory, in blocks; remembers their names and what they returned."""

    def __init__(self, X: Any, Y: Any, weights: Any = None, chunks: Any = (16,)) -> None:
        lengths: list[int] = []
        while sum(lengths) < len(X):
            lengths.append(min(chunks[len(lengths) % len(chunks)], len(X) - sum(lengths)))
        self._blocks = list(blocks(X, Y, lengths, weights))
        self.names: list[str] = []

    def __call__(self, reduction: Any, name: str, /) -> Any:
        self.names.append(name)
        state = reduction.map_block(self._blocks[0])
        for block in self._blocks[1:]:
            state = reduction.fold(state, block)
        return reduction.finalize(state)


class Case:
    """The card's rows, with targets of a kind."""

    def __init__(self, name: str, rows: Any = range(40)) -> None:
        card = naive.card()
        self.name, self.likelihood, self.X, self.K = name, EVERY[name], card.X, card.K
        self.codes = {
            "bernoulli": (card.t > 0).astype(int),
            "poisson": np.round(np.exp(card.y)).astype(int),
            "softmax": np.digitize(card.y, [-0.5, 0.6]),
        }[name]
        self.Y = naive.indicators(name, self.codes, self.likelihood.width)
        self.basis = basis_of(self.X, rows)
        self.features = Features.of_basis(self.basis)
        self.G = self.features.of(self.X)

    def sweeps(self, **options: Any) -> Sweeps:
        return Sweeps(self.X, self.Y, **options)

    def fit(self, solve: Any = solve_newton, **options: Any) -> GeneralisedFit:
        found: GeneralisedFit = solve(self.sweeps(), self.features, self.likelihood, **options)
        return found

    def functions(self, fit: GeneralisedFit) -> Any:
        return fit.latent.values(self.G)


def overshooting() -> tuple[Sweeps, Features, Any, Any]:
    """One count of 3,000 among zeros and ones: the first Newton step is far too long."""
    X = np.linspace(0.0, 10.0, 60)[:, None]
    counts = (np.arange(60) % 2).astype(np.float64)
    counts[50] = 3000.0
    basis = basis_of(X, range(0, 60, 4))
    return Sweeps(X, counts[:, None]), Features.of_basis(basis), basis.features(X), counts.astype(int)


def mixture(classes: int, m: int = 1000, n: int = 25) -> tuple[Any, Any, Features]:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((m, 3))
    f = 3.0 * np.sin(X @ rng.standard_normal((3, classes))) - 0.4 * np.arange(classes)
    codes = (f + rng.gumbel(size=f.shape)).argmax(axis=1)
    return X, np.eye(classes)[codes], Features.of_basis(basis_of(X, range(0, m, m // n), Gaussian(1.5)))
