"""Signals as a terminal sends them, to all processes in the foreground: one line, the way to go on, nothing left."""

from __future__ import annotations

import contextlib
import importlib
import os
import pty
import re
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import data_sets
import psutil
import pytest
from problems import zarr_of_chunks

from streamkernel.cli import main
from streamkernel.cli.ending_signals import EndedBySignal, ended_by_signals, ends_after_sweep
from streamkernel.engine.progress import Silent

pytestmark = pytest.mark.timeout(240)

_ERASED = re.compile(r"[^\n]*\x1b\[2K")
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\^C|\r")
_PROGRAM = "import sys; from streamkernel.cli import main; sys.exit(main())"


class Terminal:
    """A command in a terminal of its own, and what it printed there."""

    def __init__(self, *arguments: object) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            for each in (signal.SIGINT, signal.SIGHUP):  # what ran the tests, such as nohup, may ignore them
                signal.signal(each, signal.SIG_DFL)
            os.execv(sys.executable, [sys.executable, "-W", "ignore", "-c", _PROGRAM, *map(str, arguments)])
        self.said = b""
        self.children: list[psutil.Process] = []

    def until(self, there: Callable[[], object]) -> None:
        deadline = time.monotonic() + 120
        while not there():
            assert self.read(), self.said
            assert time.monotonic() < deadline, self.said
        self.children = psutil.Process(self.pid).children(recursive=True)

    def read(self) -> bool:
        if not select.select([self.descriptor], [], [], 0.05)[0]:
            return True
        try:
            content = os.read(self.descriptor, 65536)
        except OSError:  # how Linux says that the other end is closed
            content = b""
        self.said += content
        return bool(content)

    def ended(self, *, begins: int) -> tuple[int, list[str]]:
        """Exit status, and the lines that were printed from then on and not erased."""
        deadline = time.monotonic() + 120
        while self.read():
            assert time.monotonic() < deadline, self.said
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.descriptor)
        _, alive = psutil.wait_procs(self.children, timeout=20)
        assert not alive
        text = _CONTROLS.sub("", _ERASED.sub("", self.said[begins:].decode()))
        return status, [line for line in text.split("\n") if line.strip()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    data = data_sets.friedman(60_000, 6, 0.5, 0)
    return zarr_of_chunks(tmp_path_factory.mktemp("signals") / "rows.zarr", data.X, data.y, 3000)


def long_fit(rows: str, model: Path, workers: int = 2) -> list[object]:
    return ["fit", rows, model, "--basis", 600, "--rule", "rpcholesky", "--lengthscale", 3, "--workers", workers]


def begun(terminal: Terminal) -> dict[str, Callable[[], object]]:
    """When the signal comes."""
    return {
        "loading": lambda: psutil.Process(terminal.pid).cpu_times().user > 0.1,
        "cluster": lambda: len(psutil.Process(terminal.pid).children()) > 1,
        "sweep": lambda: b"rows/s" in terminal.said,
    }


SENT: dict[str, tuple[int, Callable[[Terminal], object]]] = {
    "Ctrl-C": (signal.SIGINT, lambda terminal: os.write(terminal.descriptor, b"\x03")),
    "TERM": (signal.SIGTERM, lambda terminal: os.kill(terminal.pid, signal.SIGTERM)),
    "TERM to all": (signal.SIGTERM, lambda terminal: os.killpg(terminal.pid, signal.SIGTERM)),
    "HUP": (signal.SIGHUP, lambda terminal: os.killpg(terminal.pid, signal.SIGHUP)),
}
SLOW = [
    (sent, stage) for sent in SENT for stage in ("loading", "cluster", "sweep") if (sent, stage) != ("Ctrl-C", "sweep")
]


@pytest.mark.parametrize(
    ("sent", "stage"),
    [("Ctrl-C", "sweep"), *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)],
)
def test_one_line_with_the_way_to_go_on(rows: str, tmp_path: Path, sent: str, stage: str) -> None:
    # One, where this is not among the slow tests.
    terminal = Terminal(*long_fit(rows, tmp_path / "a model", workers=2 if (sent, stage) in SLOW else 1))
    terminal.until(begun(terminal)[stage])
    begins = len(terminal.said)
    number, send = SENT[sent]
    send(terminal)
    status, lines = terminal.ended(begins=begins)
    assert status == 128 + number, lines
    errors = [line for line in lines if "━" not in line and "rows/s" not in line]
    end = r"(interrupted by Ctrl-C|ended by SIG(TERM|HUP))"
    if errors[0].startswith("SIGTERM: "):  # the sweep at work is ended
        errors, end = errors[1:], "ended by SIGTERM between two sweeps"
    assert len(errors) == 1, errors
    line = errors[0]
    assert re.match(rf"error: {end}; go on with: streamkernel fit ", line), lines
    assert f"'{tmp_path}/a model'" in line
    assert line.endswith(" --resume")
    assert not (tmp_path / "a model").exists()


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["cluster", "sweep"])
def test_a_second_one_waits_for_nothing(rows: str, tmp_path: Path, stage: str) -> None:
    terminal = Terminal(*long_fit(rows, tmp_path / "model"))
    terminal.until(begun(terminal)[stage])
    begins = len(terminal.said)
    for _ in range(2):
        os.write(terminal.descriptor, b"\x03")
        time.sleep(0.2)
    status, lines = terminal.ended(begins=begins)
    assert status in (130, -signal.SIGINT)  # the latter where the interpreter was at its own end
    assert [line for line in lines if line.startswith("error: interrupted by Ctrl-C; go on with: ")] == lines[-1:]
    assert "Traceback" not in "".join(lines), "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["evaluate", "predict", "update", "follow", "factor"])
