"""The settings of a service."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamkernel.errors import ParameterError

JOBS = "/v1/jobs"

_SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """The limits of requests, connections and processes.

    Attributes
    ----------
    body_bytes : largest body in NPY or Arrow, which are read in blocks.
    json_bytes : largest body in JSON, which is held whole.
    rows, elements : most rows, and most rows x columns, of one request.
    request_seconds : time for a body to arrive, with one more second for each `slowest` bytes that have arrived.
    slowest : slowest rate of a body, bytes per second.
    compute_seconds : time from the complete body to the first byte of the answer.
    header_seconds, header_bytes, headers : time for the request line and the headers to arrive; their size and number.
    idle_seconds : time from an answer to the next request on the connection.
    write_seconds : time for a client to read what is sent.
    read_bytes : bytes read from a connection at a time.
    streams : blocks of large bodies that a process predicts at the same time; more wait.
    connections : connections of a process at the same time; more are answered 503.
    memory_bytes, spool_bytes : bytes of bodies and answers of all requests of a process, in memory and in files.
    patience_seconds : time for which a client may be behind before its connection or memory can be taken for another.
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
    """The jobs of a service.

    Parameters
    ----------
    location : folder or URL of the jobs' records.
    scheduler : address of the scheduler that runs jobs; None if jobs can only be read and cancelled.
    tls : files with the CA, the service's certificate and its key, for that address; for None, the environment's.
    insecure : whether the address may be on another machine without encryption.
    roots : folders and URLs below which tables and models may be, in addition to that of the models.
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
    token : token that requests must have; None if they need none.
    hosts : host names that requests to a service without a token may use; None for any. Without this check, a page of
        another site whose name points to 127.0.0.1 could read the models.
    poll_seconds : time between two scans of the models; None for the default of a folder or URL.
    batch_seconds, batch_rows : time for which single rows wait for others, and most rows of a batch.
    threads : number of threads that predict.
    jobs : the jobs; None for a service without jobs.
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
        """A copy with other limits."""
        return replace(self, limits=replace(self.limits, **changes))  # type: ignore[arg-type]


def read_token(path: Path) -> str:
    """The token in a file: its first line.

    Raises
    ------
    ParameterError
        The file cannot be read, or its first line is no token.
    """
    try:
        token = path.read_text(encoding="ascii").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not ASCII text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ParameterError(f"the token file {path} cannot be read: {why}") from None
    if len(token) < _SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise ParameterError(
            f"the first line of {path} is no token: it needs {_SHORTEST_TOKEN} characters or more, without spaces; "
            "openssl rand -hex 32 makes one"
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address of a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
