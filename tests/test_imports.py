"""What an import loads: libraries that take long are left to those who need them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from streamkernel import ingest, open_table
from streamkernel.estimators.base import PredictingEstimator
from streamkernel.fits.steps.fold_rows import SharedSums
from streamkernel.jobs.records import JobRecords, new_id
from streamkernel.jobs.specification import JobSpecification
from streamkernel.kinds import KINDS, TRANSFORMERS, Predictor

HEAVY = (
    "bokeh", "click", "dask", "distributed", "fastapi", "matplotlib", "obstore", "pyarrow", "rich", "starlette",
    "uvicorn", "xarray",
)  # fmt: skip

# scikit-learn imports pandas where it is installed, and pandas pyarrow: neither is ours to leave out.
# (None in `sys.modules` in its place is taken for pandas by scikit-learn 1.6.)
WITHOUT_PANDAS = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Finder())
"""

PACKAGE = Path(__file__).resolve().parents[1] / "streamkernel"

# Half of the modules were loaded by every command when the registry of kinds imported what it names.
OF_OTHER_KINDS = tuple(
    f"streamkernel.{name}"
    for name in (
        "committee", "comparison", "fits.boosting", "fits.cca", "fits.gaussian", "fits.margins", "fits.pursuit",
        "fits.transformer", "models.boosting", "models.gaussian", "models.margins", "models.pursuit",
        "models.transformers", "pursuit.rule", "reductions.boosting", "reductions.likelihoods", "reductions.members",
        "report.facts", "report.pages", "service", "solvers.gaussian_processes", "solvers.generalised",
        "solvers.linear_programs", "solvers.margins.smo",
    )
)  # fmt: skip
# What reads or stops a job reads JSON.
OF_FITS = (
    "dask", "distributed", "llvmlite", "numba", "scipy", "zarr",
    *(f"streamkernel.{name}" for name in ("engine", "kernels", "models", "reductions", "selection", "settings")),
)  # fmt: skip

ESTIMATORS = "from streamkernel import GaussianProcessRegressor, KernelCCA, KernelRidge, Nystroem"
FIT = """
import numpy as np
from streamkernel import KernelRidge
X = np.random.default_rng(0).standard_normal((300, 2))
print(KernelRidge(10).fit(X, X[:, 0]).predict(X).shape)
"""


def loaded(code: str) -> set[str]:
    """Those of `HEAVY` that a fresh process has loaded after `code`."""
    return loaded_of((f"{WITHOUT_PANDAS}{code}", HEAVY))[0]


def loaded_of(*steps: tuple[str, Iterable[str]]) -> list[set[str]]:
    """Those of some modules that a fresh process has loaded after each code; MODEL is a place for a model."""
    with tempfile.TemporaryDirectory() as folder:
        told = "import sys\nprint('loaded', *({!r} & sys.modules.keys()))"
        code = "\n".join(f"{code}\n{told.format(set(modules))}" for code, modules in steps)
        code = code.replace("MODEL", str(Path(folder, "model")))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    found = [set(line.split()[1:]) for line in done.stdout.splitlines() if line.split()[:1] == ["loaded"]]
    assert len(found) == len(steps), done.stdout
    return found


def test_python_without_a_cluster_loads_no_heavy_library() -> None:
    assert loaded(f"{ESTIMATORS}\nfrom streamkernel import Factor, factorize, open_table\n{FIT}") == set()


def test_the_list_of_commands_loads_click_alone() -> None:
    code = "import streamkernel.cli.command_list"
    assert loaded_of((f"{WITHOUT_PANDAS}{code}", ("numpy", *HEAVY))) == [{"click"}]


