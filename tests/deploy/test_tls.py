"""TLS to a scheduler: the same bits, and one error, soon, for everything that is not as it should be."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed.security import Security

from streamkernel.cli import main
from streamkernel.engine import Session, ThreadExecutor, security
from streamkernel.engine.cluster import connect
from streamkernel.engine.security import check_encrypted, connect_client, tls_security
from streamkernel.errors import ClusterError, ParameterError, SecurityError
from streamkernel.fits import fit_ridge
from streamkernel.settings import RidgeSettings
from streamkernel.table import open_table


def files(folder: Path, role: str = "client") -> dict[str, str]:
    return {
        "ca": str(folder / "ca.pem"), "cert": str(folder / f"{role}.pem"), "key": str(folder / f"{role}-key.pem")
    }  # fmt: skip


def expired(folder: Path, role: str, made: Path) -> dict[str, str]:
    """A certificate of the folder's CA that was valid until yesterday."""
    given = files(folder, role)
    request, certificate = made / f"{role}.csr", made / f"{role}.pem"
    call = ["openssl", "req", "-new", "-key", given["key"], "-subj", f"/CN={role}", "-out", str(request)]
    subprocess.run(call, check=True, capture_output=True)
    sign = ["openssl", "x509", "-req", "-in", str(request), "-CA", given["ca"], "-set_serial", "7", "-days", "-1"]
    call = [*sign, "-CAkey", str(folder / "ca-key.pem"), "-out", str(certificate)]
    subprocess.run(call, check=True, capture_output=True)
    return {**given, "cert": str(certificate)}


