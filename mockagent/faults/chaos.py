"""Draws faults by chance, from everything that faults can do: `--chaos RATE[:KINDS]`.

The engine asks at its hooks, behind the scenario's own faults, and treats what it gets like any of those. Only effects
are drawn that the message, its protocol and its transport can have; nothing is done here. The draws of one session
depend on the seed and on that session's messages alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

import msgspec

from mockagent.faults.answer import speaks_http
from mockagent.faults.effects import EFFECTS
from mockagent.faults.memory import BY_CHANCE, expects_reply
from mockagent.message import Message, Peer
from mockagent.scenario.model import Count, Fault, Step, When

KINDS = tuple(dict.fromkeys(effect.layer for effect in EFFECTS.values()))
"""What can be chosen at large; the names of effects can be chosen as well."""

MOST_SESSIONS = 4096
"""Sessions whose draws go on where they ended; clients can name new ones without end."""

_MS = 1000
"""Spans are microseconds."""


class Wish(msgspec.Struct, frozen=True):
    """How much of what.

    Attributes:
        rate: how often a message or a point in life meets a fault, from 0 to 1.
        effects: the names of effects that may be drawn.
    """

    rate: float
    effects: frozenset[str]


def parse(text: str) -> Wish:
    """Reads `RATE` or `RATE:KINDS`, as in `0.05:order,wire`.

    Raises:
        ValueError: it is none; says what is allowed.
    """
    number, colon, names = text.partition(":")
    try:
        rate = float(number)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise ValueError(f"`{number}` is no rate: a number from 0 to 1")
    chosen: set[str] = set()
    for name in (part.strip() for part in names.split(",")) if colon else KINDS:
        if name not in KINDS and name not in EFFECTS:
            raise ValueError(f"`{name}` is no kind of fault: {', '.join(KINDS)}, or an effect: {', '.join(EFFECTS)}")
        chosen |= {effect for effect, row in EFFECTS.items() if name in (effect, row.layer)}
    return Wish(rate, frozenset(chosen))


# --- what can be drawn


class Spot(NamedTuple):
    """Where a fault is to happen.

    Attributes:
        place: `in` (a request), `notice`, `answer`, `reply`, `out`, or `life`.
        peer: None at a point in life that is nobody's.
        message: None at a point in life.
        kind: of the message, or the name of the point.
    """

    place: str
    kind: str
    peer: Peer | None
    message: Message | None = None
    session: str | None = None

    @property
    def transport(self) -> str:
        return self.peer.transport if self.peer is not None else ""

    @property
    def acp(self) -> bool:
        return self.peer is not None and self.peer.protocol == "acp"

    @property
    def whole_http(self) -> bool:
        """It is a message of HTTP itself."""
        return self.message is not None and speaks_http(self.message)

    @property
    def streamed(self) -> bool:
        """It leaves as an event of a stream, and not as the body of a reply."""
        return self.transport == "http" and self.place == "out"


Draw = Callable[[Random, Spot], Any]


class Row(NamedTuple):
    """One effect.

    Attributes:
        places: where it can be.
        draw: gives a value, as the loader would hand it on.
        fits: what else has to hold.
    """

    places: tuple[str, ...]
    draw: Draw
    fits: Callable[[Spot], bool] = lambda spot: True


def _one(*values: Any) -> Draw:
    return lambda rng, spot: rng.choice(values)


def _span(low: int, high: int) -> Draw:
    """A span between two numbers of milliseconds."""
    return lambda rng, spot: rng.randint(low, high) * _MS


def _size(spot: Spot) -> int:
    """Bytes of the message's text; 0 if it has none."""
    message = spot.message
    return len(message.text) if message is not None and (message.data is not None or message.raw) else 0


_JSONRPC_ERRORS = (
    "internal_error", "overloaded", "rate_limited", "invalid_params", "method_not_found", "session_not_found",
    "auth_required", "cancelled",
)  # fmt: skip
_STATUSES = (400, 404, 408, 429, 500, 502, 503, 504)


