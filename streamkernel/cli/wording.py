"""The command line's words for the parameters, functions and estimators that a message names."""

from __future__ import annotations

import shlex
from importlib import import_module

from streamkernel.errors import StreamKernelError, StreamKernelWarning
from streamkernel.wording import Mention

# Parameters whose flags have other names, or that are no flags.
FLAGS = {
    "n_components": "--basis",
    "n": "--basis",
    "basis_size": "--basis",
    "component_count": "--components",
    "fit_intercept": "--intercept",
    "random_state": "--seed",
    "memory_limit": "--memory",
    "groups": "--group",
    "return_std": "--std",
    "rule_options": "--rule-option",
    "address": "--scheduler",
    "client": "--scheduler",
    "ca": "--tls-ca",
    "cert": "--tls-cert",
    "key": "--tls-key",
}

# Flags of False that are no --no-...
OPPOSITES = {"--sparse": "--dense"}

# Functions and methods of Python, and the commands that do the same.
COMMANDS = {
    "ingest": "streamkernel ingest",
    "append_rows": "streamkernel ingest",
    "factorize": "streamkernel factor",
    "compress": "streamkernel compress",
    "fit": "streamkernel fit",
    "predict": "streamkernel predict",
    "transform": "streamkernel transform",
    "calibrate": "streamkernel calibrate",
    "draw_png": "streamkernel report --png",
    "update_model": "streamkernel update",
    "session.jobs": "streamkernel jobs",
    "tls_security": "--tls-ca, --tls-cert and --tls-key",
}


def in_flags(mention: Mention) -> str:
    """A name as users of the command line write it."""
    if mention.kind == "call":
        return " ".join([COMMANDS.get(mention.name, mention.name), *map(_flag, mention.values)])
    if mention.kind in ("estimator", "help"):
        name = _kind(mention.name)
        return f"streamkernel fit --estimator {name} --help" if mention.kind == "help" else f"--estimator {name}"
    flag, values = _flag(mention.name), mention.values
    if mention.kind == "switch":
        return f"give {flag}"
    if values and isinstance(values[0], bool):
        return flag if values[0] else OPPOSITES.get(flag, flag.replace("--", "--no-", 1))
    # A flag that may be repeated has one value; a name with spaces needs quotes.
    given = values[0] if values and isinstance(values[0], list) else values
    return " ".join(f"{flag} {shlex.quote(str(value))}" for value in given) or flag


def text_of(error: object) -> str:
    """The text of an error or a warning, in the words of the command line."""
    return error.worded(in_flags) if isinstance(error, (StreamKernelError, StreamKernelWarning)) else str(error)


def _flag(name: str) -> str:
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def _kind(name: str) -> str:
    # A command that fits nothing has not loaded the estimators, and its errors seldom name one.
    kind: str = import_module("streamkernel.kinds").kind_of_class(name)
    return kind
