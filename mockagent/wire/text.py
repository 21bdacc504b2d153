r"""JSON texts in another dress: with every character beyond ASCII as `\uXXXX`, or in several pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def cut(text: bytes, at: Sequence[int]) -> list[bytes]:
    """Cuts a text at offsets, negative ones from the end; those outside are ignored. Joined again it is the text."""
    size = len(text)
    inner = sorted({offset % size for offset in at if -size < offset < size and offset}) if size else []
    return [text[start:stop] for start, stop in pairwise([0, *inner, size])]


def escaped(text: bytes) -> bytes:
    r"""Escapes what is beyond ASCII; in JSON it can only stand inside strings.

    Args:
        text: a JSON text in UTF-8.
    """
    if text.isascii():
        return text
    return "".join(char if ord(char) < 128 else _escape(ord(char)) for char in text.decode("utf-8", "replace")).encode()


def _escape(code: int) -> str:
    """One character; those beyond the basic plane as a surrogate pair (RFC 8259, section 7)."""
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
