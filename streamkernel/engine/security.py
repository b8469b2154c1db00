"""Access to a scheduler: encrypted addresses, certificates, and the checks before anything is sent.

A Dask port runs any code that it receives (CVE-2021-42343). Beyond this machine it is used over TLS with certificates
on both sides, or only if the user states that the network is trusted (docs/reliability.md). Dask retries a refused
handshake until its timeout, and then reports that nothing answered. Therefore one handshake is made here first, whose
error gives the reason.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import ssl
import time
from pathlib import Path

from distributed import Client
from distributed.security import Security

from streamkernel.errors import ClusterError, ParameterError, SecurityError
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import call, option

_ENVIRONMENT = {"ca": "STREAMKERNEL_TLS_CA", "cert": "STREAMKERNEL_TLS_CERT", "key": "STREAMKERNEL_TLS_KEY"}
_ENCRYPTED = ("tls", "wss")
_SILENCE = 3.0  # seconds; a Dask scheduler speaks first, a TLS port never does
_MAKE = "deploy/tls.sh makes them"


def tls_security(ca: str | None = None, cert: str | None = None, key: str | None = None) -> Security | None:
    """The certificates that a client of a ``tls://`` scheduler presents and accepts.

    Parameters
    ----------
    ca : file with the certificates of the certificate authorities, PEM.
    cert, key : this client's certificate and private key, PEM.
        Each defaults to the file that STREAMKERNEL_TLS_CA, STREAMKERNEL_TLS_CERT or STREAMKERNEL_TLS_KEY names.

    Returns
    -------
    Security
        Also for ``distributed.Client``; None where no file is named anywhere.

    Raises
    ------
    ParameterError
        One of the three is missing.
    SecurityError
        A file cannot be read, is not PEM, or the key is not the certificate's.
    """
    named = {"ca": ca, "cert": cert, "key": key}
    files = {what: given or os.environ.get(_ENVIRONMENT[what]) or "" for what, given in named.items()}
    missing = [what for what, file in files.items() if not file]
    if len(missing) == len(files):
        return None
    if missing:
        lacking = " and ".join(f"{option(what)} ({_ENVIRONMENT[what]})" for what in missing)
        raise ParameterError(f"TLS needs a CA, a certificate and its key: {lacking} is not given; {_MAKE}")
    _check_files(**files)
    return Security(
        require_encryption=True, tls_ca_file=files["ca"], tls_client_cert=files["cert"], tls_client_key=files["key"]
    )


def _check_files(ca: str, cert: str, key: str) -> None:
    for file in (ca, cert, key):
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise SecurityError(f"the TLS file {file} cannot be read ({error.strerror}); {_MAKE}") from error
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError as error:
        raise SecurityError(f"{ca} holds no certificate of a CA in PEM format; {_MAKE}") from error
    try:
        # An encrypted key would ask for its password on the terminal, which a service does not have.
        context.load_cert_chain(cert, key, password=lambda: b"")
    except (ssl.SSLError, ValueError) as error:
        raise SecurityError(
            f"{cert} and {key} are not a certificate and its unencrypted private key in PEM format; {_MAKE}"
        ) from error


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.partition("://")[2].rstrip("/").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ParameterError(f"{address!r} is not a scheduler's address, such as tls://host:8786")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    # Names are not looked up: the lookup may give another address when the connection is made.
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_encrypted(address: str, *, insecure: bool = False) -> None:
    """Refuse an address that is neither encrypted nor on this machine.

    Raises
    ------
    SecurityError
        The address is neither, and `insecure` does not state that the network is trusted.
    """
    scheme = address.partition("://")[0]
    if scheme in _ENCRYPTED or scheme == "inproc" or insecure or _is_loopback(_host_and_port(address)[0]):
        return
    raise SecurityError(
        f"{address} is not encrypted and not on this machine: whoever reaches a Dask port can run code as its owner; "
        f"use a tls:// address with certificates (deploy/tls.sh makes them), or give {option('insecure', True)} if "
        "everybody on that network may"
    )


def connect_client(
    address: str,
    security: Security | None = None,
    *,
    insecure: bool = False,
    timeout: float = 10.0,
    **options: Unchecked,
) -> Client:
    """A Dask client of the scheduler at `address`, or one error with the reason.

    Parameters
    ----------
    address : ``tls://host:port``, or ``tcp://host:port`` on this machine.
    security : result of `tls_security`, or any of Dask's; default the files in the environment, else Dask's
        configuration.
    insecure : allow unencrypted connections to other machines.
    timeout : seconds to wait for an answer.
    options : options of ``distributed.Client``.

    Raises
    ------
    SecurityError
        The address must be encrypted and is not, the other end has no TLS, or one side refuses a certificate.
    ClusterError
        No Dask scheduler answers.
    """
    check_encrypted(address, insecure=insecure)
    if address.partition("://")[0] not in _ENCRYPTED:
        if address.startswith("tcp://"):
            _greet(address, None, timeout)
        security = None
    else:
        security = security or tls_security() or Security()
        files = security.get_tls_config_for_role("client")
        if not files["ca_file"] or not files["cert"]:
            raise SecurityError(
                f"{address} needs a CA, a certificate and its key: give {call('tls_security')}, or name "
                f"them in {', '.join(_ENVIRONMENT.values())}; {_MAKE}"
            )
        if address.startswith("tls://"):
            _greet(address, security.get_connection_args("client")["ssl_context"], timeout)
    try:
        return Client(address, security=security, timeout=timeout, **options)
    except (OSError, TimeoutError, ValueError) as error:
        raise _nobody(address, error) from error


def _nobody(address: str, error: Exception | str) -> ClusterError:
    return ClusterError(f"no Dask scheduler answers at {address} ({error}); look at the address and that it is running")


def _greet(address: str, context: ssl.SSLContext | None, timeout: float) -> None:
    """Wait for the first byte that a Dask scheduler sends to a client it accepts.

    Under TLS 1.3 a client sees only at this read that its own certificate was refused.
    """
    host, port = _host_and_port(address)
    deadline = time.monotonic() + timeout
    while True:
        try:
            stream = socket.create_connection((host, port), timeout=timeout)
            break
        except OSError as error:
            # Retry like Dask's own client: the scheduler may be starting. A wrong name will not become right.
            if isinstance(error, socket.gaierror) or time.monotonic() >= deadline:
                raise _nobody(address, error) from error
            time.sleep(0.2)
    with contextlib.closing(stream):
        try:
            if context is None:
                _first_byte(stream, address, timeout)
            else:
                with context.wrap_socket(stream, server_hostname=host) as encrypted:
                    _first_byte(encrypted, address, timeout)
        except SecurityError:
            raise
        except ssl.SSLError as error:
            raise _refused(address, error) from error
        except OSError as error:
            raise _nobody(address, error) from error


def _first_byte(stream: socket.socket, address: str, timeout: float) -> None:
    encrypted = isinstance(stream, ssl.SSLSocket)
    stream.settimeout(timeout if encrypted else min(_SILENCE, timeout))
    try:
        if stream.recv(1):
            return
    except TimeoutError:
        if not encrypted and _speaks_tls(address):
            raise SecurityError(
                f"the scheduler at {address} speaks TLS; use its tls:// address, with {call('tls_security')}"
            ) from None
        raise _nobody(address, f"it was silent for {stream.gettimeout():g} s") from None
    raise _nobody(address, "it closed the connection")


def _speaks_tls(address: str) -> bool:
    context = ssl.create_default_context()
    # No certificate is checked, because nothing is sent: the test is only whether a handshake begins.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(_host_and_port(address), timeout=_SILENCE) as stream:
            context.wrap_socket(stream).close()
    except OSError:
        return False
    return True


def _refused(address: str, error: ssl.SSLError) -> SecurityError:
    """The error for the user, from OpenSSL's reason."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why, out = (
            f"its certificate is not accepted here: {error.verify_message}",
            f"look at its dates and at {option('ca')}",
        )
    elif error.reason and "ALERT" in error.reason:
        why = f"it does not accept our certificate ({_words(error)})"
        out = f"look at the dates of {option('cert')}, and that the scheduler's CA signed it"
    elif error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING"):
        why, out = "there is no TLS at that port", "start the scheduler with the protocol tls and its certificates"
    else:
        why, out = f"the TLS handshake failed ({_words(error)})", "look at the certificates of both sides"
    return SecurityError(f"no connection to {address}: {why}; {out} (deploy/tls.sh makes certificates)")


def _words(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
