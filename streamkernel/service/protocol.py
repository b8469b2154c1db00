"""One connection: what a client may take in time and memory before, between and after requests.

The web server gives a request to the application once its headers are there, and waits for as long as that takes; and
it waits for as long as a client takes to read. Here both have an end.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from streamkernel.service.refusals import STATUSES, error_body
from streamkernel.service.settings import Limits

__all__ = ["protocol_class"]


def protocol_class(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol with these limits."""

    class LimitedProtocol(HttpToolsProtocol):
        _header_timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None
        _header_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self._refuse(503)
                return
            self._expect_headers()

        def data_received(self, data: bytes) -> None:
            if self._header_timer is not None:
                self._header_bytes += len(data)
            super().data_received(data)
            # A body that came with its headers in one piece has ended the wait for them.
            if self._header_timer is not None and self._header_bytes > limits.header_bytes:
                self._refuse(431)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._header_timer is None:
                self._expect_headers()

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._header_bytes = 0

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            self._stop_writing()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._write_timer is None:
                self._write_timer = self.loop.call_later(limits.write_seconds, self._give_up)

        def resume_writing(self) -> None:
            self._stop_writing()
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            self._refuse(400)

        def _expect_headers(self) -> None:
            self._header_timer = self.loop.call_later(limits.header_seconds, self._give_up)

        def _stop_waiting(self) -> None:
            if self._header_timer is not None:
                self._header_timer.cancel()
                self._header_timer = None

        def _stop_writing(self) -> None:
            if self._write_timer is not None:
                self._write_timer.cancel()
                self._write_timer = None

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.abort()

        def _refuse(self, status: int) -> None:
            """Answer what never became a request, and close."""
            kind, message = {
                400: ("MalformedRequest", "this is not HTTP"),
                431: ("HeadersTooLarge", f"the headers are larger than {limits.header_bytes} bytes"),
                503: (STATUSES[503][0], "too many connections; come again later"),
            }[status]
            self._stop_waiting()
            body = error_body(kind, message)
            head: Any = STATUS_LINE[status]
            self.transport.write(
                head + b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
            )
            self.transport.write(body)
            self.transport.close()

    return LimitedProtocol
