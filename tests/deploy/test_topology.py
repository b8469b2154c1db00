"""The topology of compose.yaml, as processes: the same job from threads, and over TLS from a folder and from S3."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from clusters import BUCKET, held_port, topology

from streamkernel import KernelRidge, connect


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with topology(tmp_path_factory.mktemp("topology"), tls=True, service=False) as running:
        yield running


def to_s3(cluster: Any, folder: Path, name: str) -> str:
    told = cluster.environment
    client = boto3.client(
        "s3",
        endpoint_url=told["AWS_ENDPOINT_URL"],
        aws_access_key_id=told["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=told["AWS_SECRET_ACCESS_KEY"],
        region_name=told["AWS_REGION"],
    )
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        client.put_object(Bucket=BUCKET, Key=f"{name}/{file.relative_to(folder)}", Body=file.read_bytes())
    client.close()
    return f"{told['STREAMKERNEL_S3']}/{name}"


@pytest.mark.slow
def test_one_digest(cluster: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    threads = KernelRidge(40).fit(str(store))
    places = [(str(store), str(tmp_path / "model")), (to_s3(cluster, store, "rows.zarr"), f"s3://{BUCKET}/model.zarr")]
    with connect(cluster.environment["STREAMKERNEL_SCHEDULER"]) as session:
        for rows, model in places:
            fitted = session.submit(KernelRidge(40), rows, model).result()
            assert fitted.model_.digest == threads.model_.digest


def test_a_port_is_held_for_a_server_that_takes_seconds_to_load() -> None:
    with held_port() as held:
        address = held.getsockname()
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind(address)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        with socket.create_server(address):
            socket.create_connection(address).close()
