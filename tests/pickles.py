"""Whether bytes are a pickle."""

from __future__ import annotations


def is_pickle(content: bytes) -> bool:
    """True for a pickle of protocol 2 or later: 0x80, the number of the protocol, and a dot at the end.

    The first byte alone does not tell: a chunk of numbers may begin with it.
    """
    return len(content) > 2 and content[0] == 0x80 and 2 <= content[1] <= 5 and content.endswith(b".")
