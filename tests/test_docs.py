"""The documents say what is so: their Python runs, their commands parse, their links lead somewhere."""

from __future__ import annotations

import inspect
import os
import re
import shlex
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import data_sets
import messy_tables
import numpy as np
import pytest
from distributed import Client
from pages import TEXTS
from slow_cases import slow_but

import streamkernel as package
from streamkernel import factors, report
from streamkernel.cli.main import main, streamkernel
from streamkernel.fits.gaussian import gaussian as tuning
from streamkernel.fits.gaussian import generalised
from streamkernel.kinds import KINDS, OPTION_SETTINGS, settings_of
from streamkernel.linalg import ridge
from streamkernel.reductions.sums import normal_equations
from streamkernel.selection import RULES, as_rule, options_of
from streamkernel.selection import _picks as picks
from streamkernel.settings import _kernel_choice as searched
from streamkernel.settings.gaussian import DEGREES_ROWS, GaussianSettings
from streamkernel.solvers.generalised.calibration import SHARES
from streamkernel.tuning.gaussian import tune

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *TEXTS]
RUNNABLE = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / name
        for name in (
            "guide.md", "committee.md", "compression.md", "factors.md", "follow.md", "gallery.md", "linear_systems.md",
            "which_method.md", "howto/from_falkon.md", "howto/from_gpytorch.md", "howto/from_scikit_learn.md",
        )
    ),
]  # fmt: skip
# The others make many models, or large ones.
SHORT = [page for page in RUNNABLE if page.stem not in ("guide", "which_method", "gallery", "factors")]
# Pages that begin with nothing: their commands run, too.
WALKED = [ROOT / "docs" / name for name in ("install.md", "tutorial.md")]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[tuple[int, str]]:
    """Line number and text of each fenced block of these languages."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start(2)) + 1, found[2]) for found in _FENCE.finditer(text) if found[1] in languages
    ]


def lines_of(block: str) -> list[list[str]]:
    """Every command line of a shell block, as words."""
    lines = []
    for line in block.replace("\\\n", " ").splitlines():
        # In a console block what has no prompt is output.
        if "$ " in block and not line.startswith("$ "):
            continue
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words:
            lines.append(words)
    return lines


def commands(page: Path) -> list[list[str]]:
    """Every command line of the page's shell blocks, as words."""
    return [words for _, block in blocks(page, "console", "bash", "sh") for words in lines_of(block)]


def of_streamkernel(page: Path) -> list[list[str]]:
    return [words[1:] for words in commands(page) if words[0].rpartition("/")[2] == "streamkernel"]


def write_csv(path: Path, m: int = 4000) -> None:
    """Ten columns x1 ... x10 and y; for species.csv a column of text labels instead of y; for sales.csv any kinds."""
    if path.name == "sales.csv":
        messy_tables.messy(300).rename(columns={"y": "price"}).to_csv(path, index=False)
        return
    # Files that are appended one after another have rows of their own.
    seed = 0 if path.name == "measurements.csv" else crc32(path.name.encode())
    rows = data_sets.friedman(m, 10, 0.5, seed)
    names, target = [f"x{j + 1}" for j in range(10)], rows.y.astype(str)
    if path.name == "species.csv":
        rows, target = data_sets.friedman(1000, 10, 0.5, 0), np.array([])
        target = np.array(["adelie", "chinstrap", "gentoo"])[np.digitize(rows.y, [12.0, 17.0])]
        names.append("species")
    else:
        names.append("y")
    lines = [",".join([*map(str, row), label]) for row, label in zip(rows.X, target, strict=True)]
    path.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")


