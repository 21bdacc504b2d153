"""Says which messages and points in life a fault's `at` names, and what a `when` sees of a message.

Knows the two protocols only by the form of their kinds (`message.Message.kind`). Whether a `when` holds is
`script.match`'s to say; here its facts are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mockagent.faults.answer import speaks_http
from mockagent.message import Message, Peer
from mockagent.script.match import glob

POINTS = frozenset({
    "start", "connected", "session_opened", "session_listed", "turn_started", "turn_ended", "mode_changed",
    "option_changed", "eof", "sigterm", "ping", "closed", "idle",
})  # fmt: skip
"""Points in life."""

ASKED = frozenset({"list", "create", "load", "turn", "cancel"})
"""Neutral kinds of what comes in. A reply that carries one is not meant: `reply:` names replies."""

TOLD = frozenset({"say", "think", "tool", "stop"})
"""Neutral kinds of what goes out."""

MAKES_SESSION = frozenset({"reply:session/new", "reply:session/fork", "reply:POST /sessions"})
"""Replies that make the session they belong to. What is counted or saved there is not that session's: nobody could tell
it from any other."""

_OUTGOING = ("reply:", "update:", "request:", "notify:", "event:")

SessionFacts = Callable[["str | None", "Message | None"], Mapping[str, Any]]
"""The host's word on a session, under the keys of `when` (`script.match.Facts`).

Called with a session and the message that is being matched (None at a point in life). For a prompt that has just come
in, `prompt`, `command` and `turn` are those of the turn that it would start.
"""


def is_outgoing(kind: str) -> bool:
    """Whether messages of this kind go out."""
    return kind == "raw" or kind.startswith(_OUTGOING)


class Selector:
    """One `at`: a point in life, a neutral kind, or a glob over kinds.

    Args:
        at: as the scenario writes it.
    """

    __slots__ = ("at",)

    def __init__(self, at: str) -> None:
        self.at = at

    def incoming(self, kind: str, neutral: str | None) -> bool:
        """Whether it names an incoming message."""
        return neutral == self.at if self.at in ASKED else self._kind(kind)

    def outgoing(self, kind: str, neutral: str | None) -> bool:
        """Whether it names an outgoing message."""
        return neutral == self.at if self.at in TOLD else self._kind(kind)

    def _kind(self, kind: str) -> bool:
        return kind == self.at or ("*" in self.at and glob(self.at, kind))

    def point(self, name: str) -> bool:
        """Whether it names a point in life. `*` alone means messages."""
        return name == self.at or ("*" in self.at and self.at != "*" and name in POINTS and glob(self.at, name))

    @property
    def neutral(self) -> bool:
        """Whether it is a neutral kind."""
        return self.at in ASKED or self.at in TOLD


def facts_of(
    message: Message, told: Mapping[str, Any], request: Message | None, fill: Callable[[str], Any]
) -> dict[str, Any]:
    """The facts of a message.

    Args:
        message: as earlier faults have left it.
        told: the host's word on its session.
        request: the request that it replies to, if it is a reply and that is known.
        fill: fills the placeholders of one text.
    """
    return {
        "session": message.session,
        **told,
        "params": params_of(message if request is None else request),
        "result": result_of(message),
        "origin": message.origin,
        "protocol": message.peer.protocol,
        "transport": message.peer.transport,
        "connection": message.peer.id,
        "makes_session": message.kind in MAKES_SESSION,
        "fill": fill,
    }


def facts_of_point(
    peer: Peer | None, session: str | None, told: Mapping[str, Any], fill: Callable[[str], Any]
) -> dict[str, Any]:
    """The facts of a point in life."""
    facts = {"session": session, **told, "fill": fill}
    if peer is not None:
        facts |= {"protocol": peer.protocol, "transport": peer.transport, "connection": peer.id}
    return facts


def params_of(message: Message) -> Any:
    """What `params` is held against: that member of a JSON-RPC message; query and body of an HTTP request; an event's
    data. UNSET: there is none."""
    data = message.data
    if speaks_http(message) and message.http is not None and not is_outgoing(message.kind):
        return {**message.http.query, **data} if isinstance(data, dict) else dict(message.http.query)
    if message.kind.startswith("event:"):
        return data
    return data.get("params", msgspec.UNSET) if isinstance(data, dict) else msgspec.UNSET


def result_of(message: Message) -> Any:
    """What `result` is held against: that member of a JSON-RPC message, or an HTTP reply's body. UNSET: none.

    An error is seen as `/error/code` and so on, which is also where AAP has it.
    """
    data = message.data
    if message.kind.startswith("reply:") and speaks_http(message):
        return data
    if not isinstance(data, dict):
        return msgspec.UNSET
    return {"error": data["error"]} if "error" in data else data.get("result", msgspec.UNSET)
