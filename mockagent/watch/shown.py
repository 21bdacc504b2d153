"""A message in the small form in which reports show it: where it stands in the journal, and its text, cut and masked.

Knows neither rules nor expectations; both keep their evidence in this form, because it is small and holds no secrets.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mockagent.message import Burst, Direction, Message
from mockagent.watch.entries import printable
from mockagent.watch.redact import Redactor

#: A message in a report is cut at so many bytes.
SHOWN: Final = 2000


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message as a report shows it. `line` is its number in the journal, `text` its JSON, cut and masked."""

    line: int
    direction: Direction
    kind: str
    session: str | None
    text: str


def show(message: Message | Burst, line: int, redact: Redactor) -> Shown:
    """A message (of a burst the first) as a report shows it.

    Args:
        message: as it was seen.
        line: its number in the journal.
        redact: masks secrets.
    """
    direction: Direction = "out"
    if isinstance(message, Burst):
        text = redact.plain(message.texts[0])
    else:
        direction = "in" if message.origin == "client" else "out"
        text = b"" if message.data is None and not message.raw else redact.text(message)
    cut = printable(text[:SHOWN])
    if len(text) > SHOWN:
        cut = f"{cut}... ({len(text)} bytes)"
    return Shown(line=line, direction=direction, kind=message.kind, session=message.session, text=cut)
