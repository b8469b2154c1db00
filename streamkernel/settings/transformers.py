"""Settings of the transformers: whitened features, kernel principal components, kernel canonical correlations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from streamkernel.errors import ParameterError
from streamkernel.kernels import Kernel, OfColumns
from streamkernel.selection.pursuit_pools import pursuit_rule
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.parameter import parameter, parameters_in
from streamkernel.table import Table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

_OBJECTIVE, _ = parameters_in(BasisSettings)["objective"]
BOUND = "bound"

PAIRS = 100  # default number of pairs of functions
# The pools of the command line, which are those of matching pursuit, and of the estimator.
_POOLS = {"shared": "shared", "split": "split", "full": "all"}
_OF_ESTIMATOR = (
    *("kernel", "lengthscale", "gamma", "degree", "coef0", "kernel_params", "scale"),
    *("regularization", "candidates", "picks", "bound_gamma"),
)


@dataclass(frozen=True)
class TransformerSettings(BasisSettings):
    """A basis that is chosen without targets."""

    UNUSED: ClassVar[tuple[str, ...]] = ("objective", "fit_intercept")
    TAKES_MATRIX: ClassVar[bool] = True

    objective: str | float = field(default="trace", metadata={"parameter": _OBJECTIVE})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_without_targets()

    def to_run_config(self) -> Fields:
        # Also what a model has elsewhere: other columns of the views, or more components, are another run.
        shared, own = parameters_in(BasisSettings), parameters_in(type(self))
        unstored = [name for name, (each, _) in own.items() if not each.stored and name not in shared]
        return super().to_run_config() | {name: getattr(self, name) for name in unstored}


def _of_any_width(kernel: Kernel) -> bool:
    """Whether a kernel takes rows of any number of columns, and sees all of them."""
    if isinstance(kernel, OfColumns):
        return False
    if kernel.parts:
        return all(_of_any_width(part) for part in kernel.parts)
    return not isinstance(getattr(kernel, "lengthscale", None), tuple)


@dataclass(frozen=True)
class KernelPCASettings(TransformerSettings):
    """Kernel principal components.

    A sparse kernel PCA is one whose basis matching pursuit chooses: its settings have that rule in place of the default
    one.
    """

    # What a model stores of them is the number of components that it has, and where its basis was cut.
    component_count: int | None = parameter(
        None,
        "The number of components of a row.",
        kind=int,
        least=1,
        optional=True,
        flag="components",
        default_words="all that have a positive eigenvalue",
        stored=False,
    )
    sparse: Unchecked = parameter(
        None,
        "The number of basis functions, which matching pursuit then chooses; or bound: those up to the minimum of the "
        "compression bound stay.",
        kind=int,
        words=(BOUND,),
        least=1,
        optional=True,
        stored=False,
    )
    fit_inverse_transform: bool = parameter(
        False,
        "Whether a map from components back to rows is fitted, in one sweep more.",
        kind=bool,
        flag=None,
        stored=False,
    )
    inverse_alpha: float = parameter(
        1.0, "The ridge of that map, on the diagonal.", least=0.0, above=True, flag=None, stored=False
    )

    def __post_init__(self) -> None:
        parameters_in(type(self))["sparse"][0].check("sparse", self.sparse)
        if self.sparse is not None:
            self._make_sparse()
        super().__post_init__()
        r, n = self.component_count, self.n_components
        if r is not None and n is not None and r > n:
            raise ParameterError(f"{r} components of a basis of {n} functions; give a basis of at least {r}")
        if self.cuts_at_bound and not self.kernel_template.stationary:
            raise ParameterError(
                f"{option('sparse', BOUND)} needs a kernel whose k(x, x) is bounded, which this one's is not; give a "
                "number"
            )
        if self.fit_inverse_transform and not _of_any_width(self.kernel_template):
            raise ParameterError(
                f"{option('fit_inverse_transform')} needs the kernel between components, too, and this one has a "
                "lengthscale for each feature, or sees some of them only; give one lengthscale, and a metric for others"
            )

    def _make_sparse(self) -> None:
        """Take the size of the basis, and the rule of matching pursuit in place of the default one."""
        if not self.cuts_at_bound:
            if self.n_components not in (None, self.sparse):
                raise ParameterError(
                    f"{option('sparse', self.sparse)} is the size of the basis, and another size is given, "
                    f"{self.n_components}; give one"
                )
            object.__setattr__(self, "n_components", int(self.sparse))
        if isinstance(self.rule, str) and self.rule == BasisSettings.rule:
            for name, value in pursuit_rule(self.n_components, self.rule_options).items():
                object.__setattr__(self, name, value)

    @property
    def cuts_at_bound(self) -> bool:
        """Whether the basis is cut where the compression bound is smallest."""
        return isinstance(self.sparse, str)

    @property
    def size_name(self) -> str:
        return "basis_size" if self.sparse is None or self.cuts_at_bound else "sparse"

    def components(self, table: Table) -> int:
        n = super().components(table)
        if self.n_components is not None or self.takes_columns(table):
            return n
        return max(n, min(self.component_count or 1, table.counted))

    @classmethod
    def of_estimator(cls, parameters: Fields) -> KernelPCASettings:
        """The settings of an estimator, whose ``n_components`` are components and ``basis_size`` the basis."""
        renamed = {
            "component_count": parameters["n_components"],
            "n_components": parameters["basis_size"],
            "inverse_alpha": parameters["alpha"],
        }
        return cls.from_parameters({**parameters, **renamed})


@dataclass(frozen=True)
class KernelCCASettings(TransformerSettings):
    """Kernel canonical correlations of two views: the columns and the targets, or two groups of columns.

    Both views have the same kind of kernel, and each has a median lengthscale of its own.
    """

    UNUSED: ClassVar[tuple[str, ...]] = (
        *TransformerSettings.UNUSED,
        "rule",
        "rule_options",
        "tol",
        "metric",
        "metric_rank",
    )
    TAKES_MATRIX: ClassVar[bool] = False

    n_components: int | None = parameter(
        None,
        "The number of pairs of basis functions: rows that are functions of both views.",
        "basis",
        kind=int,
        least=1,
        optional=True,
        flag="basis",
        default_words=f"{PAIRS}, or all rows where there are fewer",
    )
    component_count: int = parameter(
        2, "The number of pairs of canonical variates.", kind=int, least=1, flag="components", stored=False
    )
    view_columns: Unchecked = parameter(
        None,
        "The columns of the first and of the second view, by name, or by position where no column has that name; "
        "without them the second view is the targets.",
        kind=object,
        checked=False,
        optional=True,
        stored=False,
    )
    regularization: float = parameter(
        1e-3, "The ridge of either view, as a share of the trace of its kernel matrix.", least=0.0
    )
    pool: str = parameter(
        "shared",
        "Whether all candidates of a sweep compete at each pick (shared), each pick has its own candidates (split), or "
        "every row is a candidate (full; all in Python).",
        "basis",
        kind=str,
        words=(*_POOLS,),
        stored=False,
    )
    candidates: int | None = parameter(
        None, "The number of candidates for each pick.", "basis", kind=int, least=1, optional=True, stored=False
    )
    picks: int | None = parameter(
        None, "The number of picks in a sweep.", "basis", kind=int, least=1, optional=True, stored=False
    )
    bound_gamma: float | None = parameter(
        None,
        "The difference of two variates, in deviations, above which a row counts as apart in the bound.",
        least=0.0,
        above=True,
        optional=True,
    )
    bound_delta: float = parameter(
        0.05, "The probability that the bound fails.", least=0.0, above=True, most=1.0, stored=False
    )

    def __post_init__(self) -> None:
        given = dict(self.rule_options)
        for name in ("pool", "candidates", "picks"):
            # The command line passes these among the options of the rules.
            if name in given:
                object.__setattr__(self, name, given.pop(name))
        if given:
            raise ParameterError(
                f"{option('rule_options', next(iter(given)))} means nothing to kernel CCA, which chooses functions by "
                "its own rule; leave it out"
            )
        object.__setattr__(self, "rule_options", given)
        super().__post_init__()

    def components(self, table: Table) -> int:
        """Number of pairs of basis functions for a table; the kernels are checked when the views are known."""
        asked = max(PAIRS, self.component_count) if self.n_components is None else int(self.n_components)
        return min(asked, table.counted)

    @property
    def size_name(self) -> str:
        return "basis_size"

    def to_parameters(self) -> Fields:
        """The parameters of the estimator with these settings."""
        own = {name: getattr(self, name) for name in _OF_ESTIMATOR}
        return own | {
            "n_components": self.component_count,
            "basis_size": self.n_components,
            "pool": _POOLS[self.pool],
            "delta": self.bound_delta,
            "random_state": self.seed,
        }

    @classmethod
    def of_estimator(cls, parameters: Fields) -> KernelCCASettings:
        """The settings of an estimator; both views have one kernel.

        Raises
        ------
        ParameterError
            A parameter is wrong, or it has a value for each view.
        """
        for name in ("kernel", "lengthscale", "gamma", "degree", "coef0", "kernel_params"):
            if isinstance(parameters[name], tuple):
                raise ParameterError(
                    f"{name} has a value for each view, and these settings have one for both; give one, or fit in this "
                    "process"
                )
        renamed = {
            "component_count": parameters["n_components"],
            "n_components": parameters["basis_size"],
            "pool": next((pool for pool, name in _POOLS.items() if name == parameters["pool"]), parameters["pool"]),
            "bound_delta": parameters["delta"],
            "rule_options": None,
        }
        return cls.from_parameters({**parameters, **renamed})
