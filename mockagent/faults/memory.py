"""What the engine keeps between hooks: its rules, and what has to happen to the replies of requests under way.

A fault written at a request acts on the reply, and its wire effects on all that leaves for the session until then; so
each request is remembered, with that, until its reply leaves or its connection is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mockagent.faults.answer import speaks_http
from mockagent.faults.effects import EFFECTS, RANK
from mockagent.faults.select import POINTS, TOLD, Selector, is_outgoing
from mockagent.message import NO_ID, Message
from mockagent.scenario.model import Fault, Place

MOST_PENDING = 1000
"""Requests remembered for one connection; the oldest are forgotten."""

BY_CHANCE = Place(file="chaos")
"""Where faults say that they stand which no scenario has written (`faults.chaos`)."""

_ANSWERS = frozenset({"error", "result"})
_AT_ONCE = frozenset({"drop", "resend", "stderr", "child", "ignore"})
_LIFE = frozenset({"stall", "disconnect", "exit"})
_LIST = frozenset(name for name, effect in EFFECTS.items() if effect.layer == "list")
_SPANS = frozenset(name for name, effect in EFFECTS.items() if effect.spans)
_PLAYS = frozenset({"play_before", "play_after"})
_OF_NO_SESSION = frozenset({
    "initialize", "authenticate", "logout", "session/list", "session/new", "list", "create", "GET /meta",
    "GET /sessions", "POST /sessions",
})  # fmt: skip
"""Requests that belong to no session: nothing else leaves for theirs until they are answered."""


class Rule:
    """An armed fault, with what can be said of it beforehand.

    Attributes:
        effects: in the order in which they apply.
        at_once: at a request, those that do not wait for its reply. The end of a channel or the process waits if
            the fault does anything else to the reply; steps wait, unless there will be none.
        refusal: the error of a handler that it stands in for (`at: refusal:NAME`, from the shorthands of `sessions`).
        spanning: those that, at a request, hold for all that leaves for its session until the reply has left.
    """

    __slots__ = ("at_once", "effects", "fault", "names", "overlaps", "refusal", "selector", "spanning")

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.selector = Selector(fault.at)
        self.effects = tuple(sorted(fault.effects.items(), key=lambda item: RANK.get(item[0], 0)))
        self.names = tuple(name for name, _ in self.effects)
        given = frozenset(self.names)
        dropped = "drop" in given
        on_reply = given - _AT_ONCE - _LIFE - _LIST
        waits = frozenset() if dropped else on_reply
        self.at_once = _AT_ONCE | (frozenset() if waits else _LIFE) | (_PLAYS if dropped else frozenset())
        spans = _SPANS if fault.at not in _OF_NO_SESSION else frozenset()
        self.spanning = tuple((name, value) for name, value in self.effects if name in spans)
        self.overlaps = isinstance(fault.effects.get("page"), Mapping)
        self.refusal = fault.at.removeprefix("refusal:") if fault.at.startswith("refusal:") else None

    def concerns(self, kind: str, neutral: str | None) -> bool:
        """Whether the fault could act on messages of a kind, by itself or by what it did at a request."""
        if not is_outgoing(kind):
            ignores = neutral == "cancel" and "cancel" in self.fault.effects.get("ignore", ())
            return ignores or self.selector.incoming(kind, neutral) or self.asks_request(kind, neutral)
        if self.selector.outgoing(kind, neutral):
            return True
        return self._may_be_at_request and (bool(self.spanning) or kind.startswith("reply:") or neutral == "stop")

    @property
    def _may_be_at_request(self) -> bool:
        at = self.fault.at
        return self.refusal is None and not is_outgoing(at) and at not in TOLD and at not in POINTS

    def asks_request(self, method: str, neutral: str | None) -> bool:
        """Whether the fault is written at the reply to such a request, and looks at the request."""
        when = self.fault.when
        if when is None or when.params is None:
            return False
        return self.selector.outgoing(f"reply:{method}", "stop" if neutral == "turn" else None)


class Deferred:
    """What a fault has still to do for a request that it was written at."""

    __slots__ = ("effects", "groups", "rule")

    def __init__(self, rule: Rule, effects: Sequence[tuple[str, Any]], groups: Mapping[str, str | None]) -> None:
        self.rule = rule
        self.effects = effects
        self.groups = groups


class Pending:
    """A request under way.

    Attributes:
        request: as its handler sees it.
        asked: the cursor that the client sent, if it asks for a page.
        deferred: what happens to its reply.
        listing: what happens to its page.
    """

    __slots__ = ("asked", "deferred", "listing", "request")

    def __init__(self, request: Message, asked: str | None) -> None:
        self.request = request
        self.asked = asked
        self.deferred: list[Deferred] = []
        self.listing: list[Deferred] = []


class Memory:
    """Requests under way, by connection, in the order in which they came."""

    def __init__(self) -> None:
        self._peers: dict[str, list[Pending]] = {}

    def add(self, pending: Pending) -> None:
        """A request goes to its handler."""
        under_way = self._peers.setdefault(pending.request.peer.id, [])
        under_way.append(pending)
        del under_way[:-MOST_PENDING]

    def find(self, message: Message) -> Pending | None:
        """What is remembered of a request, given it, an edited copy of it or its reply."""
        for pending in self._peers.get(message.peer.id, ()):
            if _belongs(message, pending.request):
                return pending
        return None

    def pop(self, message: Message) -> Pending | None:
        """The same, and it is remembered no more."""
        pending = self.find(message)
        if pending is not None:
            self._remove(pending)
        return pending

    def forget(self, peer: str) -> None:
        """A connection is gone."""
        self._peers.pop(peer, None)

    def _remove(self, pending: Pending) -> None:
        under_way = self._peers[pending.request.peer.id]
        under_way.remove(pending)
        if not under_way:
            del self._peers[pending.request.peer.id]

    # --- what is due

    def due(self, message: Message) -> tuple[dict[Rule, Deferred], Message | None]:
        """What faults at requests do to a message that leaves, by rule; and its request, if it is a reply.

        The reply to a turn that is streamed over HTTP has a head, which opens the stream, and an event that ends it:
        that one counts as the reply, and the head only for edits of itself.
        """
        if message.peer.id not in self._peers:
            return {}, None
        if message.kind.startswith("reply:"):
            pending = self.find(message)
            if pending is None:
                return {}, None
            if is_stream_head(message):
                return _of_head(pending), pending.request
            self._remove(pending)
            return {deferred.rule: deferred for deferred in pending.deferred}, pending.request
        due = self._spanning(message)
        if message.neutral == "stop" and message.kind.startswith("event:"):
            pending = self._stream(message)
            if pending is not None:
                self._remove(pending)
                due |= _of_end(pending)
        return due, None

    def _spanning(self, message: Message) -> dict[Rule, Deferred]:
        """What holds for all that leaves in a session while a request there is under way."""
        if message.session is None:
            return {}
        return {
            deferred.rule: Deferred(deferred.rule, deferred.rule.spanning, deferred.groups)
            for pending in self._peers[message.peer.id]
            if pending.request.session == message.session
            for deferred in pending.deferred
            if deferred.rule.spanning
        }

    def _stream(self, message: Message) -> Pending | None:
        for pending in self._peers[message.peer.id]:
            if pending.request.neutral == "turn" and pending.request.session == message.session:
                return pending
        return None


def _of_head(pending: Pending) -> dict[Rule, Deferred]:
    """The edits that reach for a head; wire effects begin behind it."""
    return {
        deferred.rule: Deferred(deferred.rule, [("edit", entries)], deferred.groups)
        for deferred in pending.deferred
        if (entries := _edits(deferred, of_head=True))
    }


def _of_end(pending: Pending) -> dict[Rule, Deferred]:
    """All else, at the event that ends the stream."""
    due = {}
    for deferred in pending.deferred:
        effects = [(name, value) for name, value in deferred.effects if name != "edit"]
        if entries := _edits(deferred, of_head=False):
            effects = sorted([*effects, ("edit", entries)], key=lambda item: RANK[item[0]])
        due[deferred.rule] = Deferred(deferred.rule, effects, deferred.groups)
    return due


def _edits(deferred: Deferred, *, of_head: bool) -> tuple[Any, ...]:
    entries = next((value for name, value in deferred.effects if name == "edit"), ())
    return tuple(
        entry for entry in entries if str(entry.get("set", entry.get("remove", ""))).startswith("/http/") is of_head
    )


def _belongs(message: Message, request: Message) -> bool:
    """Whether a message is this request, or its reply: by id, or where there are no ids by method (and path)."""
    if message.id is not NO_ID or request.id is not NO_ID:
        return type(message.id) is type(request.id) and bool(message.id == request.id)
    return (message.method or message.kind.removeprefix("reply:")) == (request.method or request.kind)


def expects_reply(message: Message) -> bool:
    """Whether an incoming message is a request: it has an id, or is one of HTTP itself; and it is no answer."""
    if message.kind.startswith("answer:"):
        return False
    return message.id is not NO_ID or speaks_http(message)


def is_stream_head(message: Message) -> bool:
    """Whether a reply only opens a stream of events."""
    if message.http is None:
        return False
    kinds = [value for name, value in message.http.headers.items() if name.lower() == "content-type"]
    return any(kind.strip().lower().startswith("text/event-stream") for kind in kinds)