@pytest.fixture(scope="module")
def of_commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules that each command on threads has loaded, among those that the tests ask for.

    One process for all commands. What one of them loads is there for the next ones, so that the order matters.
    """
    folder = tmp_path_factory.mktemp("commands")
    ingest(open_table(np.eye(50), np.arange(50.0)), folder / "x")
    run = "assert main([*{!r}, '--scheduler', 'threads', '--quiet']) == 0"
    made = "synthetic://friedman?rows=500&features=5"
    # scikit-learn takes a second and 100 MB, with pandas and pyarrow where these are installed; scipy.stats another.
    learning = ("scipy.stats", "sklearn", "pandas", "pyarrow")
    # A tenth of the start of a command.
    optimisation = ("scipy.optimize", "scipy.sparse.linalg")
    steps = {
        # scipy.special takes a twentieth of the start.
        "plan": (f"from streamkernel.cli import main\n{run.format(['plan', str(folder / 'x')])}",
                 (*HEAVY, "scipy.special")),
        "fit": (run.format(["fit", made, "MODEL", "--basis", "10"]), (*optimisation, *learning, *OF_OTHER_KINDS)),
        "predict": (run.format(["predict", "MODEL", made, str(folder / "y")]),
                    (*OF_OTHER_KINDS, "streamkernel.fits.margins")),
        "plan of made rows": (f"{run.format(['plan', made])}\nimport streamkernel.fits.boosting.boosting",
                              (*optimisation, *learning)),
    }  # fmt: skip
    return dict(zip(steps, loaded_of(*steps.values()), strict=True))


def test_a_command_on_threads_loads_what_it_needs(of_commands: dict[str, set[str]]) -> None:
    assert of_commands["plan"] == {"click", "rich"}
    assert of_commands["plan of made rows"] == set()


def test_a_fit_and_predictions_load_no_other_kind(of_commands: dict[str, set[str]]) -> None:
    assert of_commands["fit"] == set()
    assert of_commands["predict"] == {"streamkernel.models.transformers"}


def test_a_look_at_a_job_loads_no_fit(tmp_path: Path) -> None:
    records = JobRecords(str(tmp_path / ".jobs"), new_id())
    records.create(JobSpecification("ridge", {}, str(tmp_path / "rows"), str(tmp_path / "model")))
    told = "from streamkernel.cli import main\nfor name in {!r}: assert main([name, {!r}, '--jobs', {!r}]) == 0"
    code = told.format(("status", "logs", "cancel"), records.id, str(tmp_path / ".jobs"))
    assert loaded_of((f"{code}\nassert main(['jobs', '--jobs', {str(tmp_path / '.jobs')!r}]) == 0", OF_FITS)) == [set()]


def test_a_folder_imports_what_it_offers_when_somebody_asks_for_it() -> None:
    """All names of the stub are there, and none is that of a module, which Python would find once it is loaded."""
    stubs = list(PACKAGE.rglob("__init__.pyi"))
    assert len(stubs) > 20
    for stub in stubs:
        package = ".".join(stub.parent.relative_to(PACKAGE.parent).parts)
        folder = import_module(package)
        for name in folder.__all__:
            getattr(folder, name)
        assert not [name for name in folder.__all__ if (stub.parent / f"{name}.py").exists()], package
        with pytest.raises(AttributeError, match=r"attribute nothing"):
            folder.nothing  # it is the look that raises


def test_a_worker_loads_what_it_needs() -> None:
    code = "import streamkernel.engine.cluster, streamkernel.jobs._driver"
    assert loaded_of((code, ("bokeh", "matplotlib", "pandas", "pyarrow", "scipy.stats", "sklearn"))) == [set()]


def test_a_kind_is_what_its_class_says() -> None:
    """The registry names the classes and functions, and loads none of them before somebody asks for it."""
    for kind in KINDS.values():
        assert kind.stored == kind.model.KIND
        assert (kind.fit.__module__, kind.plan.__module__) == (kind.named_fit.module, kind.named_plan.module)
        assert isinstance(kind, Predictor) or kind.name in TRANSFORMERS
        assert not isinstance(kind, Predictor) or isinstance(kind.folds, SharedSums | None)
        estimator = kind.estimator
        stated = (estimator._kind, estimator._settings_class, estimator._model, estimator._classify)
        assert (kind.name, kind.settings, kind.model, kind.classify) == stated, estimator
        assert estimator.__name__ == kind.class_name
        assert isinstance(kind, Predictor) == issubclass(estimator, PredictingEstimator)
