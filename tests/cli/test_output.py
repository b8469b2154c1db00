"""What people see: no line is cut where no terminal reads it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from streamkernel.cli.output import Display, stderr
from streamkernel.cli.streams import checked_streams
from streamkernel.jobs.records import JobRecords, new_id
from streamkernel.jobs.specification import JobSpecification
from streamkernel.models import RidgeModel

LONG = "/" + "/".join(["a folder with blanks"] * 30)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would make Rich cut lines."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_piped_result_keeps_whole_cells(capsys: pytest.CaptureFixture[str]) -> None:
    Display().emit({"path": LONG, "rows": 1000}, "table of [a] :smile: " + LONG)
    title, path, rows = capsys.readouterr().out.splitlines()
    assert LONG in title
    assert "[a] :smile:" in title, "a path is no markup"
    assert path.endswith(LONG)
    assert rows.endswith("1,000"), "no line is as long as the longest"


@pytest.mark.parametrize(
    ("name", "encoding", "shown"), [("\udcff", "utf-8", b"\\udcff"), ("\u00fc\u65e5", "ascii", b"\\xfc\\u65e5")]
)
def test_what_stdout_has_no_letter_for_is_escaped(
    monkeypatch: pytest.MonkeyPatch, name: str, encoding: str, shown: bytes
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    with checked_streams():
        Display().emit({"path": f"a{name}b", "rows": 7}, "table")
    title, path, rows = written.getvalue().splitlines()
    assert b"table" in title
    assert path.endswith(b"a" + shown + b"b")
    assert rows.endswith(b"7")


def test_names_of_columns_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Display().emit({"columns": ["a\x1b[31mred", "b\nline"], "share of \x07": 7}, "table")
    _, columns, share = capsys.readouterr().out.splitlines()
    assert columns.endswith(r"a\x1b[31mred, b\nline")
    assert r"share of \x07" in share


def test_errors_do_not_steer_the_terminal(cli: Callable, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('"a\x1b[31mred",y\nfive,1\n', encoding="utf-8")
    said = cli("ingest", tmp_path / "rows.csv", tmp_path / "rows.zarr", "--target", "y").err
    assert r"a\x1b[31mred" in said
    assert "\x1b" not in said.rpartition("error: ")[2]


def test_a_hint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    stderr.print(f"streamkernel status {LONG} --follow shows its progress", style="dim")
    (line,) = capsys.readouterr().err.splitlines()
    assert f"streamkernel status {LONG} --follow" in line


def test_tables_of_commands_are_not_cut(cli: Callable, model: Path, store: Path) -> None:
    shown = cli("info", model).out
    assert RidgeModel.load(model).digest in shown
    steps = cli("plan", store, "--basis", 50, "--scheduler", "threads").out.splitlines()
    header = next(number for number, line in enumerate(steps) if "flops" in line and "step" in line)
    assert all(line.split()[-1].replace("e+", "").replace(".", "").isdigit() for line in steps[header + 1 :])


def test_jobs_have_a_line_each(cli: Callable, tmp_path: Path) -> None:
    name = "a-model-of-all-that-we-have-" * 4
    records = JobRecords(str(tmp_path / ".jobs"), new_id())
    records.create(JobSpecification("ridge", {}, str(tmp_path / "rows"), str(tmp_path / name), lease_seconds=2.0))
    _, line = cli("jobs", tmp_path / ".jobs").out.splitlines()
    assert line.split()[:4] == [records.id, "queued", "ridge", name]