@pytest.fixture
def own(tls_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cluster's certificates; none in the environment."""
    for name in ("CA", "CERT", "KEY"):
        monkeypatch.delenv(f"STREAMKERNEL_TLS_{name}", raising=False)
    return Path(tls_cluster.folder) / "tls"


@pytest.fixture
def address(tls_cluster: Any) -> str:
    return str(tls_cluster.environment["STREAMKERNEL_SCHEDULER"])


# Without the search of the defaults: what is looked at here is the way to the workers.
PLAIN = ["--basis", "40", "--kernel", "gaussian", "--metric", "none", "--alpha", "gcv"]


@pytest.fixture(scope="module")
def of_threads(store: Path) -> str:
    """The digest of the fit on threads of this process."""
    settings = RidgeSettings(n_components=40, kernel="gaussian", metric="none", alpha="gcv")
    return fit_ridge(open_table(store), settings, Session(ThreadExecutor(2))).digest


def test_the_same_bits_as_threads(
    own: Path, address: str, store: Path, of_threads: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word for what, file in files(own).items() for word in (f"--tls-{what}", file)]
    command = ["fit", str(store), str(tmp_path / "tls.zarr"), "--scheduler", address, *given, *PLAIN]
    assert main([*command, "--json", "--quiet"]) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["digest"] == of_threads


@pytest.mark.slow
def test_the_environment_names_the_same_and_the_promise_is_kept(
    tls_cluster: Any, own: Path, store: Path, of_threads: str, tmp_path: Path
) -> None:
    """Of workers that have loaded all of the package; in a process of its own, whose children they are not."""
    environment = {**os.environ, **tls_cluster.environment}
    command = [sys.executable, "-m", "streamkernel", "fit", str(store), str(tmp_path / "m"), *PLAIN]
    done = subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["digest"] == of_threads
    assert told["peak_memory_bytes"] <= told["planned_memory_bytes"] < 2 * told["peak_memory_bytes"]


def test_every_connection_is_encrypted(own: Path, address: str) -> None:
    with connect(address, tls_security(**files(own))) as executor:
        workers = executor._client.scheduler_info(n_workers=-1)["workers"]
        assert len(workers) == 2
        for worker, about in workers.items():
            assert worker.startswith("tls://127.0.0.1:")
            assert about["nanny"].startswith("tls://127.0.0.1:")


def test_dasks_own_security_does_as_well(own: Path, address: str) -> None:
    given = files(own)
    theirs = Security(tls_ca_file=given["ca"], tls_client_cert=given["cert"], tls_client_key=given["key"])
    with connect_client(address, theirs) as client:
        assert client.submit(sum, (1, 2)).result() == 3


def test_certificate_of_a_foreign_ca(own: Path, foreign: Path, address: str) -> None:
    theirs = {**files(foreign), "ca": files(own)["ca"]}
    with pytest.raises(SecurityError, match=r"does not accept our certificate.*unknown ca"):
        connect_client(address, tls_security(**theirs))
    with pytest.raises(SecurityError, match=r"its certificate is not accepted here: self-signed.* at ca "):
        connect_client(address, tls_security(**{**files(own), "ca": files(foreign)["ca"]}))


def test_expired_certificate_of_ours(own: Path, address: str, tmp_path: Path) -> None:
    with pytest.raises(SecurityError, match=r"does not accept our certificate.*expired"):
        connect_client(address, tls_security(**expired(own, "client", tmp_path)))


@pytest.fixture
def stale_scheduler(own: Path, tmp_path: Path) -> Iterator[str]:
    """A port whose certificate was valid until yesterday."""
    given = expired(own, "scheduler", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(given["cert"], given["key"])
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            stream, _ = server.accept()
            with stream, pytest.raises(ssl.SSLError):
                context.wrap_socket(stream, server_side=True)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"tls://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)
        assert not thread.is_alive()


def test_expired_certificate_of_the_scheduler(own: Path, stale_scheduler: str) -> None:
    with pytest.raises(SecurityError, match="certificate has expired; look at its dates"):
        connect_client(stale_scheduler, tls_security(**files(own)))


def test_plain_client_at_a_port_with_tls(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(security, "_SILENCE", 0.5)
    plain = address.replace("tls", "tcp")
    assert main(["fit", str(store), str(tmp_path / "m"), "--scheduler", plain, "--quiet"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines
    assert lines == [
        f"error: the scheduler at {plain} speaks TLS; use its tls:// address, with --tls-ca, --tls-cert and --tls-key"
    ]
    assert not (tmp_path / "m").exists()


class _Plain:
    """A port that says `greeting` to whom it accepts, and then what it was told."""

    def __init__(self, greeting: bytes) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.greeting = greeting
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self.server.accept()
            except OSError:
                return
            with stream:
                if self.greeting:
                    stream.sendall(self.greeting)
                stream.settimeout(2)
                try:
                    while stream.recv(1024):
                        pass
                except OSError:
                    pass


@pytest.fixture
def speaking() -> Iterator[_Plain]:
    port = _Plain(b"\x00\x00\x00\x00\x00\x00\x00\x08")  # as Dask begins: how long its first message is
    yield port
    port.server.close()


@pytest.fixture
def silent() -> Iterator[_Plain]:
    port = _Plain(b"")
    yield port
    port.server.close()


def test_tls_client_at_a_plain_port(own: Path, speaking: _Plain) -> None:
    with pytest.raises(SecurityError, match="there is no TLS at that port"):
        connect_client(f"tls://127.0.0.1:{speaking.port}", tls_security(**files(own)))


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_a_port_that_says_nothing(own: Path, silent: _Plain, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "_SILENCE", 0.3)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"):
        connect_client(f"{scheme}://127.0.0.1:{silent.port}", tls_security(**files(own)), timeout=0.5)


def test_nothing_at_the_port(own: Path) -> None:
    # Bound and not listening: nobody else gets the port meanwhile, and whoever calls is refused.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tls://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tls://.*refused"):
            connect_client(address, tls_security(**files(own)), timeout=0.5)


@pytest.mark.parametrize("plain", ["tcp://10.1.2.3:8786", "tcp://scheduler:8786", "ws://10.1.2.3:80", "ucx://[::2]:1"])
def test_plain_addresses_beyond_this_machine_are_refused(plain: str, tmp_path: Path, store: Path,
                                                         capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    with pytest.raises(SecurityError, match=r"run code as its owner; use a tls:// address.*tls\.sh.*insecure=True"):
        connect_client(plain)
    check_encrypted(plain, insecure=True)
    assert main(["fit", str(store), str(tmp_path / "m"), "--scheduler", plain]) == 1
    assert f"error: {plain} is not encrypted" in capsys.readouterr().err


@pytest.mark.parametrize(
    "fine", ["tls://10.1.2.3:8786", "wss://host:443", "tcp://127.0.0.1:1", "tcp://127.8.0.1:1", "tcp://[::1]:8786",
             "tcp://localhost:8786"]
)  # fmt: skip
def test_encrypted_or_of_this_machine(fine: str) -> None:
    check_encrypted(fine)


@pytest.mark.parametrize("odd", ["tcp://127.0.0.1.evil.org:8786", "tcp://localhost.org:1", "tcp://user@127.0.0.1:1"])
def test_names_that_look_like_this_machine(odd: str) -> None:
    with pytest.raises(SecurityError):
        check_encrypted(odd)


@pytest.mark.parametrize("wrong", ["tcp://10.0.0.1", "tcp://:8786", "tcp://host:port", "tcp://host:99999", "tcp://"])
def test_addresses_that_are_none(wrong: str) -> None:
    with pytest.raises(ParameterError, match="is not a scheduler's address"):
        connect_client(wrong)


def test_insecure_on_the_command_line_goes_on_to_the_connection(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> socket.socket:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", refuse)
    plain = "tcp://cluster.example:8786"
    assert main(["fit", str(store), str(tmp_path / "m"), "--scheduler", plain, "--insecure", "--quiet"]) == 1
    assert f"no Dask scheduler answers at {plain}" in capsys.readouterr().err


class TestFiles:
    def test_one_of_three_is_missing(self, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        given = files(own)
        with pytest.raises(ParameterError, match=r"key \(STREAMKERNEL_TLS_KEY\) is not given"):
            tls_security(ca=given["ca"], cert=given["cert"])
        monkeypatch.setenv("STREAMKERNEL_TLS_KEY", given["key"])
        assert tls_security(ca=given["ca"], cert=given["cert"]) is not None

    def test_none_at_all(self, own: Path, address: str) -> None:
        assert tls_security() is None
        with pytest.raises(SecurityError, match=r"needs a CA, a certificate and its key: give tls_security\(\)"):
            connect_client(address)

    def test_not_there(self, own: Path) -> None:
        with pytest.raises(SecurityError, match=r"nowhere\.pem cannot be read \(No such file"):
            tls_security(**{**files(own), "cert": "nowhere.pem"})

    def test_not_pem(self, own: Path, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("not a certificate")
        for what in ("ca", "cert", "key"):
            with pytest.raises(SecurityError, match="PEM format"):
                tls_security(**{**files(own), what: str(tmp_path / "text")})

    def test_key_of_another_certificate(self, own: Path) -> None:
        with pytest.raises(SecurityError, match="are not a certificate and its unencrypted private key"):
            tls_security(**{**files(own), "key": files(own, "worker")["key"]})

    def test_encrypted_key_asks_for_nothing(self, own: Path, tmp_path: Path) -> None:
        locked = tmp_path / "locked.pem"
        call = ["openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", files(own)["key"], "-out", str(locked)]
        subprocess.run(call, check=True, capture_output=True)
        with pytest.raises(SecurityError, match="unencrypted private key"):
            tls_security(**{**files(own), "key": str(locked)})