def search_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hyper-parameters are searched on fewer rows: what is tested is that a page runs, not what it finds."""
    monkeypatch.setitem(GaussianSettings.SAMPLE_ROWS, "evidence", 400)
    monkeypatch.setattr(searched, "METRIC_ROWS", 800)
    monkeypatch.setattr(tuning, "SAMPLE_BASIS", 50)
    monkeypatch.setattr(generalised, "SAMPLE_BASIS", 50)


@pytest.mark.parametrize("page", slow_but(SHORT, RUNNABLE), ids=name_of)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    search_less(monkeypatch)
    # A page's cluster has its workers in this process: those of their own are tested where clusters are.
    monkeypatch.setattr("dask.distributed.Client", partial(Client, processes=False))
    # Nor has a reader's process the gigabytes that other tests have left in this one, and in clusters that they share.
    monkeypatch.setattr("streamkernel.estimators.base.resident_bytes", lambda: 500_000_000)
    for name in set(re.findall(r"\b[\w-]+\.csv\b", page.read_text(encoding="utf-8"))):
        write_csv(tmp_path / name)
    python = blocks(page, "python")
    # What the page's Python reads may have been ingested by a command above it, if not by itself.
    own = set(re.findall(r"\bingest\([^)]*?,\s*[\"']([^\"']+)", "\n".join(source for _, source in python)))
    for words in of_streamkernel(page):
        if words[0] == "ingest" and os.path.exists(words[1]) and words[2] not in own:
            assert main([*words, "--quiet"]) == 0
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, source in python:
        execute(page, line, source, namespace)
    assert_pictures(page, tmp_path)


def execute(page: Path, line: int, source: str, namespace: dict[str, Any]) -> None:
    # As many empty lines before it as the page has, so that a traceback names the page's own line.
    exec(compile("\n" * (line - 1) + source, str(page), "exec"), namespace)


def pictures(page: Path) -> set[str]:
    return set(re.findall(r"\]\((?:\.\./)?pictures/([^)]+)\)", page.read_text(encoding="utf-8")))


def assert_pictures(page: Path, folder: Path) -> None:
    """The page's Python has drawn what the page shows."""
    for name in pictures(page):
        assert (folder / name).read_bytes().startswith(b"\x89PNG"), name


def test_every_picture_is_on_a_page() -> None:
    shown = set().union(*map(pictures, PAGES))
    assert shown == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}


def walk(page: Path, monkeypatch: pytest.MonkeyPatch, bucket: str = "") -> None:
    """Run the page's Python and its commands in their order, on threads."""
    monkeypatch.setenv("STREAMKERNEL_SCHEDULER", "threads")
    search_less(monkeypatch)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, block in blocks(page, "python", "console"):
        source = block.replace("s3://bucket", bucket)
        if source.startswith("$ "):
            for words in lines_of(source):
                if words[0] == "streamkernel" and not words[1].startswith("-"):
                    assert main([*words[1:], "--quiet"]) == 0, words
        else:
            execute(page, line, source, namespace)


