"""The members of a vote: each gives every row a class, by its own functions of shared points.

Member t with the points Z_t, coefficients c_t (n_t, K) and constants b_t (K,) has the values
``f = k(x, Z_t) c_t + b_t``. With two classes there is one function, K = 1, and the class is the second where ``f > 0``.
With C > 2 classes there is a function for each, K = C, and the class is that of the largest; of equal ones the first.

The confidence of a member is how far its largest value is above the second, ``(f_1st - f_2nd) / 2``, for two classes
|f|; at most 1, which is the margin that support vector machines are fitted to. In a soft vote a member's say is its
weight times that, in 255 steps.

A value is a sum over the points in one order, whatever the block: a row has the same class in every block. Class c and
step l are one number, the code ``c + C l``; without confidences the code is the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.atomic import array_digest, text_digest
from streamkernel.kernels import Kernel, PreparedKernel
from streamkernel.reductions.contract import SentAsFields
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Int

_STEPS = 255  # of a confidence
_PANEL_ROWS = 128  # whose kernel values stay in the second-level cache until they are summed


def code_dtype(classes: int, *, soft: bool) -> AnyDType:
    """The type of a code of so many classes."""
    return np.min_scalar_type(classes * (_STEPS if soft else 1) - 1)


@dataclass(frozen=True)
class Members(SentAsFields):
    """T members.

    Parameters
    ----------
    kernel : Kernel k.
    points : (n, p) points of all members, each once.
    positions : (q,) positions in `points` of the functions of each member, one member after another.
    ends : (T,) ends of the members in `positions`.
    coefficients : (q, K); constants : (T, K).
    classes : number of classes C.
    soft : whether votes count by their confidence.
    """

    kernel: Kernel
    points: AnyArray
    positions: Int
    ends: Int
    coefficients: Float
    constants: Float
    classes: int
    soft: bool = False

    @classmethod
    def none(cls, kernel: Kernel, width: int, dtype: AnyDType, classes: int, *, soft: bool = False) -> Members:
        """No member yet."""
        K, no = columns_of(classes), np.zeros(0, np.int64)
        return cls(kernel, np.zeros((0, width), dtype), no, no, np.zeros((0, K)), np.zeros((0, K)), classes, soft)

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def prepared(self) -> PreparedKernel:
        """The kernel with the points packed for the block loops."""
        return self.kernel.prepare(np.ascontiguousarray(self.points, np.float64))

    def run(self, t: int) -> slice:
        """The functions of member t, in `positions` and `coefficients`."""
        return slice(int(self.ends[t - 1]) if t else 0, int(self.ends[t]))

    @property
    def sizes(self) -> Int:
        """(T,) number of functions of each member."""
        return np.diff(self.ends, prepend=0)

    def part(self, start: int, stop: int) -> Members:
        """Members start .. stop - 1, with the points that they have."""
        before = int(self.ends[start - 1]) if start else 0
        after = int(self.ends[stop - 1]) if stop else 0
        used, positions = np.unique(self.positions[before:after], return_inverse=True)
        return Members(
            self.kernel,
            np.ascontiguousarray(self.points[used]),
            positions.astype(np.int64),
            self.ends[start:stop] - before,
            self.coefficients[before:after],
            self.constants[start:stop],
            self.classes,
            self.soft,
        )

    def digest(self, t: int) -> str:
        """Digest of all that the classes of member t follow from, but for the rows."""
        run = self.run(t)
        parts = (self.points[self.positions[run]], self.coefficients[run], self.constants[t])
        digests = [array_digest(np.ascontiguousarray(each)) for each in parts]
        return text_digest(f"{self.kernel.to_config()} {self.soft} {digests}")

    def codes(self, X: AnyArray) -> AnyArray:
        """The code (b, T) that each member gives each row."""
        found = np.zeros((len(X), len(self)), dtype=self.code_dtype)
        for start in range(0, len(X), _PANEL_ROWS):
            panel = np.ascontiguousarray(X[start : start + _PANEL_ROWS], np.float64)
            K = self.prepared.block(panel) if len(self.points) else np.zeros((len(panel), 0))
            for t in range(len(self)):
                found[start : start + len(panel), t] = self._coded(self._values(K, t))
        return found

    @property
    def code_dtype(self) -> AnyDType:
        """The type of the codes."""
        return code_dtype(self.classes, soft=self.soft)

    def _coded(self, values: Float) -> AnyArray:
        """The codes (b,) of the values (b, K) of one member."""
        if values.shape[1] == 1:
            winner, lead = values[:, 0] > 0.0, np.abs(values[:, 0])
        else:
            winner, best = values.argmax(axis=1), np.partition(values, -2, axis=1)
            lead = 0.5 * (best[:, -1] - best[:, -2])
        if not self.soft:
            return np.asarray(winner)
        # Cut before the cast: a value far outside may be larger than whole numbers are.
        return np.asarray(winner + self.classes * np.minimum(_STEPS * lead, _STEPS - 1.0).astype(np.int64))

    def classes_of(self, codes: AnyArray) -> Int:
        """The classes of codes, of any shape."""
        return np.asarray(codes.astype(np.int64) % self.classes)

    def votes(self, codes: AnyArray, weights: Float) -> Float:
        """``V_c = sum over members that give class c of a_t times their confidence``, (b, C).

        The terms are added in the order of the members.

        Parameters
        ----------
        codes : (b, T); weights : (v,) a of the first members.
        """
        return self.with_votes(np.zeros((len(codes), self.classes)), codes, weights)

    def with_votes(self, V: Float, codes: AnyArray, weights: Float, first: int = 0) -> Float:
        """Votes V (b, C) of the members before `first`, and those from it on that have a weight; V stays as it is."""
        V, rows = V.copy(), np.arange(len(codes))
        for t, weight in enumerate(weights[first:], start=first):
            step, winner = np.divmod(codes[:, t].astype(np.int64), self.classes)
            V[rows, winner] += weight * ((step + 1) / _STEPS) if self.soft else weight
        return V

    def _values(self, K: Float, t: int) -> Float:
        """Values (b, K) of member t, from the kernel values (b, n) of all points."""
        run, columns = self.run(t), self.constants.shape[1]
        values = np.empty((len(K), columns))
        own = np.ascontiguousarray(K[:, self.positions[run]])
        for column in range(columns):
            # A product of BLAS would have bits that depend on the number of rows.
            values[:, column] = (own * self.coefficients[run, column]).sum(axis=1) + self.constants[t, column]
        return values

    @property
    def scratch_row(self) -> int:
        """Bytes of a row of the panel of kernel values, of which there are `_PANEL_ROWS`."""
        most = int(self.sizes.max(initial=0))
        return int(8 * (len(self.points) + 2 * most + self.points.shape[1] + self.constants.shape[1]))

    def scratch_bytes(self, rows: int) -> int:
        """Bytes of `codes` for so many rows."""
        return min(rows, _PANEL_ROWS) * self.scratch_row + 2 * rows * len(self) * self.code_dtype.itemsize

    def flops_per_row(self) -> float:
        """Operations of a row."""
        n, p = self.points.shape
        return float(2 * n * p + 3 * self.coefficients.size + 10)


def columns_of(classes: int) -> int:
    """Number K of functions of a member."""
    return 1 if classes == 2 else classes


def vote_margins(V: Float, y: Int) -> Float:
    """The margin ``V_y - max_{c != y} V_c`` of each row, (b,), for votes V (b, C) and class codes y (b,)."""
    rows, others = np.arange(len(y)), V.copy()
    others[rows, y] = -np.inf
    return np.asarray(V[rows, y] - others.max(axis=1))


def bounded_masses(margins: Float) -> Float:
    """``min(1, exp(-u))``, minus the slope of `bounded_losses`."""
    return np.exp(-np.maximum(margins, 0.0))


def bounded_losses(margins: Float) -> Float:
    """The loss of MadaBoost: ``exp(-u)`` for a margin u > 0, else ``1 - u`` (Domingo & Watanabe 2000)."""
    return np.where(margins > 0.0, bounded_masses(margins), 1.0 - margins)
