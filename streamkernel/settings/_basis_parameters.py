"""The parameters that the fits of all kinds share: what each means, its values and its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamkernel.kernels import KERNEL_NAMES, Kernel
from streamkernel.records import SettingsRecord
from streamkernel.selection import RULES, Rule
from streamkernel.settings.parameter import parameter, parameters_in
from streamkernel.type_aliases import Fields, Unchecked

CANDIDATES = ("gaussian", "matern52", "laplacian")  # kernels that "auto" chooses from: smooth, less so, with kinks


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]


@dataclass(frozen=True)
class BasisParameters:
    """The parameters of a basis. Each field states its parameter; see `Parameter`.

    A `Kernel` has its own lengthscale; targets are centred where a constant is fitted.

    What a model stores of them has a class of its own, `RECORD`: the kernel is an object, a lengthscale that was given
    is None, rows are their digests, and fields that an older release did not write are absent. These fields are stated
    again, because types that are made at run time would be `Any` to mypy; a test holds both classes equal.
    """

    RECORD: ClassVar[type[SettingsRecord]] = SettingsRecord
    SAMPLE_ROWS: ClassVar[dict[str, int]] = {"median": 1000, "auto": 4000}
    MOST_COMPONENTS: ClassVar[int] = 1000  # limit on the default size
    UNUSED: ClassVar[tuple[str, ...]] = ()  # parameters that only have their defaults here
    # Whether the rows of a fit may be those of a kernel matrix.
    TAKES_MATRIX: ClassVar[bool] = False

    n_components: int | None = parameter(
        None,
        "The number of basis functions.",
        "basis",
        kind=int,
        least=1,
        optional=True,
        flag="basis",
        default_words="sqrt(rows) log(rows), at most 1000",
    )
    kernel: str | Kernel | Fields | None = parameter(
        "gaussian",
        f"The name of the kernel: {_named(KERNEL_NAMES)}; or an expression of names, such as '2*gaussian + linear'; or "
        f"auto, the one of {_named(CANDIDATES)} with the smallest error on held-out rows of a sample; or precomputed, "
        "where the columns are those of the kernel matrix of the rows.",
        "kernel",
        kind=str,
        checked=False,
    )
    lengthscale: Unchecked = parameter(
        "median",
        "The lengthscale: a number, a number for each feature (a,b,c), median (the median distance of sampled rows) or "
        "auto (a search on a sample of rows).",
        "kernel",
        words=tuple(SAMPLE_ROWS),
        kind=list,
    )
    gamma: Unchecked = parameter(
        None,
        "scikit-learn's gamma, which replaces the lengthscale.",
        "kernel",
        checked=False,
        optional=True,
        stored=False,
    )
    degree: Unchecked = parameter(
        None, "The degree of the polynomial kernel.", "kernel", kind=int, checked=False, optional=True, stored=False
    )
    coef0: Unchecked = parameter(
        None,
        "The constant of the polynomial and the sigmoid kernel.",
        "kernel",
        checked=False,
        optional=True,
        stored=False,
    )
    kernel_params: Fields | None = parameter(
        None,
        "Further parameters of the kernel, such as nu.",
        "kernel",
        kind=dict,
        checked=False,
        optional=True,
        flag=None,
        stored=False,
    )
    tol: float = parameter(
        0.0,
        "The choice of the basis stops when the residual trace is at most this share of the trace.",
        "basis",
        least=0.0,
        most=1.0,
    )
    rule: str | Rule = parameter(
        "few-sweep",
        "The rule that chooses the basis.",
        "basis",
        kind=str,
        checked=False,
        words=RULES,
        default_words="few-sweep; rpcholesky with a precomputed kernel; columns with the linear kernel, where neither "
        "rule, size nor tolerance is given",
    )
    objective: str | float = parameter(
        "prediction",
        "The score of candidates in the rule few-sweep: what they explain of the targets (prediction), the residual "
        "trace (trace), or a mixture (a number, 1 for prediction).",
        "basis",
        checked=False,
        words=("trace", "prediction"),
    )
    rule_options: Fields = parameter({}, "Further options of the rule.", "basis", kind=dict, checked=False, flag=None)
    scale: str = parameter(
        "standard",
        "How each feature is scaled: to mean 0 and deviation 1 (standard), the same after values far from the median "
        "are clipped (robust), to its ranks in a sample of rows (rank), or not (none).",
        "rows",
        kind=str,
        words=("standard", "robust", "rank", "none"),
    )
    metric: Unchecked = parameter(
        "none",
        "The linear map of the scaled features in which the kernel measures distances: learned (from the gradients of "
        "fits to a sample of rows), diagonal (the same, a weight for each feature), none, or a matrix of your own with "
        "a row for each feature.",
        "kernel",
        words=("none", "learned", "diagonal"),
        kind=list,
        matrix=True,
    )
    metric_rank: int | None = parameter(
        None,
        "The largest number of columns of a learned metric.",
        "kernel",
        kind=int,
        least=1,
        optional=True,
        default_words="the number of features",
    )
    fit_intercept: bool = parameter(
        True, "Whether the model has a constant that is not penalised.", "rows", kind=bool, flag="intercept"
    )
    seed: int = parameter(0, "The seed of all random draws: equal seeds, equal models.", "rows", kind=int, least=0)

    def _is_left(self, name: str) -> bool:
        """Whether a parameter is None, and these settings leave its choice to the fit (`for_table`)."""
        return getattr(self, name) is None and parameters_in(self)[name][0].optional
