"""docs/architecture.md draws the house as it is: its arrows are imports, its folders and files exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "streamkernel"
FRONT_ENDS = {"cli", "service", "report"}
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


Nodes = Mapping[Path, Sequence[ast.AST]]


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    """All nodes of each file of the package. To parse them takes seconds: it is done once."""
    return {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in PACKAGE.rglob("*.py")}


def imports(nodes: Nodes) -> set[tuple[str, str]]:
    """Pairs of folders (or files) of the package of which the first imports the second."""
    found = set()
    for path, of_file in nodes.items():
        place = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in of_file:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("streamkernel."):
                found.add((place, node.module.split(".")[1]))
    return found


def test_arrows_are_imports(nodes: Nodes) -> None:
    drawn = set()
    for line in PAGE.split("```mermaid")[1].split("```")[0].splitlines()[2:]:
        first, _, others = line.partition("-->")
        drawn |= {(first.strip(), other.strip()) for other in others.split("&") if other.strip()}
    assert len(drawn) > 30
    assert drawn <= (known := imports(nodes)), drawn - known


def test_every_folder_has_its_row() -> None:
    rows = {name.rstrip("/") for name in re.findall(r"`([a-z_]+/|[a-z_]+\.py)`", PAGE.split("## The road")[0])}
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert folders | files <= rows, (folders | files) - rows


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def users(nodes: Nodes) -> dict[str, set[str]]:
    """The folders that import each module, and "exported" where the folder's `__init__` offers what is in it."""
    found: dict[str, set[str]] = {module_of(path): set() for path in nodes}
    for path, of_file in nodes.items():
        user = "exported" if path.name == "__init__.py" else module_of(path.parent)
        for node in of_file:
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and path.stem != "dependencies":
                # A module that is loaded when it is first used stands as a string; `dependencies.py` only names files.
                names = [node.value]
            for name in names:
                if name in found:
                    found[name].add(user)
    for stub in PACKAGE.rglob("__init__.pyi"):
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            assert isinstance(node, ast.ImportFrom), f"{stub} only says what its folder offers"
            found[f"{module_of(stub.parent)}.{node.module}"].add("exported")
    return found


def test_a_file_has_the_mark_if_only_its_folder_uses_it(nodes: Nodes) -> None:
    """Front ends are not used by any folder; files beside `__init__.py` of the package are used by all."""
    for module, folders in users(nodes).items():
        folder, _, name = module.rpartition(".")
        if folder == "streamkernel" or not (PACKAGE.parent / (module.replace(".", "/") + ".py")).exists():
            continue
        inner = {user for user in folders if user == folder or user.startswith(f"{folder}.")}
        outer = folders - inner
        if name.startswith("_"):
            assert outer <= {"exported"}, f"{module} is private, and used by {outer}"
        elif folder.split(".")[1] not in FRONT_ENDS:
            assert outer, f"{module} is used by its own folder only: its name should begin with _"


def test_files_of_the_questions_exist() -> None:
    questions = re.findall(r"^\| .*\? \| `([\w/]+\.py)` \|$", PAGE, re.MULTILINE)
    assert len(questions) >= 20
    for name in questions:
        assert (PACKAGE / name).is_file(), name