def _error(rng: Random, spot: Spot) -> Any:
    if spot.whole_http:
        return {"status": rng.choice(_STATUSES), "body": {"error": {"code": "chaos", "message": "Drawn by chance."}}}
    return rng.choice((*_JSONRPC_ERRORS, {"code": -32000 - rng.randint(10, 99), "message": "Drawn by chance."}))


def _edit(rng: Random, spot: Spot) -> Any:
    """One member is gone, or has another type."""
    assert spot.message is not None
    pointer, old = rng.choice(list(_members(spot)))
    if rng.random() < 0.3:
        return ({"remove": pointer},)
    return ({"set": pointer, "to": rng.choice([value for value in _STRANGE if type(value) is not type(old)])},)


_STRANGE: tuple[Any, ...] = (None, 7, "", True, [], {}, "telepathy", -1)


def _members(spot: Spot) -> Iterator[tuple[str, Any]]:
    """What an edit can reach: everything but the frame of JSON-RPC."""
    data = spot.message.data if spot.message is not None else None
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        if "jsonrpc" in data and key not in ("params", "result", "error"):
            continue
        yield from _below(f"/{_token(key)}", value)


def _below(pointer: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield pointer, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _below(f"{pointer}/{_token(str(key))}", part)


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _hold(rng: Random, spot: Spot) -> Any:
    until: list[Any] = [rng.randint(20, 300) * _MS]
    if spot.place == "reply":
        until.append("reply")
    elif spot.session is not None:
        until += ["turn_ended", "next_prompt", "never"]
    return {"until": rng.choice(until)}


def _steps(rng: Random, spot: Spot) -> tuple[Step, ...]:
    """Something that nobody has asked for."""
    return (rng.choice(_UNASKED),)


_UNASKED = (
    Step(verb="update", payload={"sessionUpdate": "session_info_update", "title": "Drawn by chance"}, place=BY_CHANCE),
    Step(verb="update", payload={"sessionUpdate": "_chaos", "note": "Drawn by chance"}, place=BY_CHANCE),
    Step(
        verb="update",
        payload={"sessionUpdate": "tool_call_update", "toolCallId": "call_of_nobody", "status": "completed"},
        place=BY_CHANCE,
    ),
    Step(
        verb="update",
        payload={"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Drawn by chance."}},
        place=BY_CHANCE,
    ),
)


def _rows(rng: Random, spot: Spot) -> Any:
    changes = ({"title": None}, {"title": "x" * 600}, {"updatedAt": "yesterday"}, {"cwd": ""}, {"sessionId": ""})
    return ({"match": "*", "set": rng.choice(changes), "copies": rng.randint(1, 2)},)


def _bytes(rng: Random, spot: Spot) -> Any:
    noise = ["\x1b[0m", "Loading...\n", "\ufeff", "}\n", "\x00"] + ["\n\n"] * (spot.transport != "ws")
    return {rng.choice(("before", "after")): rng.choice(noise)}


def _split(rng: Random, spot: Spot) -> Any:
    into = rng.choice(("writes", "frames", "messages") if spot.transport == "ws" else ("writes", "writes", "messages"))
    if spot.whole_http:
        into = "writes"
    value: dict[str, Any] = {"into": into}
    if rng.random() < 0.5:
        value["pause"] = rng.randint(1, 50) * _MS
    wide = spot.message is not None and not spot.message.text.isascii()
    return value | ({"at": "utf8"} if wide and rng.random() < 0.5 else {"parts": rng.randint(2, 5)})


def _newline(rng: Random, spot: Spot) -> Any:
    return rng.choice(("crlf", "cr", "double") if spot.transport == "http" else ("crlf", "none", "double"))


def _rate(rng: Random, spot: Spot) -> float:
    """So slow that the message takes between a tenth of a second and one."""
    return float(max(1, round(_size(spot) / rng.uniform(0.1, 1.0))))


