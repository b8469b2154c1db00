"""What a service is told when it starts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamkernel.errors import ParameterError

__all__ = ["JOBS", "JobsPlace", "Limits", "Settings", "is_loopback", "read_token"]

JOBS = "/v1/jobs"

_SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """Most of everything that one request, or one connection, may take.

    Attributes
    ----------
    body_bytes : of NPY and Arrow, which are read in blocks; json_bytes : of JSON, which is held whole.
    rows, elements : of one request; elements are rows x columns.
    request_seconds : until a request's body must be there, a second more for each `slowest` bytes of it.
    compute_seconds : from there to the first byte of the answer.
    header_seconds, header_bytes, headers : for the request line and the headers; how many.
    idle_seconds : after an answer, until the next request begins.
    write_seconds : for a client to take what waits for it.
    read_bytes : taken off a connection at once.
    streams : blocks of large bodies at work at the same time; more wait. Each process.
    connections : at the same time, each process; more are answered 503.
    memory_bytes, spool_bytes : of bodies and answers of all requests of a process, in memory and in files.
    patience_seconds : for which a client may be behind before it gives way where places or memory are wanted.
    """

    body_bytes: int = 1 << 30
    json_bytes: int = 8 << 20
    rows: int = 10_000_000
    elements: int = 1_000_000_000
    request_seconds: float = 20.0
    slowest: int = 1 << 20
    compute_seconds: float = 120.0
    header_seconds: float = 10.0
    header_bytes: int = 32 << 10
    headers: int = 100
    idle_seconds: float = 30.0
    write_seconds: float = 20.0
    read_bytes: int = 128 << 10
    streams: int = 8
    connections: int = 1024
    memory_bytes: int = 256 << 20
    spool_bytes: int = 16 << 30
    patience_seconds: float = 1.0


@dataclass(frozen=True)
class JobsPlace:
    """Parameters
    ----------
    location : of the records of jobs, a folder or URL.
    scheduler : address that drives them; None where they are only looked at, or cancelled.
    tls : files with the CA, our certificate and its key, for that address; what is None the environment names.
    insecure : whether another machine's address may be unencrypted.
    roots : folders and URLs below which tables and models may be, beside the one of models.
    """

    location: str
    scheduler: str | None = None
    tls: tuple[str | None, str | None, str | None] = (None, None, None)
    insecure: bool = False
    roots: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """Parameters
    ----------
    root : folder or URL of saved models, or of one model.
    token : that requests must bring; None for none.
    hosts : names by which a service without a token may be called; None for any. A page of another site that has its
        name point to 127.0.0.1 would otherwise read what is here.
    poll_seconds : between two looks at the models; None for what suits their place.
    batch_seconds, batch_rows : how long single rows wait for others, and how many are predicted at once.
    threads : that predict.
    jobs : where jobs are, and who drives them; None for a service that knows none.
    """

    root: Path | str
    token: str | None = field(default=None, repr=False)
    hosts: frozenset[str] | None = None
    poll_seconds: float | None = None
    batch_seconds: float = 0.001
    batch_rows: int = 512
    threads: int = 2
    jobs: JobsPlace | None = None
    limits: Limits = field(default_factory=Limits)

    def with_limits(self, **changes: float) -> Settings:
        """The same with other limits."""
        return replace(self, limits=replace(self.limits, **changes))  # type: ignore[arg-type]


def read_token(path: Path) -> str:
    """The token in a file: its first line.

    Raises
    ------
    ParameterError
        The file cannot be read, or what it holds is no token.
    """
    try:
        token = path.read_text(encoding="ascii").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not ASCII text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ParameterError(f"the token file {path} cannot be read: {why}") from None
    if len(token) < _SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise ParameterError(
            f"the first line of {path} is no token: {_SHORTEST_TOKEN} characters or more without spaces are wanted; "
            "openssl rand -hex 32 makes one"
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
