"""Every option of every rule from the command line: by its own name, or by --rule-option NAME=VALUE."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel import Factor, factorize, open_table
from streamkernel.cli.rule_options import NAMED
from streamkernel.errors import ParameterError
from streamkernel.models import RidgeModel
from streamkernel.selection import RULES, Uniform, options_of
from streamkernel.settings import RidgeSettings

THREADS = ("--scheduler", "threads", "--quiet")

# A value of each option that is not its default, as it is typed and as it is meant.
VALUES: dict[str, tuple[str, Any]] = {
    "block": ("7", 7),
    "candidates": ("5", 5),
    "centre": ("no", False),
    "delta": ("3", 3),
    "dual_rows": ("9", 9),
    "eps": ("0.01", 0.01),
    "exact": ("False", False),
    "gain_tolerance": ("1e-6", 1e-6),
    "gap": ("0.1", 0.1),
    "growth": ("4", 4),
    "kappa": ("0.5", 0.5),
    "nearest": ("no", False),
    "picks": ("4", 4),
    "pool": ("shared", "shared"),
    "published": ("yes", True),
    "quantile": ("0.9", 0.9),
    "ridge": ("0.5", 0.5),
    "score": ("pivot", "pivot"),
    "sweeps": ("1", 1),
}
EVERY = [(rule, name) for rule in RULES for name in options_of(rule)]


@pytest.mark.parametrize(("rule", "name"), EVERY)
def test_every_option_is_reachable(cli: Callable, store: Path, rule: str, name: str) -> None:
    typed, meant = VALUES[name]
    option = options_of(rule)[name]
    assert type(meant) is option.kind
    assert meant != option.default
    plan = ("plan", store, "--basis", 30, "--rule", rule, "--json", *THREADS)
    by_option = cli(*plan, "--rule-option", f"{name}={typed}").result
    if name in NAMED:
        assert cli(*plan, f"--{name}", typed).result == by_option
    cli(*plan, "--rule-option", f"{name.replace('_', '-')}={typed}").result


def test_names_of_their_own_are_options_of_rules() -> None:
    assert NAMED.keys() <= {name for _, name in EVERY}


@pytest.mark.parametrize("command", ["fit", "plan", "factor"])
def test_help_lists_the_rules_with_their_options(cli: Callable, command: str) -> None:
    lines = [line.split() for line in cli(command, "--help").out.splitlines()]
    for rule in RULES:
        told = [words[1:] for words in lines if words[:1] == [rule]][-1]  # the list is the end of the help
        assert [word.partition("=")[0] for word in told] == ([*options_of(rule)] or ["-"])
    assert ["centre=yes", "delta=40", "gain_tolerance=0.0001", "kappa=0.99", "published=no"] in [
        words[1:] for words in lines
    ]


@pytest.mark.parametrize(
    ("rule", "typed", "meant"),
    [
        ("csi", {"centre": "no", "kappa": "0.5", "picks": "5"}, {"centre": False, "kappa": 0.5, "picks": 5}),
        ("kmeans", {"nearest": "No", "sweeps": "0"}, {"nearest": False, "sweeps": 0}),
        ("leverage", {"growth": "4", "ridge": "2"}, {"growth": 4, "ridge": 2.0}),
    ],
)
def test_fit_and_factor_keep_what_was_asked(
    cli: Callable, store: Path, tmp_path: Path, rule: str, typed: dict[str, str], meant: dict[str, Any]
) -> None:
    asked = [word for name, text in typed.items() for word in ("--rule-option", f"{name}={text}")]
    options = ("--basis", 10, "--rows", "0:500", "--rule", rule, *asked, *THREADS)
    assert cli("factor", store, tmp_path / "f", *options).status == 0
    assert cli("fit", store, tmp_path / "m", *options).status == 0
    for kept in (Factor.load(tmp_path / "f"), RidgeModel.load(tmp_path / "m")):
        found = kept.config["settings"]["rule_options"]
        assert found == meant
        assert {name: type(value) for name, value in found.items()} == {n: type(v) for n, v in meant.items()}
    rows = open_table(store).slice(0, 500)
    same = factorize(rows, tmp_path / "p", n_components=10, rule=rule, rule_options=meant, random_state=0)
    assert same.digest == Factor.load(tmp_path / "f").digest


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rule", "csi", "--rule-option", "delta=3"],
         "the rule 'csi' has no option 'delta'; its options are candidates, centre, kappa, picks"),
        (["--rule", "uniform", "--rule-option", "block=3"], "the rule 'uniform' has no option 'block'; it has none"),
        (["--block", 3], "the rule 'few-sweep' has no option 'block'; its options are candidates"),
        (["--rule", "csi", "--rule-option", "centre=maybe"], "--rule-option centre must be yes or no, not 'maybe'"),
        (["--rule", "leverage", "--rule-option", "growth=2.5"], "growth must be a whole number, not '2.5'"),
        (["--rule", "leverage", "--rule-option", "ridge=big"], "ridge must be a number, not 'big'"),
        (["--rule", "leverage", "--rule-option", "ridge=nan"], "ridge = nan is out of range"),
        (["--rule", "sgma", "--rule-option", "eps=2"], "eps = 2.0 is no probability below 1"),
        (["--rule", "sgma", "--rule-option", "pool=deep"], "pool must be 'single', 'split' or 'shared', not 'deep'"),
        (["--rule", "csi", "--kappa", "0.5", "--rule-option", "kappa=1"], "kappa is given twice; give it once"),
        (["--rule", "csi", "--rule-option", "picks=2", "--rule-option", "picks=2"], "picks is given twice"),
        (["--rule", "csi", "--kappa", "3"], "kappa must be a number in [0, 1], not 3.0"),
        (["--rule", "csi-lookahead", "--rule-option", "gain_tolerance=-1"], "gain_tolerance = -1.0 is out of range"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_line_and_nothing_is_made(
    cli: Callable, store: Path, tmp_path: Path, options: list[Any], said: str
) -> None:
    for command in ("fit", "factor"):
        assert said in cli(command, store, tmp_path / "out", *THREADS, *options).error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["centre", "=no", "centre=", ""])
def test_what_is_no_pair_is_wrong_usage(cli: Callable, text: str) -> None:
    ran = cli("factor", "a", "b", "--rule", "csi", "--rule-option", text)
    assert ran.status == 2
    assert "is not NAME=VALUE, such as centre=no" in ran.err


@pytest.mark.parametrize("value", ["no", 0, None])
def test_what_is_true_or_false_is_not_guessed(value: Any) -> None:
    """From Python the text "no" would be true."""
    with pytest.raises(ParameterError, match="centre must be True or False, not"):
        RidgeSettings(rule="csi", rule_options={"centre": value})


def test_options_are_of_rules_by_name() -> None:
    with pytest.raises(ParameterError, match=r"options \(block\) are for rules by name; 'uniform' was made already"):
        RidgeSettings(rule=Uniform(), rule_options={"block": 3})
