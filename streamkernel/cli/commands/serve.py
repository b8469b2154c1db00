"""streamkernel serve MODELS"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamkernel.blobs import is_url, local_path
from streamkernel.byte_counts import parse_bytes
from streamkernel.cli.execution import is_address
from streamkernel.cli.options import Scheduler, as_one, common
from streamkernel.cli.output import Display
from streamkernel.cli.wording import text_of
from streamkernel.engine.threads import available_cpus
from streamkernel.errors import ParameterError, StoreError, StoreNotFoundError
from streamkernel.kinds import predicting_class
from streamkernel.store import bundle_kind

if TYPE_CHECKING:
    from streamkernel.service.settings import JobsPlace


@click.command("serve")
@click.argument("models")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes a free port.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="A file whose first line is the token that requests must have.",
)
@click.option(
    "--tls-cert", "cert", type=click.Path(path_type=Path), help="The certificate of the service, PEM; with --tls-key."
)
@click.option("--tls-key", "key", type=click.Path(path_type=Path), help="The private key of the certificate, PEM.")
@click.option(
    "--insecure",
    "exposed",
    is_flag=True,
    help="Listen on other addresses of this machine without a token or without TLS.",
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 256), help="The number of processes.")
@click.option("--max-body", default="1GiB", show_default=True, metavar="BYTES", help="The largest NPY or Arrow body.")
@click.option("--max-json", default="8MiB", show_default=True, metavar="BYTES", help="The largest JSON body.")
@click.option(
    "--max-rows",
    default=10_000_000,
    show_default=True,
    type=click.IntRange(1),
    help="The largest number of rows of a request.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=None,
    metavar="SECONDS",
    help="The time between two checks of MODELS. [default: 0.4; for a URL 5]",
)
@click.option("--jobs", "place", metavar="LOCATION", help="Show the jobs with records in this folder or URL.")
@click.option(
    "--scheduler",
    "address",
    metavar="ADDRESS",
    help="Accept jobs, with --jobs, for the scheduler at this tls:// address.",
)
@click.option(
    "--scheduler-ca",
    "tls_ca",
    metavar="FILE",
    help="The certificate of the scheduler's CA. [default: STREAMKERNEL_TLS_CA]",
)
@click.option(
    "--scheduler-cert",
    "tls_cert",
    metavar="FILE",
    help="The certificate for the scheduler. [default: STREAMKERNEL_TLS_CERT]",
)
@click.option(
    "--scheduler-key",
    "tls_key",
    metavar="FILE",
    help="The private key of that certificate. [default: STREAMKERNEL_TLS_KEY]",
)
@click.option(
    "--scheduler-insecure",
    "insecure",
    is_flag=True,
    help="Connect to a scheduler on another machine without encryption.",
)
@as_one("scheduler", Scheduler)
@click.option(
    "--data-root",
    "roots",
    multiple=True,
    metavar="ROOT",
    help="A folder or URL in which jobs may read tables and write models, besides MODELS; may be repeated.",
)
@common
def command(
    models: str,
    host: str,
    port: int,
    token_file: Path | None,
    cert: Path | None,
    key: Path | None,
    exposed: bool,
    workers: int,
    max_body: str,
    max_json: str,
    max_rows: int,
    interval: float | None,
    place: str | None,
    scheduler: Scheduler,
    roots: tuple[str, ...],
    display: Display,
) -> None:
    """Answer requests for predictions of the saved models below MODELS (or of one model) over HTTP.

    MODELS is a folder, or a URL such as s3://bucket/models. Models that are added, replaced or removed are noticed
    within a second, at a URL within five. The page at / shows them, and jobs.
    """
    try:
        from streamkernel.service import Limits, Settings, serve
        from streamkernel.service.server import Address, leave
        from streamkernel.service.settings import is_loopback, read_token
    except ModuleNotFoundError as error:
        raise ParameterError(f"the service needs {error.name}: pip install 'streamkernel[service]'") from error
    if (cert is None) != (key is None):
        raise ParameterError("--tls-cert and --tls-key belong together; give both or neither")
    if not is_loopback(host) and not exposed and (token_file is None or cert is None):
        raise ParameterError(
            f"{host} can be reached from other machines: give --token-file, --tls-cert and --tls-key, or say --insecure"
        )
    token = None if token_file is None else read_token(token_file)
    limits = Limits(
        body_bytes=parse_bytes(max_body, "max_body") or 0,
        json_bytes=parse_bytes(max_json, "max_json") or 0,
        rows=max_rows,
    )
    root = _place_of_models(models, display)
    local = frozenset({"localhost", "127.0.0.1", "::1", host.lower()})
    settings = Settings(
        root,
        token=token,
        hosts=local if token is None and is_loopback(host) else None,
        poll_seconds=interval,
        threads=max(1, available_cpus() // workers),
        jobs=_jobs(root, place, scheduler, roots),
        limits=limits,
    )

    def ready(url: str) -> None:
        if display.as_json:
            click.echo(f'{{"url": "{url}", "workers": {workers}}}')
        else:
            click.echo(f"serving on {url}")
            display.note(f"{url}/ is a page about the models; ask them by POST {url}/v1/models/NAME/predict")
        if token is None:
            display.note("requests need no token")

    serve(settings, Address(host, port, cert, key), workers=workers, ready=ready)
    if workers == 1:
        leave()


def _place_of_models(models: str, display: Display) -> Path | str:
    """Check the place once, so that a mistyped path raises an error; a store that does not answer only warns."""
    from streamkernel.service.model_sources import source_of

    if not is_url(models) and "::" not in models:
        folder = local_path(models)
        if not folder.is_dir():
            raise StoreNotFoundError(f"there is no folder {models}; give a folder of saved models, or one saved model")
        stored = bundle_kind(folder)
        if stored is not None:
            # One object that never predicts: the service would answer 404 to everything.
            predicting_class(stored, models)
        return folder
    try:
        if not source_of(models).candidates():
            display.note(f"nothing is at {models} yet; models that are saved there are served then")
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        print(f"warning: {text_of(error)}; its models are served as soon as it answers", file=sys.stderr)
    return models.rstrip("/")


def _jobs(models: Path | str, place: str | None, scheduler: Scheduler, roots: tuple[str, ...]) -> JobsPlace | None:
    """Check the options of jobs before the service listens."""
    from streamkernel.engine.security import check_encrypted, tls_security
    from streamkernel.jobs.specification import location_of
    from streamkernel.service.allowed_locations import AllowedLocations
    from streamkernel.service.settings import JobsPlace

    address, tls = scheduler.address, (scheduler.tls_ca, scheduler.tls_cert, scheduler.tls_key)
    if place is None:
        if address is not None or roots:
            raise ParameterError("--scheduler and --data-root are of jobs: say with --jobs where their records are")
        return None
    if address is None and roots:
        raise ParameterError("--data-root is for jobs that are submitted: give --scheduler the address of a cluster")
    location = location_of("jobs", place)
    made = JobsPlace(location, address, tls, scheduler.insecure, tuple(location_of("data", each) for each in roots))
    AllowedLocations((models, *made.roots), location)
    if address is not None:
        if not is_address(address):
            raise ParameterError(f"--scheduler must be an address such as tls://host:8786, not {address!r}")
        check_encrypted(address, insecure=scheduler.insecure)
        if tls_security(*tls) is None and address.startswith(("tls:", "wss:")):
            raise ParameterError(f"{address} needs --scheduler-ca, --scheduler-cert and --scheduler-key")
    return made
