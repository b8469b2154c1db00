"""Tables as people have them: what each gives. ``python tests/test_messy_inputs.py`` writes docs/messy_inputs.md anew.

Each case is a file or two, and a command. It works, and the page tells what is stored; or it is refused, and the page
has the message with its way out.
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest
from checkout import ROOT, with_this_package
from messy.case import Case
from messy.columns import COLUMNS
from messy.files import FILES

from streamkernel import open_table
from streamkernel.cli.main import main

PAGE = ROOT / "docs" / "messy_inputs.md"

CASES = [*COLUMNS, *FILES]


def outcome(case: Case, folder: Path) -> tuple[bool, str]:
    """Whether it works, and the columns of the table, or the message."""
    case.make(folder)
    warned = ""
    for command in case.command.split(" && "):
        printed = io.StringIO()
        with redirect_stderr(printed), redirect_stdout(io.StringIO()):
            status = main([*shlex.split(command), "--quiet"])
        if status != 0:
            assert not (folder / "rows.zarr").exists() or "--append" in command
            [line] = [line for line in printed.getvalue().splitlines() if line.startswith("error: ")]
            return False, line.removeprefix("error: ")
        warned += "".join(
            f"; with the {line}" for line in printed.getvalue().splitlines() if line.startswith("warning")
        )
    table = open_table(folder / "rows.zarr")
    targets = ", ".join(table.target_names)
    return True, f"{', '.join(table.columns)}" + (f" | {targets}" if targets else "") + warned


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_each_works_or_says_the_way_out(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.input is not None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(case.input)))
    works, found = outcome(case, folder)
    if works:
        assert found.partition(" | ")[0] == case.gives
    else:
        assert case.gives in found
    assert row_of(case, works, found) in PAGE.read_text(encoding="utf-8").splitlines()


def test_there_are_at_least_40() -> None:
    assert len({case.title for case in CASES}) == len(CASES) >= 40


def row_of(case: Case, works: bool, found: str) -> str:
    features, _, rest = found.partition(" | ")
    targets, mark, warned = rest.partition("; with")
    gives = (
        f"features {features}" + (f"; target {targets}" if targets else "") + mark + warned
        if works
        else f"refused: {found}"
    )
    cells = [case.title, f"`{case.command}`", gives]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> Iterator[str]:
    yield "# Messy inputs\n"
    yield (
        "What tables as people have them give: features that are stored, or a message with the way out. Each row is a\n"
        "test; `python tests/test_messy_inputs.py` writes this page. [The guide](guide.md#tables-as-they-come) tells\n"
        "what the options mean.\n"
    )
    yield "| input | command | gives |\n|---|---|---|"


if __name__ == "__main__":
    with_this_package()
    import os
    import tempfile

    lines = list(page())
    for each in CASES:
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            if each.input is not None:
                sys.stdin = SimpleNamespace(buffer=io.BytesIO(each.input))  # type: ignore[assignment]
            lines.append(row_of(each, *outcome(each, Path(place))))
            os.chdir("/")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