def test_other_commands(rows: str, tmp_path: Path, command: str) -> None:
    model = tmp_path / "model"
    assert main(["fit", rows, str(model), "--basis", "20", "--rows", "0:3000", "--scheduler", "threads"]) == 0
    given = {
        "evaluate": ["evaluate", model, rows],
        "predict": ["predict", model, rows, tmp_path / "out"],
        "update": ["update", model, rows],
        "follow": ["follow", rows, model],
        "factor": ["factor", rows, tmp_path / "factor", "--basis", 600],
    }[command]
    terminal = Terminal(*given, "--workers", 2)
    terminal.until(begun(terminal)["cluster"])
    begins = len(terminal.said)
    os.write(terminal.descriptor, b"\x03")
    status, lines = terminal.ended(begins=begins)
    if command == "follow":
        assert status == 0
        assert "stopped" in lines[-1]
    else:
        assert status == 130
        assert lines[-1].startswith("error: interrupted by Ctrl-C")
        assert ("--resume" in lines[-1]) == (command == "factor")
    assert "Traceback" not in "".join(lines), "\n".join(lines)


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ("fit a 'b c' --basis 3", "fit a 'b c' --basis 3 --resume"),
        ("fit --resume a b", "fit --resume a b"),
        ("fit --basis 3 -- --a --resume", "fit --basis 3 --resume -- --a --resume"),
        ("compress a b --rows 0:9", "compress a b --rows 0:9 --resume"),
        ("ingest --append a b", "ingest --append a b --repeated skip"),
        ("ingest a b --append --repeated=append", "ingest a b --append --repeated=append"),
        ("ingest a b", ""),
        ("ingest a b -- --append", ""),
    ],
)
def test_the_way_to_go_on_is_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str, again: str
) -> None:
    def ended(arguments: list[str]) -> int:
        raise EndedBySignal(signal.SIGTERM)

    monkeypatch.setattr("streamkernel.cli.command_list.run", ended)
    assert main(shlex.split(given)) == 128 + signal.SIGTERM
    hint = f"; go on with: streamkernel {again}" if again else ""
    assert capsys.readouterr().err == f"error: ended by SIGTERM{hint}\n"


def test_a_signal_that_a_library_swallows_while_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def swallowing(name: str) -> object:
        with contextlib.suppress(BaseException):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        return importlib.import_module(name)

    monkeypatch.setattr("streamkernel.cli.command_list.import_module", swallowing)
    assert main(["info", "nothing"]) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "error: ended by SIGTERM\n"
    monkeypatch.undo()
    assert main(["info", "nothing"]) == 1  # it is over


class Interrupted:
    """An object that a Ctrl-C interrupts as it is removed: no exception comes out of a finaliser."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


@pytest.mark.parametrize("call", [("begin", "sweep", 10, 1), ("advance", 1), ("end", 0.1)])
def test_a_signal_that_is_swallowed_during_a_sweep(call: tuple[object, ...], request: pytest.FixtureRequest) -> None:
    """In a finaliser no exception comes out: the next report of progress raises it again."""
    name, *arguments = call
    # A process that ignores Ctrl-C, as those in the background of a script do, goes on to ignore it.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, former))
    with ended_by_signals("", until_exit=False), ends_after_sweep(Silent(), quiet=True) as progress:
        getattr(progress, str(name))(*arguments)
        Interrupted()
        with pytest.raises(EndedBySignal, match="Ctrl-C"):
            getattr(progress, str(name))(*arguments)


def test_handlers_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Called from a program of somebody else's, which has plans of its own."""
    mine = lambda number, frame: None  # noqa: E731
    former = {number: signal.signal(number, mine) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert main(["--version"]) == 0
        assert signal.getsignal(signal.SIGTERM) is mine
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def end_by_sigterm(until_exit: bool) -> None:
    with ended_by_signals("", until_exit=until_exit):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)


@pytest.mark.parametrize("until_exit", [True, False])
def test_what_is_lost_after_a_signal_is_no_news(until_exit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of a program; a library restores the hook of its caller."""
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(EndedBySignal):
            end_by_sigterm(until_exit)
        sys.unraisablehook(SimpleNamespace(exc_value=ValueError("an event loop that was not closed")))  # type: ignore[arg-type]
        assert len(told) == (0 if until_exit else 1)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
