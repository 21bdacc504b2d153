"""A line of the journal as a line for people, in the output of a failed test."""

from __future__ import annotations

import msgspec

from mockagent.watch.entries import Entry, encode_line

WIDE = 200
"""Characters of a message that are shown."""


def told(entry: Entry) -> str:
    """`#12 client session/list {"cursor":"..."}`, or the like for what the mock sent, and for events."""
    if entry.event is not None:
        text = f"#{entry.seq}        {entry.event} {_json(entry.detail) if entry.detail else ''}"
    elif entry.malformed is not None:
        text = f"#{entry.seq} client malformed: {entry.malformed}: {entry.bytes}"
    else:
        who = "client" if entry.direction == "in" else "mock  "
        fate = "" if entry.fate == "intact" else f" ({entry.fate})"
        body = "" if entry.message is msgspec.UNSET else _json(entry.message)
        text = f"#{entry.seq} {who} {entry.kind}{fate}  {body}"
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text.rstrip())
    return text if len(text) <= WIDE else f"{text[:WIDE]}..."


def _json(value: object) -> str:
    return encode_line(value).decode()
