"""What an import loads: libraries that take long are left to those who need them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from streamkernel import ingest, open_table
from streamkernel.estimators.base import PredictingEstimator
from streamkernel.kinds import KINDS, Predictor

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

ESTIMATORS = "from streamkernel import GaussianProcessRegressor, KernelCCA, KernelRidge, Nystroem"
FIT = """
import numpy as np
from streamkernel import KernelRidge
X = np.random.default_rng(0).standard_normal((300, 2))
print(KernelRidge(10).fit(X, X[:, 0]).predict(X).shape)
"""
PLAN = "from streamkernel.cli import main; assert main(['plan', {!r}, '--scheduler', 'threads']) == 0"


def loaded(code: str) -> set[str]:
    """Those of `HEAVY` that a fresh process has loaded after `code`."""
    return loaded_of(f"{WITHOUT_PANDAS}{code}", HEAVY)


def loaded_of(code: str, modules: Iterable[str]) -> set[str]:
    """Those of some modules that a fresh process has loaded after `code`, in which MODEL is a place for a model."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"{code}\nimport sys\nprint('loaded', *({set(modules)!r} & sys.modules.keys()))"
        code = code.replace("MODEL", str(Path(folder, "model")))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_python_without_a_cluster_loads_no_heavy_library() -> None:
    assert loaded(f"{ESTIMATORS}\nfrom streamkernel import Factor, factorize, open_table\n{FIT}") == set()


def test_a_command_on_threads_loads_no_cluster(tmp_path: Path) -> None:
    ingest(open_table(np.eye(50), np.arange(50.0)), tmp_path / "x")
    assert loaded(PLAN.format(str(tmp_path / "x"))) == {"click", "rich"}


def test_the_list_of_commands_loads_no_numpy() -> None:
    code = "import streamkernel.cli.command_list, sys; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.strip() == "False"


def test_the_list_of_commands_loads_click_alone() -> None:
    assert loaded("import streamkernel.cli.command_list") == {"click"}


def test_a_fit_from_the_command_line_loads_no_scikit_learn() -> None:
    """It takes a second and 100 MB, with pandas and pyarrow where these are installed; SciPy's statistics another."""
    code = (
        "from streamkernel.cli import main\n"
        "table = 'synthetic://friedman?rows=500&features=5'\n"
        "for command in (['plan', table], ['fit', table, 'MODEL', '--basis', '10', '--quiet']):\n"
        "    assert main([*command, '--scheduler', 'threads']) == 0\n"
    )
    assert loaded_of(code, ("scipy.stats", "sklearn", "pandas", "pyarrow")) == set()


def test_until_the_first_read_no_optimisation_is_loaded() -> None:
    """It is a tenth of the start of a command; a fit that searches for alpha loads it later."""
    code = (
        "from streamkernel.cli import main\n"
        "assert main(['plan', 'synthetic://friedman?rows=500&features=5', '--scheduler', 'threads', '--quiet']) == 0\n"
        "import streamkernel.fits.boosting\n"
    )
    assert loaded_of(code, ("scipy.optimize", "scipy.sparse.linalg")) == set()


def test_a_worker_loads_what_it_needs() -> None:
    code = "import streamkernel.engine.cluster, streamkernel.jobs._driver"
    assert loaded_of(code, ("bokeh", "matplotlib", "pandas", "pyarrow", "scipy.stats", "sklearn")) == set()


def test_a_kind_is_what_its_class_says() -> None:
    """The registry names the classes, and loads none of them before somebody asks for it."""
    for kind in KINDS.values():
        estimator = kind.estimator
        stated = (estimator._kind, estimator._settings_class, estimator._model, estimator._classify)
        assert (kind.name, kind.settings, kind.model, kind.classify) == stated, estimator
        assert estimator.__name__ == kind.class_name
        assert isinstance(kind, Predictor) == issubclass(estimator, PredictingEstimator)