def _disconnect(rng: Random, spot: Spot) -> Any:
    if spot.transport in _PIPES:
        return "close"
    if spot.transport == "ws" and rng.random() < 0.5:
        return {"code": rng.choice((1001, 1008, 1011, 1012, 1013, 4000)), "reason": "Drawn by chance"}
    return rng.choice(("close", "reset", "half"))


def _exit(rng: Random, spot: Spot) -> Any:
    import signal

    return rng.choice(({"code": 0}, {"code": 1}, {"code": 137}, {"signal": int(signal.SIGKILL)}))


def _stderr(rng: Random, spot: Spot) -> Any:
    return rng.choice(({"text": "WARNING drawn by chance\n"}, {"text": "drawn by chance\n", "bytes": 70_000}))


def _ignore(rng: Random, spot: Spot) -> Any:
    return ("ping",) if spot.kind == "ping" else ("cancel",)


_PIPES = ("stdio", "memory")
_SENT = ("reply", "out")
_NAMED = ("in", "notice", "answer", *_SENT)

DRAWS: dict[str, Row] = {
    "error": Row(("in", "reply"), _error, lambda spot: spot.kind != "GET /acp"),
    "result": Row(("in", "reply"), _one(None, {}, [], "ok"), lambda spot: not spot.whole_http),
    "edit": Row(_SENT, _edit, lambda spot: next(_members(spot), None) is not None),
    "event_name": Row(("out",), _one("unheard_of", ""), lambda spot: spot.kind.startswith("event:")),
    "drop": Row(_NAMED, _one(True)),
    "copies": Row(_SENT, lambda rng, spot: rng.randint(2, 3), lambda spot: not spot.whole_http),
    "delay": Row(("notice", "answer", *_SENT), _span(10, 500)),
    "hold": Row(_SENT, _hold, lambda spot: spot.acp and not spot.whole_http),
    "play_before": Row(_SENT, _steps, lambda spot: spot.acp and spot.session is not None),
    "play_after": Row(_SENT, _steps, lambda spot: spot.acp and spot.session is not None),
    "resend": Row(("in",), _one("unseen", "all", "none"), lambda spot: spot.kind == "GET /acp"),
    "cursor": Row(("list",), _one("repeat", "cycle", "empty", "null", "endless", "expired")),
    "page": Row(("list",), _one("empty", "shrink", "shuffle", {"overlap": 1})),
    "rows": Row(("list",), _rows),
    "escape": Row(_SENT, _one("ascii"), lambda spot: spot.message is not None and not spot.message.text.isascii()),
    "newline": Row(_SENT, _newline, lambda spot: spot.transport in _PIPES or spot.streamed),
    "binary": Row(_SENT, _one(True), lambda spot: spot.transport == "ws"),
    "comment": Row(_SENT, _one("", "keep-alive"), lambda spot: spot.transport == "ws" or spot.streamed),
    "no_blank": Row(("out",), _one(True), lambda spot: spot.streamed),
    "truncate": Row(_SENT, lambda rng, spot: rng.randrange(_size(spot)), lambda spot: _size(spot) > 1),
    "bytes": Row(_SENT, _bytes),
    "split": Row(_SENT, _split, lambda spot: _size(spot) > 1),
    "coalesce": Row(("out",), _one(2), lambda spot: spot.message is not None and spot.message.origin == "turn"
                    and spot.session is not None and not spot.kind.startswith("request:")),
    "rate": Row(_SENT, _rate, lambda spot: _size(spot) > 1),
    "stderr": Row((*_NAMED, "life"), _stderr),
    "ignore": Row(("notice", "life"), _ignore, lambda spot: spot.kind in ("session/cancel", "ping")),
    "stall": Row((*_SENT, "life"), lambda rng, spot: {rng.choice(("write", "read")): rng.randint(50, 500) * _MS},
                 lambda spot: spot.peer is not None and spot.kind not in ("closed", "start")),
    "disconnect": Row(("in", *_SENT), _disconnect),
    "exit": Row(("in", *_SENT), _exit, lambda spot: spot.transport in _PIPES),
}  # fmt: skip
"""Effect -> how it is drawn. Never drawn: what outlives its client (`child`, `ignore: eof`, `ignore: sigterm`), for
nobody would end it; and the end of a process that serves several clients."""