@pytest.mark.parametrize("page", slow_but(WALKED[1:], WALKED), ids=name_of)
def test_the_page_runs_from_top_to_bottom(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    walk(page, monkeypatch)
    assert_pictures(page, tmp_path)


@pytest.mark.slow
def test_the_page_of_buckets_runs(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "measurements.csv", 1500)
    walk(ROOT / "docs" / "howto" / "s3.md", monkeypatch, s3)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_parse(page: Path) -> None:
    for words in of_streamkernel(page):
        if words[0].startswith("-"):
            continue
        command = streamkernel.get_command(None, words[0])
        assert command is not None, words
        # Raises a usage error for what the command line would refuse; nothing is run.
        with command.make_context(words[0], words[1:]) as context:
            if "estimator" in context.params:
                check_settings(context.params)


def check_settings(params: dict[str, Any]) -> None:
    """Make the settings that the options of a fit describe; stores that they name are not opened."""
    names = {name for kind in KINDS.values() for name in kind.options} - {"validation", "queries", "rule_options"}
    given = {OPTION_SETTINGS.get(name, name): value for name, value in params.items()}
    settings_of(KINDS[params["estimator"]], {name: given[name] for name in names & given.keys()})


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


def test_numbers_in_methods_are_those_of_the_code() -> None:
    text = " ".join((ROOT / "docs" / "methods.md").read_text(encoding="utf-8").split())
    draw = as_rule("few-sweep").draw  # type: ignore[attr-defined]
    sizes = ((10, 10**9), (10**5, 2**16))
    few, many = (
        SimpleNamespace(n=n, table=SimpleNamespace(n_rows=rows, counted=rows), in_metric=False, of_rows=None)
        for n, rows in sizes
    )
    rows = [round(draw.scoring_rows(problem, 1000) / 1000) for problem in (many, few)]
    pool = [draw.pool_size(problem, 100, 0) // 100 for problem in (many, few)]
    assert "uniform, {} to {} per pick".format(*pool) in text
    assert "on {} to {} uniform rows per basis function, at least {:,}".format(*rows, draw.least_scoring) in text
    assert f"rho is {picks.FIRST_RHO} times the mean" in text
    bounds = normal_equations._ROUNDING, normal_equations._ROOT_ROUNDING
    assert "<= max({:.0e} q_t, {:.0e} r)".format(*bounds).replace("e-0", "e-") in text
    assert f"argmin GCV_{ridge._INFLATION}" in text
    sampled, rounds = GaussianSettings.SAMPLE_ROWS["evidence"], inspect.signature(tune).parameters
    assert f"FITC evidence of {sampled:,} rows, drawn with the seed, with {tuning.SAMPLE_BASIS} basis points" in text
    assert f"at most {rounds['rounds'].default} rounds of {rounds['evaluations'].default} evaluations" in text
    assert rounds["objective"].default == "fitc"
    assert f"at most {tuning.FULL_EVALUATIONS} evaluations, two sweeps each" in text
    assert GaussianSettings().approximation == "fitc"
    assert f"estimated from up to {DEGREES_ROWS:,} rows" in text
    assert f"1 and 1/{1 / min(SHARES):.0f} under which up to 2,000" in text
    assert len(SHARES) == 7


def test_messages_in_the_questions_are_those_of_reliability() -> None:
    known = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "faq.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(told) > 20
    for message in told:
        # Dots stand for what is left out.
        assert all(part in known for part in message.split("...")), message


METHODS = ROOT / "docs" / "methods.md"


def rows_of(heading: str) -> list[list[str]]:
    """Cells of the table below a heading of methods.md, a list a row."""
    section = METHODS.read_text(encoding="utf-8").split(f"# {heading}\n")[1].split("\n#")[0]
    return [line.strip("| ").split(" | ") for line in re.findall(r"^\|.*\|$", section, re.MULTILINE)][2:]


def test_options_of_the_rules_in_methods_are_those_of_the_code() -> None:
    told = {(rule.strip("`"), name.strip("`")): default for rule, name, _, default in rows_of("Options of the rules")}
    known = {(rule, name): option for rule in RULES for name, option in options_of(rule).items()}
    assert list(told) == list(known)
    for which, option in known.items():
        if option.default is not None:
            assert told[which] == {True: "yes", False: "no"}.get(option.default, str(option.default)), which


def test_files_that_contributing_names_exist() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## To add")[1].split("\n## ")[0]
    named = re.findall(r"`((?:\w+/)*\w*(?:/|\.py|\.md))`", table)
    assert len(named) > 20
    for name in named:
        assert any((place / name).exists() for place in (ROOT, ROOT / "streamkernel")), name


def test_names_in_methods_exist() -> None:
    public = {*package.__all__, *factors.__all__, *report.__all__}
    named = {
        name for cells in rows_of("Methods that exist") for name in re.findall(r"`([A-Za-z_]\w+)(?:\.\w+)?`", cells[0])
    }
    assert {"KernelRidge", "factorize", "Nystroem", "KernelPCA", "kernel_operator", "nearest_neighbours"} <= named
    assert named <= public
    reductions = [name for cells in rows_of("Reductions") for name in re.findall(r"`(\w+)`", cells[0])]
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "streamkernel").rglob("*.py"))
    # Bases of reductions have the type variable Result; the others name their result.
    bases = "|".join(["Reduction", *re.findall(r"^class (\w+)\(\w+\[Result\]\)", source, re.MULTILINE)])
    defined = re.findall(rf"^class (\w+)\((?:\w+, )?(?:{bases})\[(?!Result\])", source, re.MULTILINE)
    # A private base is none of them, and its classes are.
    private = "|".join(name for name in defined if name.startswith("_"))
    defined += re.findall(rf"^class (\w+)\((?:{private})\)", source, re.MULTILINE) if private else []
    assert sorted(reductions) == sorted({name for name in defined if not name.startswith("_")} - {"Collect"})
