"""Statuses of refused requests, and the one shape of every error.

::

    {"error": {"type": "NonFiniteDataError", "message": "X contains NaN: ..."}}
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from dataclasses import replace

from streamkernel.errors import DataError, ParameterError, ResourceLimitError, StreamKernelError
from streamkernel.kinds import kind_of_class
from streamkernel.type_aliases import Fields
from streamkernel.wording import Mention, in_python

# Status: its type, for errors that are no class of `streamkernel.errors`, and its description.
STATUSES: dict[int, tuple[str, str]] = {
    400: ("MalformedBody", "the body does not match its content type"),
    401: ("Unauthorized", "the token is missing or wrong"),
    403: ("Forbidden", "the service may not use this name or location"),
    404: ("NotFound", "no such model, job or address"),
    405: ("MethodNotAllowed", "the address does not support the method"),
    406: ("NotAcceptable", "answers are JSON, NPY or Arrow"),
    408: ("Timeout", "the body arrived too slowly"),
    409: ("Conflict", "the output exists already, or the job has ended"),
    411: ("LengthRequired", "the body needs a Content-Length, or must be sent in chunks"),
    413: ("TooLarge", "the body, its rows or its elements exceed the limits"),
    415: ("UnsupportedMediaType", "bodies are JSON, for predictions also NPY or Arrow, without compression"),
    421: ("UnknownHost", "a service without a token accepts only the host names of its own machine"),
    422: ("DataError", "the model cannot use the rows or parameters; the message names row and column"),
    431: ("HeadersTooLarge", "too many or too large headers or trailers"),
    500: ("InternalError", "an internal error of the service"),
    503: ("Overloaded", "overloaded, too slow, or something cannot be read; try again later"),
}

log = logging.getLogger("streamkernel.service")

# Parameters whose fields have other names.
_FIELDS = {"return_std": "std", "basis_size": "n_components"}

_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[\w.+~@:/-]*[\w/]|(?<![\w.:<])/(?:[\w.+~-]+/?)+")


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind or STATUSES[status][0]


def described(value: object) -> str:
    """What a value of JSON is, for a message."""
    names = {str: "text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def refusal_of(error: StreamKernelError) -> Refused:
    """The HTTP answer to an error of the package."""
    status = 500
    if isinstance(error, (DataError, ParameterError)):
        status = 422
    elif isinstance(error, ResourceLimitError):
        status = 413
    return Refused(status, without_paths(error.worded(in_json)), type(error).__name__)


def internal_error(error: Exception) -> Refused:
    """The HTTP answer to an error of our own code, which is logged with its place."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    log.error("unexpected %s at %s:%s", type(error).__name__, last.filename.rpartition("/")[2], last.lineno)
    return Refused(500, "an internal error of the service; see its log")


def in_json(mention: Mention) -> str:
    """A name of a message as users of HTTP write it: a field of the JSON."""
    name, values = _FIELDS.get(mention.name, mention.name), mention.values
    if mention.kind == "estimator":
        return f'"estimator": "{kind_of_class(name)}"'
    if mention.kind == "switch":
        return f'give "{name}": true'
    if mention.kind != "option" or not values:
        return in_python(replace(mention, name=name))
    return f'"{name}": {json.dumps(values[0])}'


def without_paths(message: str) -> str:
    """A message with every path of this machine shortened to its last name."""
    return _PATH.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], message)


def error_body(kind: str, message: str) -> bytes:
    """The body of every answer that is an error."""
    body: Fields = {"error": {"type": kind, "message": " ".join(message.split())}}
    return json.dumps(body).encode()
