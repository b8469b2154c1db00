"""docs/architecture.md draws the house as it is: its arrows are imports, its folders and files exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "streamkernel"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def imports() -> set[tuple[str, str]]:
    """Pairs of folders (or files) of the package of which the first imports the second."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("streamkernel."):
                found.add((place, node.module.split(".")[1]))
    return found


def test_arrows_are_imports() -> None:
    drawn = set()
    for line in PAGE.split("```mermaid")[1].split("```")[0].splitlines()[2:]:
        first, _, others = line.partition("-->")
        drawn |= {(first.strip(), other.strip()) for other in others.split("&") if other.strip()}
    assert len(drawn) > 30
    assert drawn <= imports(), drawn - imports()


def test_every_folder_has_its_row() -> None:
    rows = {name.rstrip("/") for name in re.findall(r"`([a-z_]+/|[a-z_]+\.py)`", PAGE.split("## The road")[0])}
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert folders | files <= rows, (folders | files) - rows


def test_files_of_the_questions_exist() -> None:
    questions = re.findall(r"^\| .*\? \| `([\w/]+\.py)` \|$", PAGE, re.MULTILINE)
    assert len(questions) >= 20
    for name in questions:
        assert (PACKAGE / name).is_file(), name
