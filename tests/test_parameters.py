"""Each parameter is stated once, in the settings; constructors, commands, JSON schema and documentation follow.

``python tests/test_parameters.py`` writes docs/parameters.md anew.
"""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import click
import pytest
from checkout import ROOT, with_this_package

from streamkernel.cli.grouped_help import SectionOption
from streamkernel.cli.main import main, streamkernel
from streamkernel.errors import ParameterError
from streamkernel.fits.compression.compress import compress
from streamkernel.kinds import KINDS, OPTION_SETTINGS, PREDICTORS
from streamkernel.service.job_schemas import JobRequest
from streamkernel.settings.compression import CompressionSettings
from streamkernel.settings.parameter import Parameter, parameters_in

# Parameters of ridge models that are left to the fit, as it chooses them for few rows.
PLAIN = {"kernel": "gaussian", "metric": "none", "alpha": "gcv", "C": 1.0}

PAGE = ROOT / "docs" / "parameters.md"

# Parameters of the run, which are no settings, and the one that scikit-learn names.
OF_RUN = {"memory_limit", "client", "progress"}
SCIKIT_LEARN = {"random_state": "seed"}
# The size of the result has scikit-learn's name there, and the size of the basis another one.
RESULT = {
    "n_components": "component_count",
    "basis_size": "n_components",
    "delta": "bound_delta",
    "alpha": "inverse_alpha",
}

EACH = [(kind.name, name) for kind in KINDS.values() for name in parameters_in(kind.settings)]


def stated(kind: str, name: str) -> tuple[Parameter, Any]:
    return parameters_in(KINDS[kind].settings)[name]


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_each_is_a_sentence_and_its_default_is_in_range(kind: str, name: str) -> None:
    parameter, default = stated(kind, name)
    assert re.fullmatch(r"[A-Za-z].*[^.]\.", parameter.help), parameter.help
    parameter.check(name, default)
    if parameter.checked and parameter.words:
        with pytest.raises(ParameterError, match=rf"^{name} must be .*, not 'no such word'$") as caught:
            parameter.check(name, "no such word")
        assert (caught.value.parameter, caught.value.value) == (name, "no such word")


@pytest.mark.parametrize("kind", KINDS)
def test_constructors_have_the_names_and_defaults_of_the_settings(kind: str) -> None:
    found = KINDS[kind]
    renamed = SCIKIT_LEARN | (RESULT if "component_count" in found.options else {})
    constructor = {
        renamed.get(name, name): {} if name == "rule_options" else parameter.default
        for name, parameter in inspect.signature(found.estimator).parameters.items()
        if name not in OF_RUN
    }
    settings = {name: default for name, (_, default) in parameters_in(found.settings).items()}
    # A generalised process without a constant is of the command line only.
    assert settings.keys() - constructor.keys() <= {*found.settings.UNUSED, "fit_intercept"}
    assert constructor == {name: settings[name] for name in constructor}


@pytest.mark.parametrize("kind", [*PREDICTORS, "nystroem", "kernel-pca"])
def test_the_record_of_the_settings_has_each_that_is_stored(kind: str) -> None:
    settings = KINDS[kind].settings
    stored = {name for name, (parameter, _) in parameters_in(settings).items() if parameter.stored}
    assert settings.RECORD.fields().keys() - {"queries"} == stored
    left = {name for name in PLAIN if name in parameters_in(settings) and parameters_in(settings)[name][1] is None}
    chosen = settings(**{name: PLAIN[name] for name in left})
    assert chosen.to_record().to_config() == chosen.to_config()
    # The bounds and the words of each parameter are values that its record takes, too.
    for name, (parameter, _) in parameters_in(settings).items():
        if name not in stored or parameter.kind not in (int, float, str):
            continue
        values = [*parameter.words, *(value for value in (parameter.least, parameter.most) if math.isfinite(value))]
        # What is left to the fit is not stored: a model has what was chosen.
        for value in [None] * (parameter.optional and name not in PLAIN) + values:
            told = {**chosen.to_config(), name: parameter.plain(value)}
            assert getattr(settings.RECORD.from_config(told), name) == value, name


