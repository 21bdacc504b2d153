"""Frames of WebSocket messages (RFC 6455, section 5.2), unmasked as a server sends them. Pure functions over bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
FIN = 0x80


def encode_frame(payload: bytes, opcode: int = TEXT, *, fin: bool = True) -> bytes:
    """Encodes one frame; `opcode` 0 continues a message whose frames before had no `fin`."""
    first = opcode | (FIN if fin else 0)
    size = len(payload)
    if size < 126:
        head = bytes((first, size))
    elif size < 2**16:
        head = struct.pack("!BBH", first, 126, size)
    else:
        head = struct.pack("!BBQ", first, 127, size)
    return head + payload


def encode_text(data: bytes, *, binary: bool = False) -> bytes:
    """Encodes a whole message in one frame. `data` is UTF-8 already; `binary` marks it as bytes all the same."""
    return encode_frame(data, BINARY if binary else TEXT)


def encode_ping(data: bytes) -> bytes:
    """Encodes a ping; beyond 125 bytes its data is cut off (section 5.5)."""
    return encode_frame(data[:125], PING)


def encode_texts(items: Sequence[bytes], *, binary: bool = False) -> bytes:
    """Encodes many messages, to leave in one write."""
    opcode = BINARY if binary else TEXT
    return b"".join([encode_frame(item, opcode) for item in items])


def encode_fragments(data: bytes, at: Sequence[int], *, binary: bool = False) -> list[bytes]:
    """Encodes a message in several frames, which may cut characters in two.

    Args:
        data: the whole message.
        at: where a new frame begins: offsets in ascending order, negative ones from the end. Those outside are ignored.
        binary: marks the message as bytes.
    """
    size = len(data)
    inner = sorted({offset % size for offset in at if -size < offset < size and offset}) if size else []
    edges = [0, *inner, size]
    frames = []
    for index, (start, stop) in enumerate(pairwise(edges)):
        opcode = 0 if index else (BINARY if binary else TEXT)
        frames.append(encode_frame(data[start:stop], opcode, fin=stop == size))
    return frames
