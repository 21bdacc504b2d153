"""The table of effects: what each one does to a message, to its bytes, or to the channel and the process.

An effect works on a `Work`, the state of one message between the first fault that looks at it and the last; nothing is
done before the engine turns the finished work into acts. No effect knows whether it was meant for this message or,
written at a request, for its reply.

Values, as the loader hands them on (spans are microseconds, `Uniform` or `Lognormal`):

    error          str | {code, message, data} | {status, headers, body}
    result         any JSON value
    edit           tuple of {set: POINTER, to: VALUE, as: "string" | "number"} | {remove: POINTER} | {event_name: TEXT}
    event_name     str (the same as an entry of `edit`)
    drop           True
    copies         int, in all
    delay          span
    hold           {until: "reply" | "turn_ended" | "next_prompt" | "never" | span}
    play_before    tuple of steps; play_after likewise
    resend         "unseen" | "all" | "none"
    cursor         "repeat" | "cycle" | "empty" | "null" (or None) | "endless" | "expired"
    page           "empty" | "shrink" | "shuffle" | {overlap: int}
    rows           tuple of {match: GLOB, set: {...}, copies: int}
    escape         "ascii"
    newline        "crlf" | "cr" | "none" | "double"
    binary         True; no_blank likewise
    comment        str
    truncate       int, bytes that are left
    bytes          {before: str, after: str}
    split          {at: tuple of int | "utf8", parts: int, into: "writes" | "frames" | "messages", pause: span}
    coalesce       int
    rate           float, bytes per second
    stderr         {text: str, bytes: int, every: span}
    child          span
    ignore         tuple of "eof" | "sigterm" | "cancel" | "ping"
    stall          {write: span | "forever", read: span | "forever"}
    disconnect     "close" | "reset" | "half" | {code: int, reason: str}
    exit           {code: int} | {signal: int | "KILL"}

Pointers of `edit` start at the whole message (an SSE event's data); on a message with an HTTP head, `/http/status` and
`/http/headers/NAME` reach that. `bytes` stand around the line or event, `truncate` cuts its end off too; on a WebSocket
both mean the text inside the frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from mockagent.faults import answer
from mockagent.faults.framing import cuts, operations
from mockagent.faults.interface import Act, Delay, Drop, Hold, Life, Pass, Play, Reply, Resend
from mockagent.faults.listing import Skip
from mockagent.message import NO_ID, HttpHead, Message, Shape
from mockagent.net.channel import Bytes, Cut
from mockagent.scenario.model import Span
from mockagent.script import pointer

Layer = Literal["answer", "order", "list", "wire", "life"]

FillOld = Callable[[Any, Any], Any]
"""Fills the placeholders in a value, given the old value that `${value}` stands for (UNSET: none)."""


class Work:
    """One message and what is to become of it.

    Attributes:
        message: as it is now; never the caller's own once something has changed.
        reply: takes the handler's place (on the way in).
        plan: what is done to the bytes.
        life: what happens behind the message.
    """

    __slots__ = (
        "after", "before", "copies", "delays", "dropped", "hold", "ignores", "life", "message", "notices", "plan",
        "reply",
    )  # fmt: skip

    def __init__(self, message: Message) -> None:
        self.message = message
        self.before: list[Act] = []
        self.after: list[Act] = []
        self.delays: list[Span] = []
        self.hold: str | Span | None = None
        self.copies = 1
        self.dropped = False
        self.reply: Reply | None = None
        self.plan: list[tuple[str, Any]] = []
        self.notices: list[Life] = []
        self.life: list[Life] = []
        self.ignores: list[str] = []

    def copy(self) -> Work:
        """The same again, for a fault that may turn out to be impossible half-way."""
        twin = Work(self.message)
        twin.before, twin.after, twin.delays = list(self.before), list(self.after), list(self.delays)
        twin.hold, twin.copies, twin.dropped, twin.reply = self.hold, self.copies, self.dropped, self.reply
        twin.plan, twin.notices, twin.life = list(self.plan), list(self.notices), list(self.life)
        twin.ignores = list(self.ignores)
        return twin

    def reshape(self, **changes: Any) -> None:
        """Changes how the message will be encoded."""
        self.message = self.message.copy()
        self.message.shape = msgspec.structs.replace(self.message.shape or Shape(), **changes)

    def damage(self, name: str) -> None:
        """Marks what leaves as changed on purpose."""
        if name not in self.message.damaged:
            self.message = self.message.copy()
            self.message.damaged = (*self.message.damaged, name)

    def acts(self) -> list[Act]:
        """What the message path has to do, in order."""
        if self.dropped:
            return [*self.notices, *self.before, Drop(), *self.after, *self.life]
        delays = [Delay(span) for span in self.delays]
        middle = [self.reply] if self.reply is not None else self._copies()
        return [*self.notices, *delays, *self.before, *middle, *self.after, *self.life]

    def _copies(self) -> list[Act]:
        self._settle_plan()
        messages = [self.message]
        for _ in range(self.copies - 1):
            twin = self.message.copy()
            twin.damaged = (*twin.damaged, "copies")
            messages.append(twin)
        if self.hold is None:
            return [Pass(message) for message in messages]
        return [Hold(message, self.hold) for message in messages]

    def _settle_plan(self) -> None:
        """Does what has to be done while there is only text, and leaves the rest to `framing`.

        Nobody could read on behind a damaged frame, so on a WebSocket foreign and missing bytes are the text's.
        """
        left: list[tuple[str, Any]] = []
        for name, value in self.plan:
            if name in ("truncate", "bytes") and self.message.peer.transport == "ws":
                ops = operations([(name, value)], _as_encoded(self.message))
                self.message = self.message.copy()
                self.message.raw = b"".join(op.data for op in ops if isinstance(op, Bytes))
                continue
            if name == "split" and value["into"] != "writes":
                offsets = cuts(_as_encoded(self.message), value)
                self.reshape(**{"fragments" if value["into"] == "frames" else "pieces": offsets})
            left.append((name, value))
        if left:
            self.message = self.message.copy()
            self.message.plan = (*self.message.plan, *left)


def _as_encoded(message: Message) -> bytes:
    if message.shape is None or not message.shape.escape_ascii:
        return message.text
    text = message.text.decode()
    return b"".join(_escaped(char) for char in text)


def _escaped(char: str) -> bytes:
    if char < "\x80":
        return char.encode()
    units = char.encode("utf-16-be")
    return b"".join(b"\\u" + units[at : at + 2].hex().encode() for at in range(0, len(units), 2))


class Context:
    """What an effect needs beside its value.

    Args:
        fill: fills what the table leaves unfilled (`edit`).
        seconds: draws a span, in seconds of wall time.
    """

    __slots__ = ("fill", "seconds")

    def __init__(self, fill: FillOld, seconds: Callable[[Any], float]) -> None:
        self.fill = fill
        self.seconds = seconds


# --- answer


def _error(work: Work, value: Any, context: Context) -> None:
    _only_replies(work)
    try:
        work.message = answer.refuse(work.message, value)
    except answer.Unsayable as why:
        raise Skip(str(why)) from None


def _result(work: Work, value: Any, context: Context) -> None:
    _only_replies(work)
    work.message = answer.succeed(work.message, value)


def _only_replies(work: Work) -> None:
    if not work.message.kind.startswith("reply:"):
        raise Skip("only a reply can be an error or a result")


def _edit(work: Work, value: Any, context: Context) -> None:
    for entry in value:
        if "event_name" in entry:
            _event_name(work, entry["event_name"], context)
        else:
            _edit_one(work, entry, context)


def _edit_one(work: Work, entry: Mapping[str, Any], context: Context) -> None:
    changed = work.message.copy()
    where = context.fill(entry.get("set", entry.get("remove")), msgspec.UNSET)
    on_head = changed.http is not None and where.startswith("/http/")
    document = msgspec.to_builtins({"http": changed.http}) if on_head else changed.data
    if "remove" in entry:
        document = pointer.remove(document, where)
    else:
        document = pointer.put(document, where, _new_value(document, where, entry, context))
    if on_head:
        changed.http = msgspec.convert(document["http"], HttpHead)
    else:
        changed.data, changed.raw = document, None
        if changed.kind.startswith("request:") and isinstance(document, dict):
            changed.id = document.get("id", NO_ID)
    work.message = changed


def _new_value(document: Any, where: str, entry: Mapping[str, Any], context: Context) -> Any:
    try:
        old = pointer.get(document, where)
    except pointer.Absent:
        old = msgspec.UNSET
    value = context.fill(entry.get("to", "${value}" if "as" in entry else None), old)
    return _AS[entry["as"]](value) if entry.get("as") is not None else value


def _as_string(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _as_number(value: Any) -> int | float:
    try:
        number = msgspec.json.decode(value if isinstance(value, str) else msgspec.json.encode(value))
    except msgspec.DecodeError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise Skip(f"{value!r:.40} cannot be a number")
    return number


_AS: dict[str, Callable[[Any], Any]] = {"string": _as_string, "number": _as_number}


def _event_name(work: Work, value: Any, context: Context) -> None:
    """`${value}` is the name that it had."""
    named = work.message.shape.event_name if work.message.shape is not None else None
    old = work.message.kind.removeprefix("event:") if named is None else named
    work.reshape(event_name=str(context.fill(value, old)))


# --- order


def _drop(work: Work, value: Any, context: Context) -> None:
    work.dropped = bool(value)


def _copies(work: Work, value: Any, context: Context) -> None:
    work.copies = max(0, int(value))
    work.dropped = work.copies == 0


def _delay(work: Work, value: Any, context: Context) -> None:
    work.delays.append(value)


def _hold(work: Work, value: Any, context: Context) -> None:
    work.hold = value["until"] if isinstance(value, Mapping) else value


def _play_before(work: Work, value: Any, context: Context) -> None:
    work.before.append(Play(value))


def _play_after(work: Work, value: Any, context: Context) -> None:
    work.after.append(Play(value))


def _resend(work: Work, value: Any, context: Context) -> None:
    if work.message.kind.split(" ")[0] != "GET":
        raise Skip("only a GET opens a stream on which something can be sent again")
    work.before.append(Resend(value))


# --- list


def _page(work: Work, value: Any, context: Context) -> None:
    raise Skip("a page is made while its request is answered: write this at the request")


# --- wire


def _escape(work: Work, value: Any, context: Context) -> None:
    work.reshape(escape_ascii=True)


def _newline(work: Work, value: Any, context: Context) -> None:
    work.reshape(newline=_NEWLINES[value])


_NEWLINES = {"crlf": b"\r\n", "cr": b"\r", "none": b"", "double": b"\n\n"}


def _binary(work: Work, value: Any, context: Context) -> None:
    work.reshape(binary=bool(value))


def _comment(work: Work, value: Any, context: Context) -> None:
    work.reshape(comment=value)


def _no_blank(work: Work, value: Any, context: Context) -> None:
    work.reshape(no_blank=bool(value))


def _planned(name: str) -> Callable[[Work, Any, Context], None]:
    """An effect that has to wait for the bytes (`faults.framing`)."""

    def apply(work: Work, value: Any, context: Context) -> None:
        work.plan.append((name, value))

    return apply


def _split(work: Work, value: Any, context: Context) -> None:
    into = value.get("into") or "writes"
    if into == "frames" and work.message.peer.transport != "ws":
        into = "writes"
    pause = value.get("pause")
    drawn = None if pause is None else context.seconds(pause)
    work.plan.append(("split", {"at": value.get("at"), "parts": value.get("parts"), "into": into, "pause": drawn}))
    if into == "messages":
        work.damage("split")


# --- life


def _stderr(work: Work, value: Any, context: Context) -> None:
    if isinstance(value, str):
        value = {"text": value}
    text = value.get("text") or _NOISE
    size = value.get("bytes")
    if size is not None:
        text = (text * (size // max(1, len(text.encode())) + 1)).encode()[:size].decode(errors="ignore")
    work.notices.append(Life(stderr=text, stderr_every=value.get("every")))


_NOISE = "mockagent: nothing to see here\n"


def _child(work: Work, value: Any, context: Context) -> None:
    work.notices.append(Life(child=context.seconds(value)))


def _ignore(work: Work, value: Any, context: Context) -> None:
    work.ignores.extend((value,) if isinstance(value, str) else value)


def _stall(work: Work, value: Any, context: Context) -> None:
    drawn = {way: math.inf if span == "forever" else context.seconds(span) for way, span in value.items()}
    work.life.append(Life(stall_write=drawn.get("write"), stall_read=drawn.get("read")))


def _disconnect(work: Work, value: Any, context: Context) -> None:
    cut = Cut("close", value.get("code"), value.get("reason") or "") if isinstance(value, Mapping) else Cut(value)
    work.life.append(Life(cut=cut))


def _exit(work: Work, value: Any, context: Context) -> None:
    if not isinstance(value, Mapping):
        value = {"code": value}
    name = value.get("signal")
    work.life.append(Life(exit=int(value.get("code") or 0) if name is None else -_signal(name)))


def _signal(name: int | str) -> int:
    """The number of a signal, named with or without `SIG`."""
    import signal

    return name if isinstance(name, int) else int(signal.Signals["SIG" + name.removeprefix("SIG")])


# --- the table


class Effect(NamedTuple):
    """A row of the table.

    Attributes:
        apply: does it to a message (a reply, if it was written at a request).
        damages: what leaves is not what the protocol says.
        spans: written at a request of a session, it holds for all that leaves there until the reply has left.
        fills: the engine fills the value beforehand.
    """

    layer: Layer
    apply: Callable[[Work, Any, Context], None]
    damages: bool = False
    spans: bool = False
    fills: bool = True


EFFECTS: dict[str, Effect] = {
    "error": Effect("answer", _error),
    "result": Effect("answer", _result),
    "edit": Effect("answer", _edit, damages=True, fills=False),
    "event_name": Effect("answer", _event_name, damages=True, fills=False),
    "drop": Effect("order", _drop),
    "delay": Effect("order", _delay),
    "hold": Effect("order", _hold),
    "play_before": Effect("order", _play_before, fills=False),
    "copies": Effect("order", _copies),
    "play_after": Effect("order", _play_after, fills=False),
    "resend": Effect("order", _resend),
    "cursor": Effect("list", _page),
    "page": Effect("list", _page),
    "rows": Effect("list", _page),
    "escape": Effect("wire", _escape, spans=True),
    "newline": Effect("wire", _newline, damages=True, spans=True),
    "binary": Effect("wire", _binary, damages=True, spans=True),
    "comment": Effect("wire", _comment, spans=True),
    "no_blank": Effect("wire", _no_blank, damages=True, spans=True),
    "truncate": Effect("wire", _planned("truncate"), damages=True, spans=True),
    "bytes": Effect("wire", _planned("bytes"), damages=True, spans=True),
    "split": Effect("wire", _split, spans=True),
    "coalesce": Effect("wire", _planned("coalesce")),
    "rate": Effect("wire", _planned("rate"), spans=True),
    "stderr": Effect("life", _stderr),
    "child": Effect("life", _child),
    "ignore": Effect("life", _ignore),
    "stall": Effect("life", _stall),
    "disconnect": Effect("life", _disconnect),
    "exit": Effect("life", _exit),
}
"""In the order in which the effects of one fault apply: from meaning to bytes."""

RANK = {name: rank for rank, name in enumerate(EFFECTS)}
