"""The documents say what is so: their Python runs, their commands parse, their links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest

from streamkernel.cli.main import main, streamkernel

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNABLE = [ROOT / "README.md", ROOT / "docs" / "guide.md"]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[tuple[int, str]]:
    """Line number and text of each fenced block of these languages."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start(2)) + 1, found[2])
        for found in _FENCE.finditer(text)
        if found[1] in languages
    ]


def commands(page: Path) -> list[list[str]]:
    """Every command line of the page's shell blocks, as words."""
    lines = []
    for _, block in blocks(page, "console", "bash", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            # In a console block what has no prompt is output.
            if "$ " in block and not line.startswith("$ "):
                continue
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                lines.append(words)
    return lines


def of_streamkernel(page: Path) -> list[list[str]]:
    return [words[1:] for words in commands(page) if words[0].rpartition("/")[2] == "streamkernel"]


def write_csv(path: Path, m: int = 4000) -> None:
    """Ten columns x1 ... x10 and y; for species.csv a column of text labels instead of y."""
    rows = data_sets.friedman(m, 10, 0.5, 0)
    names, target = [f"x{j + 1}" for j in range(10)], rows.y.astype(str)
    if path.name == "species.csv":
        rows, target = data_sets.friedman(1000, 10, 0.5, 0), np.array([])
        target = np.array(["adelie", "chinstrap", "gentoo"])[np.digitize(rows.y, [12.0, 17.0])]
        names.append("species")
    else:
        names.append("y")
    lines = [",".join([*map(str, row), label]) for row, label in zip(rows.X, target, strict=True)]
    path.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in set(re.findall(r"\b[\w-]+\.csv\b", page.read_text(encoding="utf-8"))):
        write_csv(tmp_path / name)
    # What the page's Python reads may have been ingested by a command above it.
    for words in of_streamkernel(page):
        if words[0] == "ingest" and not words[1].startswith("-") and os.path.exists(words[1]):
            assert main([*words, "--quiet"]) == 0
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, source in blocks(page, "python"):
        # As many empty lines before it as the page has, so that a traceback names the page's own line.
        exec(compile("\n" * (line - 1) + source, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_parse(page: Path) -> None:
    for words in of_streamkernel(page):
        if words[0].startswith("-"):
            continue
        command = streamkernel.get_command(None, words[0])
        assert command is not None, words
        # Raises a usage error for what the command line would refuse; nothing is run.
        with command.make_context(words[0], words[1:]):
            pass


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"\bscripts/[\w./-]*\w", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"\bscripts/bench (\w+)", text):
        assert (ROOT / "scripts" / "benchmarks" / f"{name}.py").is_file(), name


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


def test_modules_that_reliability_names_exist() -> None:
    page = ROOT / "docs" / "reliability.md"
    for name in set(re.findall(r"`(\w+/[\w/]+\.py|\w+\.py)`", page.read_text(encoding="utf-8"))):
        assert (ROOT / name).exists() or (ROOT / "streamkernel" / name).exists(), name


def test_every_error_has_its_place_in_reliability() -> None:
    from streamkernel import errors

    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    bases = {"DataError", "StoreError", "StreamKernelError", "StreamKernelWarning"}
    for name in set(errors.__all__) - bases:
        assert f"`{name}`" in text, name
