"""deploy/tls.sh: what it makes, and what it refuses."""

from __future__ import annotations

import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "tls.sh"
ROLES = ["scheduler", "worker", "client", "service"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, check=False)


def shown(certificate: Path, *what: str) -> str:
    call = ["openssl", "x509", "-in", str(certificate), "-noout", *what]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "tls"
    done = run(folder, "--host", "scheduler.example", "--host", "10.0.0.5", "--host", "fd00::5", "--days", 30)
    assert done.returncode == 0, done.stderr
    return folder


def test_keys_are_their_owners_alone(made: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in made.iterdir()}
    names = {name for role in ["ca", *ROLES] for name in (f"{role}.pem", f"{role}-key.pem")}
    assert modes == {name: 0o600 if name.endswith("-key.pem") else 0o644 for name in names}
    assert made.stat().st_mode & 0o777 == 0o700


def test_certificates_are_of_the_ca_and_strict(made: Path) -> None:
    files = [str(made / f"{role}.pem") for role in ROLES]
    call = ["openssl", "verify", "-x509_strict", "-CAfile", str(made / "ca.pem"), *files]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{file}: OK" for file in files]


def test_names_and_uses(made: Path) -> None:
    names = shown(made / "scheduler.pem", "-ext", "subjectAltName")
    for name in ("DNS:localhost", "IP Address:127.0.0.1", "DNS:scheduler.example", "IP Address:10.0.0.5",
                 "IP Address:FD00:0:0:0:0:0:0:5"):  # fmt: skip
        assert name in names
    assert "Server" in shown(made / "service.pem", "-ext", "extendedKeyUsage")
    # With a client's certificate nobody can pose as the scheduler.
    assert "Server" not in shown(made / "client.pem", "-ext", "extendedKeyUsage")


def test_days(made: Path) -> None:
    for role in ["ca", *ROLES]:
        end: Any = ssl.cert_time_to_seconds(shown(made / f"{role}.pem", "-enddate").strip().removeprefix("notAfter="))
        assert 29.9 < (end - datetime.now(UTC).timestamp()) / 86400 < 30.1


def test_nothing_is_overwritten(made: Path) -> None:
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    done = run(made)
    assert done.returncode == 1
    assert "ca.pem exists; nothing is overwritten" in done.stderr
    assert run(made, "--add", "worker").returncode == 1
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before


def test_one_more_of_the_same_ca(tmp_path: Path) -> None:
    assert run(tmp_path / "tls").returncode == 0
    assert run(tmp_path / "tls", "--add", "client-anna").returncode == 0
    call = ["openssl", "verify", "-CAfile", str(tmp_path / "tls" / "ca.pem"), str(tmp_path / "tls" / "client-anna.pem")]
    assert subprocess.run(call, capture_output=True, check=False).returncode == 0
    assert (tmp_path / "tls" / "client-anna-key.pem").stat().st_mode & 0o777 == 0o600
    assert "Server" not in shown(tmp_path / "tls" / "client-anna.pem", "-ext", "extendedKeyUsage")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name the folder"),
        (["{}", "--days", "0"], "--days must be"),
        (["{}", "--days", "1; touch x"], "--days must be"),
        (["{}", "--host", "a,DNS:evil.example"], "neither a name nor an address"),
        (["{}", "--host", "a\nb"], "neither a name nor an address"),
        (["{}", "--host", "999.1.1.1"], "openssl failed"),
        (["{}", "--host"], "needs a value"),
        (["{}", "--add", "worker"], "--add needs the CA"),
        (["{}", "--add", "../worker"], "--add must be a name"),
        (["{}", "--add", "ca"], "that name is taken"),
        (["{}", "other"], "one folder"),
        (["{}", "--hosts", "a"], "no option --hosts"),
    ],
)
def test_what_is_refused_leaves_nothing(arguments: list[str], told: str, tmp_path: Path) -> None:
    done = run(*(argument.format(tmp_path / "tls") for argument in arguments))
    assert done.returncode == 1
    assert told in done.stderr
    assert not list(tmp_path.iterdir())
