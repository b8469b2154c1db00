"""Messages name parameters in no front end's words; each front end says them in those of its users."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from distributed.protocol import pickle as dask_pickle

import streamkernel as package
from streamkernel import KernelRidge, open_table
from streamkernel.cli.main import main, streamkernel
from streamkernel.cli.wording import COMMANDS, in_flags
from streamkernel.errors import ParameterError, StoreError, StreamKernelError, error_class
from streamkernel.service.http_errors import in_json, refusal_of
from streamkernel.wording import Mention, call, estimator, help_of, in_python, mentions, option, switch, worded

HOME = Path(package.__file__).parent
MODULES = sorted(path for path in HOME.rglob("*.py") if path.relative_to(HOME).parts[0] != "cli")
FLAG = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(rf"\bstreamkernel ({'|'.join(streamkernel.list_commands(None))})\b")  # type: ignore[arg-type]

# Parameters of functions and estimators that no command has.
ONLY_PYTHON = {
    "classes", "fit_inverse_transform", "kernel_params", "kernels", "lease_seconds", "sparse", "rows", "target",
    "until_rows", "view_columns",
}  # fmt: skip


Nodes = Mapping[Path, Sequence[ast.AST]]


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    """All nodes of each file of `MODULES`. To parse them takes seconds: it is done once."""
    return {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in MODULES}


def texts(of_file: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is no docstring."""
    docs = {
        id(node.body[0].value)
        for node in of_file
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in of_file:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def named(nodes: Nodes) -> Iterator[tuple[str, str, str]]:
    """Module, function of `streamkernel.wording` and first argument of each call with a name that stands there."""
    for path, of_file in nodes.items():
        for node in of_file:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("option", "switch", "call", "estimator")
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, str)
            ):
                yield str(path.relative_to(HOME)), node.func.id, node.args[0].value


def flags() -> set[str]:
    found = set()
    for name in streamkernel.list_commands(None):  # type: ignore[arg-type]
        command = streamkernel.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for parameter in command.params:
            found |= {*parameter.opts, *parameter.secondary_opts}
    return found


def test_no_message_of_the_library_names_a_flag_or_a_command(nodes: Nodes) -> None:
    for path, of_file in nodes.items():
        for line, text in texts(of_file):
            assert not FLAG.search(text), (path, line, text)
            assert not COMMAND.search(text), (path, line, text)
            # A string that was to be formatted.
            assert not re.search(r"\{(option|call|estimator)\(", text), (path, line, text)


def test_the_command_line_has_every_flag_that_it_names(nodes: Nodes) -> None:
    known, wrong = flags(), []
    for where, kind, name in named(nodes):
        if kind == "call":
            assert name in COMMANDS, (where, name)
        elif kind == "estimator":
            assert in_flags(Mention(kind, name)).startswith("--estimator "), (where, name)
        elif in_flags(Mention("option", name)).split()[0] not in known and name not in ONLY_PYTHON:
            wrong.append((where, name))
    assert not wrong


def test_every_front_end_has_its_words() -> None:
    message = f"give {option('fit_intercept', False)}, {option('memory_limit', '4GB')} or {option('alpha')}; "
    message += f"{switch('overwrite')}, {call('ingest', 'chunk_rows')}, "
    message += f"{estimator('KernelMatchingPursuit')}, {help_of('KernelRidge')}"
    assert worded(message, in_python) == (
        "give fit_intercept=False, memory_limit='4GB' or alpha; ask for overwrite (overwrite=True), "
        "ingest(chunk_rows=...), KernelMatchingPursuit, "
        "help(KernelRidge)"
    )
    assert worded(message, in_flags) == (
        "give --no-intercept, --memory 4GB or --alpha; give --overwrite, streamkernel ingest --chunk-rows, "
        "--estimator kmp, streamkernel fit --estimator ridge --help"
    )
    assert worded(message, in_json) == (
        'give "fit_intercept": false, "memory_limit": "4GB" or alpha; give "overwrite": true, ingest(chunk_rows=...), '
        '"estimator": "kmp", help(KernelRidge)'
    )
    repeated = option("drop", ["a", "zip code"])
    assert worded(repeated, in_python) == "drop=['a', 'zip code']"
    assert worded(repeated, in_flags) == "--drop a --drop 'zip code'"
    assert worded(repeated, in_json) == '"drop": ["a", "zip code"]'
    assert [each.name for each in mentions(message)][:3] == ["fit_intercept", "memory_limit", "alpha"]


