"""The formats of rows in requests, and the three of them that predictions in answers have."""

from __future__ import annotations

from streamkernel.service.http_errors import Refused

__all__ = ["ARROW", "BODIES", "FORMATS", "JSON", "LIBSVM", "LIBSVM_TYPE", "MEDIA_TYPES", "NPY", "accepted"]

JSON, NPY, ARROW, LIBSVM = "json", "npy", "arrow", "libsvm"


MEDIA_TYPES = {JSON: "application/json", NPY: "application/x-npy", ARROW: "application/vnd.apache.arrow.stream"}
FORMATS = {media_type: name for name, media_type in MEDIA_TYPES.items()}
LIBSVM_TYPE = "text/x-libsvm"  # of rows alone
BODIES = {**FORMATS, LIBSVM_TYPE: LIBSVM}


def accepted(header: bytes | None, sent: str) -> str:
    """The format of the answer: the first that the client accepts; if it accepts any that of the body, or JSON.

    Raises
    ------
    Refused
        The client accepts none of the three.
    """
    sent = JSON if sent == LIBSVM else sent
    if header is None or header == b"*/*":
        return sent
    ranked: list[tuple[float, int, str]] = []
    for position, part in enumerate(header.decode("latin-1").lower().split(",")):
        media_type, *parameters = (piece.strip() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
        if not quality > 0.0:
            continue
        if media_type in ("*/*", "application/*"):
            ranked.append((-quality, position, sent))
        elif media_type in FORMATS:
            ranked.append((-quality, position, FORMATS[media_type]))
    if not ranked:
        raise Refused(406, f"answers are {', '.join(MEDIA_TYPES.values())}")
    return min(ranked)[2]
