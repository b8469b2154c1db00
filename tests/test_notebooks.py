"""The notebooks of the documentation: each is a valid one, and its code runs from top to bottom in an empty folder.

Jupyter is not needed: the cells are plain Python, so they run one after another in one namespace, in a process of their
own, as they would in a kernel. Another process than the tests' has no rows of other tests in its memory.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pages import NOTEBOOKS

# Out of core is out of core with a gigabyte; in the quick tests the same code runs with fewer rows.
SMALLER = {"out_of_core": ("windows, lags, chunk = 6_500_000,", "windows, lags, chunk = 30_000,")}
# With so few rows its search for variances would take longer than all else: the slow test runs it as it is.
SHORT_SEARCH = """
from streamkernel.settings.gaussian import GaussianSettings
GaussianSettings.SAMPLE_ROWS["evidence"] = 600
"""

_RUN = """
import json, sys
namespace = {"__name__": "__main__"}
for number, source in enumerate(json.load(sys.stdin)):
    exec(compile(source, f"cell {number}", "exec"), namespace)
"""


def name_of(path: Path) -> str:
    return path.stem


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def code_of(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def run(cells: list[str], folder: Path) -> str:
    # Warnings are errors, as everywhere in the tests.
    command = [sys.executable, "-W", "error", "-c", _RUN]
    done = subprocess.run(command, input=json.dumps(cells), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["classification", "out_of_core", "regression"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_it_is_a_notebook(path: Path) -> None:
    """The fields that version 4.5 of the format requires, and nothing that a run leaves behind."""
    whole = read(path)
    assert whole.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    assert whole["metadata"]["kernelspec"] == {"display_name": "Python 3", "language": "python", "name": "python3"}
    ids = [cell["id"] for cell in whole["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", each) for each in ids)
    for cell in whole["cells"]:
        code = cell["cell_type"] == "code"
        assert cell.keys() == {"cell_type", "id", "metadata", "source"} | (
            {"execution_count", "outputs"} if code else set()
        )
        assert cell["cell_type"] in ("code", "markdown")
        assert cell["metadata"] == {}
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        assert cell["source"], cell["id"]
        if code:
            assert cell["execution_count"] is None
            assert cell["outputs"] == []
            ast.parse("".join(cell["source"]))  # plain Python: no magics
    assert "".join(whole["cells"][0]["source"]).startswith("# ")
    # As `json` writes it: a tool that saves a notebook changes what it must only.
    assert path.read_text(encoding="utf-8") == json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "path", [NOTEBOOKS[0], *(pytest.param(path, marks=pytest.mark.slow) for path in NOTEBOOKS[1:])], ids=name_of
)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    cells = code_of(path)
    if path.stem in SMALLER:
        long, short = SMALLER[path.stem]
        assert sum(long in cell for cell in cells) == 1
        cells = [SHORT_SEARCH, *(cell.replace(long, short) for cell in cells)]
    assert run(cells, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_more_rows_than_the_memory_that_is_allowed(tmp_path: Path) -> None:
    [path] = [path for path in NOTEBOOKS if path.stem == "out_of_core"]
    said = run(code_of(path), tmp_path)
    found = re.search(r"([\d,]+) MB of rows, ([\d.]+) GB of memory allowed", said)
    peak = re.search(r"sweeps, ([\d,]+) MB at the peak", said)
    assert found
    assert peak
    rows, used = (float(each.replace(",", "")) for each in (found[1], peak[1]))
    assert used < 1000.0 * float(found[2]) < rows