def test_text_that_only_looks_like_a_name_stays_as_it_is() -> None:
    text = "the file \ue000no json\ue001 \ue000"
    assert worded(text, in_flags) == text
    assert mentions(text) == []


@pytest.mark.parametrize("name", ["ParameterError", "StoreNotFoundError", "ResourceLimitError", "CorruptChunkError"])
def test_errors_carry_name_and_value_through_a_pickle(name: str) -> None:
    kind = error_class(name)
    assert kind is not None
    error = kind(f"{option('tol')} must be >= 0, not -1.0; give {option('alpha', 0.5)}")
    error.value = -1.0
    # Dask has its own way of reading exceptions, from the time that it is imported.
    for each in (error, pickle.loads(pickle.dumps(error)), dask_pickle.loads(dask_pickle.dumps(error))):
        assert str(each) == "tol must be >= 0, not -1.0; give alpha=0.5"
        assert each.worded(in_flags) == "--tol must be >= 0, not -1.0; give --alpha 0.5"
        assert (each.parameter, each.value) == ("tol", -1.0)
    assert isinstance(StoreError("no name in it"), StreamKernelError)
    assert StoreError("no name in it").parameter is None


def test_one_mistake_in_the_words_of_all_front_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    with pytest.raises(ParameterError, match=r"^n_components must be a whole number > 0, not 0$") as caught:
        KernelRidge(0).fit(X, X[:, 0])
    assert (caught.value.parameter, caught.value.value) == ("n_components", 0)
    assert str(refusal_of(caught.value)) == "n_components must be a whole number > 0, not 0"
    package.ingest(X, tmp_path / "rows.zarr")
    assert main(["fit", str(tmp_path / "rows.zarr"), str(tmp_path / "model.zarr"), "--basis", "0"]) == 1
    assert capsys.readouterr().err == "error: --basis must be a whole number > 0, not 0\n"
    with pytest.raises(ParameterError, match=r"^the table has no targets; ingest it with target, or give y$"):
        KernelRidge(5).fit(open_table(tmp_path / "rows.zarr"))
    assert main(["fit", str(tmp_path / "rows.zarr"), str(tmp_path / "model.zarr"), "--scheduler", "threads"]) == 1
    assert "ingest it with --target, or give y" in capsys.readouterr().err


@pytest.mark.parametrize("words", [in_python, in_flags, in_json])
@pytest.mark.parametrize(
    "content", ["5", "[]", '["option"]', '[1, "x"]', '["estimator", {}]', '["call", "fit", 7]', "{", '"text"']
)
def test_what_no_release_writes_between_marks_is_left_as_it_is(content: str, words: Callable[[Mention], str]) -> None:
    """Errors of jobs are read from files."""
    marked = switch("overwrite").replace(switch("overwrite")[1:-1], content)
    assert worded(f"give {marked} now", words) == f"give {marked} now"
    assert mentions(marked) == []


@pytest.mark.parametrize("words", [in_python, in_flags, in_json])
@pytest.mark.parametrize(
    "mention", [call("newer", "size"), estimator("NewerKernel"), help_of("NewerKernel"), option("newer", 3)]
)
def test_names_of_a_later_release_are_shown(mention: str, words: Callable[[Mention], str]) -> None:
    assert re.search("[Nn]ewer", worded(mention, words))
