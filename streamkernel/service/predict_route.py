"""POST /v1/models/{name}/predict: rows in, predictions out, in any pair of three formats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from streamkernel.service.access_control import PREFIX, SUFFIX
from streamkernel.service.batching import Batcher
from streamkernel.service.formats import BODIES, JSON, LIBSVM, LIBSVM_TYPE, MEDIA_TYPES, NPY, accepted
from streamkernel.service.formats.answers import Answer, Spool
from streamkernel.service.formats.arrow import ArrowRows, arrow_rows, received_arrow
from streamkernel.service.formats.json_rows import one_answer, parse
from streamkernel.service.formats.npy import NpyRows
from streamkernel.service.formats.sparse_rows import SparseRows, libsvm_rows, sparse_json
from streamkernel.service.http_errors import Refused
from streamkernel.service.loaded_model import LoadedModel, Outputs
from streamkernel.service.metrics import Metrics
from streamkernel.service.model_registry import Registry
from streamkernel.service.request import Request, Send
from streamkernel.service.settings import Settings
from streamkernel.type_aliases import Unchecked, Untyped

T = TypeVar("T")
_JSON_TYPE = MEDIA_TYPES[JSON].encode()


class Predict:
    """Parameters
    ----------
    registry : the models.
    """

    def __init__(self, settings: Settings, registry: Registry, metrics: Metrics) -> None:
        self._settings = settings
        self._registry = registry
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="predict")
        self._streams = asyncio.Semaphore(settings.limits.streams)
        # Those of a replaced generation go with it.
        self._batchers: WeakKeyDictionary[Outputs, Batcher] = WeakKeyDictionary()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, request: Request, send: Send) -> None:
        served = self._registry.served(request.path[len(PREFIX) : -len(SUFFIX)])
        outputs = served.outputs(**request.flags("std", "probabilities"))
        if b"content-encoding" in request.headers and request.headers[b"content-encoding"].lower() != b"identity":
            raise Refused(415, "compressed bodies are not taken; send it as it is")
        given = request.media_type()
        taken = [*MEDIA_TYPES.values(), *([LIBSVM_TYPE] if served.model.sparse else [])]
        if given not in taken:
            why = ", which is for models of sparse rows," if given == LIBSVM_TYPE else ""
            raise Refused(415, f"a body of type {given[:60]!r}{why} is not taken; {', '.join(taken)} are")
        sent = BODIES[given]
        wanted = accepted(request.headers.get(b"accept"), sent)
        if served.model.sparse and sent in (JSON, LIBSVM):
            found = await self._sparse(request, served, sent)
            with self._spool(request, outputs, found.X.shape[0]) as spool:
                await self._at_work(self._predicted_sparse, outputs, spool, found.X)
                await self._send(request, send, Answer(outputs, spool, wanted, single=found.single))
            return
        if sent == JSON:
            rows = await self._json(request, served)
            if rows.single and wanted == JSON:
                self._metrics.waiting.inc()
                try:
                    values = await self._batcher(outputs).submit(rows.X[0])
                finally:
                    self._metrics.waiting.dec()
                self._metrics.predicted(served.name, 1)
                await _whole(send, outputs, _JSON_TYPE, one_answer(outputs.fields, outputs.classes, values))
                return
            with self._spool(request, outputs, len(rows.X)) as spool:
                await self._at_work(self._predicted, outputs, spool, rows.X)
                await self._send(request, send, Answer(outputs, spool, wanted, single=rows.single))
            return
        self._metrics.streams.inc()
        try:
            await self._streamed(request, send, served, outputs, sent, wanted)
        finally:
            self._metrics.streams.dec()

    async def _json(self, request: Request, served: LoadedModel) -> Any:
        body = await request.body(self._settings.limits.json_bytes)
        if len(body) < 1 << 15:
            return parse(body, served.columns, self._settings.limits, served.raw)
        return await self._at_work(parse, body, served.columns, self._settings.limits, served.raw)

    async def _sparse(self, request: Request, served: LoadedModel, sent: str) -> SparseRows:
        limits = self._settings.limits
        body = await request.body(limits.json_bytes)
        if sent == LIBSVM:
            return await self._at_work(libsvm_rows, body, len(served.columns), limits)
        return await self._at_work(sparse_json, body, served.positions, limits)

    async def _streamed(
        self, request: Request, send: Send, served: LoadedModel, outputs: Outputs, sent: str, wanted: str
    ) -> None:
        direct, limits = outputs.direct, self._settings.limits
        if sent == NPY:
            rows = NpyRows(request.chunks(limits.body_bytes), served.columns, limits)
            m, dtype = await rows.begin(request.declared_bytes())
            with self._spool(request, outputs, m) as spool:
                for first, last in direct.blocks(m, dtype):
                    block = await rows.read(last - first)
                    await request.computing(self._at_work(self._block, outputs, spool, block, first))
                    request.release(block.nbytes)
                await rows.end()
                await self._send(request, send, Answer(outputs, spool, wanted, single=rows.single))
            return
        async with received_arrow(request, limits.body_bytes) as body:
            source = await self._at_work(arrow_rows, body, served.known_columns, limits, served.raw)
            with self._spool(request, outputs, source.rows) as spool:
                for first, last in direct.blocks(source.rows, source.dtype):
                    await self._at_work(self._arrow_block, outputs, spool, source, first, last)
                    request.now_computing()
                await self._send(request, send, Answer(outputs, spool, wanted))

    @contextmanager
    def _spool(self, request: Request, outputs: Outputs, rows: int) -> Iterator[Spool]:
        with Spool(rows, [(field.output, field.columns) for field in outputs.fields]) as spool:
            (request.hold if spool.in_memory else request.hold_file)(spool.nbytes)
            yield spool

    def _predicted(self, outputs: Outputs, spool: Spool, X: Unchecked) -> None:
        for first, last in outputs.direct.blocks(len(X), X.dtype):
            self._block(outputs, spool, X[first:last], first)

    def _predicted_sparse(self, outputs: Outputs, spool: Spool, X: Untyped) -> None:
        for block in outputs.direct.sparse_blocks(X):
            spool.append(outputs.direct.of_block(block))
            self._metrics.predicted(outputs.model, len(block))

    def _block(self, outputs: Outputs, spool: Spool, X: Unchecked, first: int) -> None:
        spool.append(outputs.direct.of_block(outputs.direct.prepared(X, first)))
        self._metrics.predicted(outputs.model, len(X))

    def _arrow_block(self, outputs: Outputs, spool: Spool, source: ArrowRows, first: int, last: int) -> None:
        self._block(outputs, spool, source.read(first, last), first)

    def _batcher(self, outputs: Outputs) -> Batcher:
        batcher = self._batchers.get(outputs)
        if batcher is None:
            settings, observe = self._settings, self._metrics.batches.observe
            batcher = Batcher(outputs.direct, settings.batch_seconds, settings.batch_rows, self._pool, observe)
            self._batchers[outputs] = batcher
        return batcher

    async def _run(self, work: Callable[..., T], *arguments: Unchecked) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    async def _at_work(self, work: Callable[..., T], *arguments: Unchecked) -> T:
        """Run a long piece of work. It waits for a free place only when its input has arrived, never for a client."""
        async with self._streams:
            return await self._run(work, *arguments)

    async def _send(self, request: Request, send: Send, answer: Answer) -> None:
        """Send the answer, in pieces, as fast as the client reads them."""
        request.now_computing()
        if answer.small:
            await _whole(send, answer.outputs, answer.content_type, b"".join(answer.pieces()))
            return
        await send({
            "type": "http.response.start", "status": 200, "headers": _headers(answer.outputs, answer.content_type),
        })  # fmt: skip
        pieces: Iterator[bytes] = answer.pieces()
        while (piece := await self._run(next, pieces, b"")) != b"":
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            request.now_computing()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _headers(outputs: Outputs, content_type: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", content_type),
        (b"x-model-digest", outputs.digest.encode()),
        (b"x-content-type-options", b"nosniff"),
    ]


async def _whole(send: Send, outputs: Outputs, content_type: bytes, body: bytes) -> None:
    headers = [*_headers(outputs, content_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