_POINTS = frozenset({"connected", "session_opened", "turn_started", "turn_ended", "ping"})
"""Points in life at which something may happen; the others come without end, or when nobody listens."""


# --- drawing


class Chaos:
    """What the engine asks.

    Args:
        wish: how much of what.
        fresh: makes the generator of a purpose and a session (`world.seeds.Seeds.fresh`).

    Attributes:
        lag: see `faults.interface.Faults`: a message that is to leave with the next one has to wait for it.
    """

    def __init__(self, wish: Wish, fresh: Callable[[str, str | None], Random]) -> None:
        self._wish = wish
        self._fresh = fresh
        self._rngs: dict[str | None, Random] = {}
        self._counts: dict[str, int] = {}
        self._together: set[str | None] = set()

    @property
    def lag(self) -> int:
        return 1 if self._together else 0

    def arriving(self, message: Message) -> Fault | None:
        """A fault for what has come in."""
        place = "answer" if message.kind.startswith("answer:") else "in" if expects_reply(message) else "notice"
        return self._draw(Spot(place, message.kind, message.peer, message, message.session))

    def leaving(self, message: Message) -> Fault | None:
        """A fault for what is to leave."""
        place = "reply" if message.kind.startswith("reply:") else "out"
        spot = Spot(place, message.kind, message.peer, message, message.session)
        if message.session in self._together:
            self._together.discard(message.session)
            return self._fault(spot, {"coalesce": 2}, self._count(spot))
        made = self._draw(spot)
        if made is not None and "coalesce" in made.effects:  # with the next one, which has still to come
            self._together.add(message.session)
            return None
        return made

    def living(self, point: str, peer: Peer | None, session: str | None) -> Fault | None:
        """A fault for a point in life."""
        return self._draw(Spot("life", point, peer, None, session)) if point in _POINTS else None

    def _draw(self, spot: Spot) -> Fault | None:
        number = self._count(spot)
        rng = self._rng(spot.session)
        if rng.random() >= self._wish.rate:
            return None
        able = [name for name, row in DRAWS.items() if name in self._wish.effects and _can(row, spot)]
        if not able:
            return None
        layer = rng.choice(list(dict.fromkeys(EFFECTS[name].layer for name in able)))
        name = rng.choice([name for name in able if EFFECTS[name].layer == layer])
        return self._fault(spot, {name: DRAWS[name].draw(rng, spot)}, number)

    def _fault(self, spot: Spot, effects: Mapping[str, Any], number: int) -> Fault:
        when = When(nth=Count(numbers=frozenset({number})), per="process")
        return Fault(at=spot.kind, when=when, effects=dict(effects), place=BY_CHANCE)

    def _count(self, spot: Spot) -> int:
        """Which of its kind it is, in the whole process."""
        if spot.kind not in self._counts and len(self._counts) >= MOST_SESSIONS:
            self._counts.pop(next(iter(self._counts)))
        number = self._counts[spot.kind] = self._counts.get(spot.kind, 0) + 1
        return number

    def _rng(self, session: str | None) -> Random:
        rng = self._rngs.get(session)
        if rng is None:
            if len(self._rngs) >= MOST_SESSIONS:
                self._rngs.pop(next(iter(self._rngs)))
            rng = self._rngs[session] = self._fresh("chaos", session)
        return rng


def _can(row: Row, spot: Spot) -> bool:
    message = spot.message
    listing = "list" in row.places and spot.place == "in" and message is not None and message.neutral == "list"
    return (listing or spot.place in row.places) and row.fits(spot)
