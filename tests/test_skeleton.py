"""The repository's own promises: no machine in it, pins without addresses, strategies that keep theirs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from strategies import chunkings, tables

ROOT = Path(__file__).resolve().parents[1]


def test_constraints_are_plain_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), line


def test_every_dependency_is_pinned_within_its_range() -> None:
    normal = re.compile(r"[-_.]+")
    pins = {
        normal.sub("-", name).lower(): version
        for name, _, version in (line.partition("==") for line in (ROOT / "constraints.txt").read_text().split())
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    for requirement in map(Requirement, wanted):
        if requirement.name == project["name"]:
            continue
        version = pins[normal.sub("-", requirement.name).lower()]
        assert requirement.specifier.contains(version), (requirement, version)


SHELL_SCRIPTS = [p for p in sorted((ROOT / "scripts").iterdir()) if p.is_file() and p.suffix != ".py"]


@pytest.mark.parametrize("path", [*SHELL_SCRIPTS, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_scripts_name_no_machine(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|(^|[\s\"'=])/(work|root|home|tmp|opt)/", text)
    assert path.name.startswith("_") or path.stat().st_mode & 0o111


@given(st.data(), st.integers(1, 40))
def test_chunkings_cover_the_rows(data: st.DataObject, n_rows: int) -> None:
    lengths = data.draw(chunkings(n_rows))
    assert sum(lengths) == n_rows
    assert min(lengths) >= 1


@given(tables())
def test_tables_agree_in_rows(table: tuple) -> None:
    X, y = table
    assert len(X) == len(y) >= 1
