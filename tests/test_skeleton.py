"""The repository's own promises: no machine in it, pins without addresses, strategies that keep theirs."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from strategies import chunkings, tables

from streamkernel.dependencies import TRIED, missing_part

ROOT = Path(__file__).resolve().parents[1]


CONSTRAINTS = ["constraints.txt", "constraints-oldest.txt"]


@pytest.mark.parametrize("file", [*CONSTRAINTS, "constraints-docs.txt"])
def test_constraints_are_plain_pins(file: str) -> None:
    lines = (ROOT / file).read_text().splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), line


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: str) -> dict[str, str]:
    lines = (line.partition("==") for line in (ROOT / file).read_text().split())
    return {normal(name): version for name, _, version in lines}


def requirements(*tools: str) -> list[Requirement]:
    """Those of the package with all of its extras, and those of some extras of tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    others = {"dev", "docs"} - set(tools)
    extras = {name: extra for name, extra in project["optional-dependencies"].items() if name not in others}
    found = map(Requirement, [*project["dependencies"], *(each for extra in extras.values() for each in extra)])
    return [requirement for requirement in found if requirement.name != project["name"]]


@pytest.mark.parametrize("file", CONSTRAINTS)
def test_every_dependency_is_pinned_within_its_range(file: str) -> None:
    pinned = pins(file)
    for requirement in requirements("dev"):
        version = pinned[normal(requirement.name)]
        assert requirement.specifier.contains(version), (requirement, version)


def test_the_site_is_built_with_pinned_tools_and_the_libraries_of_the_tests() -> None:
    pinned, tested = pins("constraints-docs.txt"), pins("constraints.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in map(Requirement, project["optional-dependencies"]["docs"]):
        if requirement.name != project["name"]:
            assert requirement.specifier.contains(pinned[normal(requirement.name)]), requirement
    shared = pinned.keys() & tested.keys()
    assert {"numpy", "numba", "zarr"} <= shared
    assert {name: pinned[name] for name in shared} == {name: tested[name] for name in shared}


def test_the_extra_all_has_every_extra_that_users_install() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [everything] = map(Requirement, extras["all"])
    assert everything.extras == extras.keys() - {"all", "dev", "docs"}


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    pinned = pins("constraints-oldest.txt")
    for requirement in requirements():
        [least] = [each.version for each in requirement.specifier if each.operator == ">="]
        assert Version(pinned[normal(requirement.name)]) == Version(least), requirement


def test_bounds_are_the_versions_that_undocumented_parts_were_tried_with() -> None:
    bounds = {normal(requirement.name): requirement.specifier for requirement in requirements()}
    tried = {library: SpecifierSet(f">={each.least},<{each.below}") for library, each in TRIED.items()}
    assert {library: bounds[library] for library in tried} == tried
    # An upper bound is a cost for users: only undocumented parts are worth it.
    assert {library for library, bound in bounds.items() if any(each.operator != ">=" for each in bound)} == set(tried)
    newest = pins("constraints.txt")
    for library, each in TRIED.items():
        assert Version(newest[library]).release[:2] < Version(each.below).release[:2]
        assert find_spec(each.used_in) is not None


def test_undocumented_parts_are_used_in_one_file_a_library() -> None:
    inner = r"zarr\.core|uvicorn\.protocols|distributed\.(?:client|scheduler|comm|worker_)|\w+(?:\.\w+)*\._[a-z]"
    imported = re.compile(rf"\s*(?:from|import) (?!streamkernel)(?:{inner})")
    for path in sorted((ROOT / "streamkernel").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module not in {each.used_in for each in TRIED.values()}:
            for line in path.read_text().splitlines():
                assert not imported.match(line), (path, line)


def test_a_missing_part_names_the_versions_that_have_it() -> None:
    error = missing_part("zarr", "cannot import name 'sync'")
    assert isinstance(error, ImportError)
    assert f"zarr {version('zarr')} lacks a part" in str(error)
    assert "cannot import name 'sync'" in str(error)
    assert f"'zarr>={TRIED['zarr'].least},<{TRIED['zarr'].below}'" in str(error)


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
