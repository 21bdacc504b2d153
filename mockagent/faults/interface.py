"""The five hooks at which a fault can act, and what it may ask for there.

The message path (`wire`, the protocols' handlers and bindings) calls a `Faults` and carries out what comes back; the
engine in this package decides, and does nothing itself. All calls are synchronous and in the order of the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from mockagent.message import Message, Peer
from mockagent.net.channel import Bytes, Cut, Op
from mockagent.scenario.model import Span, Step

# --- acts on a message


class Pass(msgspec.Struct, frozen=True):
    """The message goes on, as it is now (an engine that edits hands on an edited copy)."""

    message: Message


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The handler is left out; the client gets this instead. One of `error` and `result` counts."""

    error: Any = None
    """A name from the table of errors, or `{code, message, data}` / `{status, headers, body}`."""
    result: Any = msgspec.UNSET


class Drop(msgspec.Struct, frozen=True):
    """The message goes no further."""


class Delay(msgspec.Struct, frozen=True):
    """What follows on this channel, this message included, is held back for a while (logical time)."""

    span: Span


class Hold(msgspec.Struct, frozen=True):
    """This message alone is held back until an event (`reply`, `turn_ended`, `next_prompt`, `never`) or for a while."""

    message: Message
    until: str | Span


class Play(msgspec.Struct, frozen=True):
    """Steps are played here, as `origin: fault`; what they send is not faulted again.

    They play in the session of the message that the hook was asked about; where that is a reply which makes a session,
    in that one.
    """

    steps: Sequence[Step]


class Resend(msgspec.Struct, frozen=True):
    """What is sent again on the stream that this request opens: what the client has not seen, all of it, or nothing."""

    which: Literal["unseen", "all", "none"]


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """Something happens to the channel or the process, at this point of the channel's order.

    `cut` ends the channel of the message; `exit` ends the process with a code, or (negative) a signal; `stall` stops
    writing or reading for so many seconds (`inf`: for ever); `ignore` lets a point of life pass unnoticed; `stderr`
    is text to be written there, again and again if `stderr_every` is given (logical time); `child` starts a child
    process that stays for so many seconds.
    """

    cut: Cut | None = None
    exit: int | None = None
    stall_write: float | None = None
    stall_read: float | None = None
    ignore: bool = False
    stderr: str | None = None
    stderr_every: Span | None = None
    child: float | None = None


Act = Pass | Reply | Drop | Delay | Hold | Play | Resend | Life


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A look at the list of sessions: who asks, for what."""

    peer: Peer
    request: Message
    cwd: str | None = None
    cursor: str | None = None


class Page(msgspec.Struct, kw_only=True):
    """A page of sessions before it is rendered. `cursor` None: no more pages."""

    rows: list[Any]
    cursor: str | None = None
    null_cursor: bool = False
    """The cursor is sent as `null` instead of being left out."""


class Instead(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario wants in place of a handler's refusal: another `error`, or something that is no error."""

    error: Any = None
    do: Literal["create", "empty", "first_page"] | None = None
    """Make the session, answer with nothing in it, answer as if no cursor had been given."""


class Faults(Protocol):
    """What the message path asks. Every method returns at once."""

    @property
    def lag(self) -> int:
        """How many messages of a turn are kept back while it plays, to leave in one write with a later one."""

    def watches(self, kind: str, neutral: str | None) -> bool:
        """Whether any armed fault could concern messages of this kind (False: the fast path may be taken)."""

    def arriving(self, message: Message) -> Sequence[Act]:
        """Acts for a message that has come in and has not reached its handler."""

    def refusing(self, message: Message, name: str) -> Instead | None:
        """What comes in place of the error of that name, with which a handler wants to answer this message."""

    def leaving(self, message: Message) -> Sequence[Act]:
        """Acts for a rendered message before it is encoded."""

    def listing(self, query: Query, page: Page) -> Page:
        """The page that is to be rendered."""

    def framing(self, message: Message, data: bytes | Sequence[bytes]) -> Sequence[Op]:
        """Operations that take the place of writing the encoded message.

        `data` is a sequence where the encoder gives the frames (`Shape.fragments`) or messages (`Shape.pieces`) one by
        one: pauses between them are then kept.
        """

    def lifecycle(self, point: str, peer: Peer | None, session: str | None = None) -> Life | None:
        """What happens at a point in life: `start`, `connected`, `session_opened`, ..., `eof`, `sigterm`, `ping`."""


class NoFaults:
    """The honest agent: nothing is ever watched."""

    lag = 0

    def watches(self, kind: str, neutral: str | None) -> bool:
        return False

    def arriving(self, message: Message) -> Sequence[Act]:
        return (Pass(message),)

    def refusing(self, message: Message, name: str) -> Instead | None:
        return None

    def leaving(self, message: Message) -> Sequence[Act]:
        return (Pass(message),)

    def listing(self, query: Query, page: Page) -> Page:
        return page

    def framing(self, message: Message, data: bytes | Sequence[bytes]) -> Sequence[Op]:
        return (Bytes(data if isinstance(data, bytes) else b"".join(data)),)

    def lifecycle(self, point: str, peer: Peer | None, session: str | None = None) -> Life | None:
        return None