@pytest.mark.parametrize("kind", PREDICTORS)
def test_docstrings_have_an_entry_for_each_parameter_with_its_default(kind: str) -> None:
    estimator = PREDICTORS[kind].estimator
    text = inspect.getdoc(estimator) or ""
    if refers := re.search(r"Parameters and\s+attributes are those of\s+`(\w+)`", text):
        referred = next(each.estimator for each in PREDICTORS.values() if each.estimator.__name__ == refers[1])
        text = f"{text}\nAttributes\n{inspect.getdoc(referred)}"
    parts = text.split("Parameters\n----------\n")[1:]
    section = "\n".join(part.partition("\nAttributes\n")[0] for part in parts)
    entries = {}
    for names, rest in re.findall(r"^([A-Za-z_0-9, ]+) : (.*)$", section, re.MULTILINE):
        entries |= dict.fromkeys(names.split(", "), rest)
    for name, parameter in inspect.signature(estimator).parameters.items():
        assert name in entries, name
        told = entries[name].partition("default ")[2]
        if told and " and " not in told:
            assert told == {"1e-06": "1e-6"}.get(shown := _shown(parameter.default), shown), name


def _shown(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else f"{default:g}" if type(default) is float else str(default)


@pytest.mark.parametrize("command", ["fit", "plan", "submit"])
def test_commands_have_an_option_for_each(command: str) -> None:
    found = streamkernel.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    options = {option: each for each in found.params if isinstance(each, click.Option) for option in each.opts}
    for kind, name in EACH:
        parameter = stated(kind, name)[0]
        if parameter.flag is None:
            continue
        option = options["--" + (parameter.flag or name).replace("_", "-")]
        assert isinstance(option, SectionOption)
        # The value is found under this name; click makes small letters of a flag that is not named.
        assert OPTION_SETTINGS.get(str(option.name), option.name) == name
        # The settings have the default.
        assert option.default is None or option.default is False
        if isinstance(option.type, click.Choice):
            assert set(parameter.words) <= set(option.type.choices)
        if name in KINDS[kind].settings.UNUSED:
            assert kind not in option.by_estimator
        else:
            assert option.by_estimator[kind].startswith(parameter.help)


def test_compress_has_an_argument_and_an_option_for_each_of_its_settings() -> None:
    stated = parameters_in(CompressionSettings)
    arguments = inspect.signature(compress).parameters
    docstring = inspect.getdoc(compress) or ""
    command = streamkernel.get_command(None, "compress")  # type: ignore[arg-type]
    assert command is not None
    options = {option for each in command.params if isinstance(each, click.Option) for option in each.opts}
    for name, (parameter, default) in stated.items():
        parameter.check(name, default)
        if name in CompressionSettings.UNUSED:
            continue
        assert re.fullmatch(r"[A-Za-z].*[^.]\.", parameter.help), parameter.help
        argument = arguments["random_state" if name == "seed" else name]
        assert argument.default in (default, None) or name == "seed"
        assert re.search(rf"\b{argument.name}\b", docstring.partition("Raises")[0])
        if parameter.flag is not None:
            assert "--" + (parameter.flag or name).replace("_", "-") in options


def sections(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, set[str]]:
    """The flags of each section of a help text."""
    assert main([*arguments]) == 0
    found: dict[str, set[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if re.fullmatch(r"[A-Z].*:", line):
            title = line[:-1]
        elif flag := re.match(r"  (?:-h, )?(--[\w-]+)", line):
            found.setdefault(title, set()).add(flag[1])
    return found


def test_help_has_sections(capsys: pytest.CaptureFixture[str]) -> None:
    found = sections(capsys, "fit", "--help")
    assert [*found][:4] == ["Estimator", "Kernel", "Basis and rule", "Rows"]
    assert [*found][-2:] == ["Machine", "Output"]
    assert {"--alpha", "--solver"} == found["Options of ridge and ridge-classifier"]
    assert {"--ard", "--signal-variance", "--tune"} == found["Options of gp, gp-classifier, poisson and committee"]
    assert max(map(len, found.values())) < 20


@pytest.mark.parametrize("arguments", [("--estimator", "gp", "--help"), ("--help", "--estimator=gp")])
def test_help_about_one_estimator_lists_its_options_only(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    listed = set().union(*sections(capsys, "fit", *arguments).values())
    assert {"--noise-variance", "--basis", "--rule", "--memory", "--approximation"} <= listed
    assert not {"--alpha", "--variant", "--queries", "--newton-tol"} & listed


def test_help_about_matching_pursuit_leaves_out_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--estimator", "kmp", "--help"]) == 0
    told = capsys.readouterr().out
    assert "--variant" in told
    assert "--rule" not in told
    assert "rpcholesky" not in told


def test_the_schema_of_jobs_has_each() -> None:
    options = JobRequest.model_json_schema()["properties"]["options"]
    assert options["properties"].keys() == {name for _, name in EACH} - {"queries"}
    assert options["properties"]["shrinkage"] == {
        "title": "Of kmp, kmp-classifier", "description": stated("kmp", "shrinkage")[0].help, "default": 1.0,
        "type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0,
    }  # fmt: skip
    assert options["properties"]["alpha"]["anyOf"] == [
        {"enum": ["gcv", "cv"]},
        {"type": "number", "minimum": 0.0},
        {"type": "null"},
    ]


def page() -> str:
    """The page, from the settings."""
    lines = [
        "# Parameters",
        "",
        "The parameters of a fit are the same in Python, on the command line and in the JSON of a job; only `seed` is",
        "`random_state` in Python. `python tests/test_parameters.py` writes this page from the classes of settings.",
        "If an estimator has a parameter of two classes, the later class on this page counts.",
    ]
    classes: dict[type, list[str]] = {}
    for kind in KINDS.values():
        for each in reversed(kind.settings.__mro__):
            if hasattr(each, "__dataclass_fields__"):
                classes.setdefault(each, []).append(f"`{kind.name}`")
    # Of a command that fits nothing, but chooses a basis, too.
    classes[CompressionSettings] = ["the command `compress` and the function of this name, beside `BasisParameters`"]
    for each, kinds in classes.items():
        names = "all estimators" if len(kinds) == len(KINDS) else ", ".join(kinds)
        # A class that leaves the meaning to its subclasses states nothing for a reader.
        own = {name for name in inspect.get_annotations(each) if name in parameters_in(each)}
        own = {name for name in own if parameters_in(each)[name][0].help}
        if not own:
            continue
        lines += ["", f"## {each.__name__}", "", f"Of {names}.", ""]
        lines += ["| parameter | command line | values | default | meaning |", "|---|---|---|---|---|"]
        for name, (parameter, default) in parameters_in(each).items():
            if name not in own:
                continue
            flag = "" if parameter.flag is None else f"`--{(parameter.flag or name).replace('_', '-')}`"
            stated_here = parameter.kind in (float, int, bool, str, list) or parameter.words
            values = parameter.values if stated_here else ""
            if name == "kernel":
                values = "a name, in Python a `Kernel`, too"
            shown = parameter.default_words or ("none" if default is None or default == {} else f"`{default}`")
            more = " [methods.md](methods.md#rules) tells of each." if name == "rule" else ""
            lines.append(f"| `{name}` | {flag} | {values} | {shown} | {parameter.help}{more} |")
    return "\n".join(lines) + "\n"


def test_the_page_is_that_of_the_settings() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python tests/test_parameters.py"


if __name__ == "__main__":
    with_this_package()
    PAGE.write_text(page(), encoding="utf-8")
