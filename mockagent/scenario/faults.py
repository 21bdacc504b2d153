"""What can be said about one fault without playing it: whether it can ever fire, and do there what it says.

A fault has to name something; each of its effects has to be possible there, in at least one protocol over one
transport, and that has to be the same one for all of them and for the fault's `when`. Works on nodes.
"""

from __future__ import annotations

from mockagent.scenario import kinds
from mockagent.scenario.effects import EFFECTS, Effect
from mockagent.scenario.kinds import Carrier
from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed
from mockagent.scenario.types import Build


def judge_fault(node: Node, path: str, own: set[str], b: Build) -> None:
    """Adds the problems of one fault.

    Args:
        node: the fault.
        path: its path in the file.
        own: kinds of messages that the scenario itself brings up.
        b: collects problems.
    """
    at = node.get("at") if node.kind == "map" else None
    if at is None or at.kind != "text" or not at.text:
        return
    where = kinds.places(at.text, own)
    if not where:
        hint = kinds.near(at.text)
        more = hint or (
            "; `at` is a method (`session/list`, `GET /sessions`), something outgoing (`reply:session/prompt`, "
            f"`update:tool_call`), one of {listed([*kinds.NEUTRAL_IN, *kinds.NEUTRAL_OUT])}, or a point in life"
        )
        b.wrong(at, f"`{at.text:.60}` names nothing{more}", f"{path}/at")
        return
    _effects(node, at, path, where, _carriers(node, at, path, own, b), b)
    _ignored(node, at, path, b)
    _held(node, at, path, where, b)
    _starts(node, at, path, b)


# --- where it can be


def _carriers(node: Node, at: Node, path: str, own: set[str], b: Build) -> frozenset[Carrier] | None:
    """Protocols and transports in which the fault can fire; None: it cannot, and that has been said."""
    found = kinds.carriers(at.text, own)
    when = node.get("when")
    if when is None or when.kind != "map":
        return found
    for key, index in (("protocol", 0), ("transport", 1)):
        wanted = when.get(key)
        if wanted is None or wanted.kind != "text":
            continue
        left = frozenset(carrier for carrier in found if carrier[index] == wanted.text)
        if not left and wanted.text in ("acp", "aap", "stdio", "ws", "http"):
            b.wrong(wanted, f"`{at.text}` is never met there: it is for {_words(found)}", f"{path}/when/{key}")
            return None
        found = left or found
    return found


def _words(carriers: frozenset[Carrier]) -> str:
    """Protocols with their transports."""
    names = {"stdio": "stdio", "ws": "WebSocket", "http": "HTTP"}
    told = []
    for protocol in ("acp", "aap"):
        over = [name for transport, name in names.items() if (protocol, transport) in carriers]
        if over:
            told.append(f"{protocol.upper()} over {', '.join(over)}")
    return " and ".join(told)


# --- what it can do there


def _effects(
    node: Node, at: Node, path: str, where: frozenset[str], carriers: frozenset[Carrier] | None, b: Build
) -> None:
    left = carriers
    for key, value in node.pairs:
        effect = EFFECTS.get(key.text)
        if effect is None:
            continue
        if not any(_possible(effect, place) for place in where):
            b.wrong(key, f"`{effect.name}` cannot happen at `{at.text}`: {_where(effect)}", f"{path}/{key.text}")
            continue
        if carriers is None or left is None:
            continue
        can = _can(effect, value, at.text)
        if can & left:
            left &= can
            continue
        but = f"this fault is for {_words(carriers)} only"
        if can & carriers:
            but = "no effect before it is possible there"
        b.wrong(key, f"{_named(effect, value, at.text)} is for {_words(can)}, and {but}", f"{path}/{key.text}")


def _possible(effect: Effect, place: str) -> bool:
    """A request for the list, or for a stream, is also something that comes in; a reply is something that goes out."""
    return place in effect.on or (place in ("list", "stream") and "in" in effect.on)


_PLACES = {
    "in": "a request that comes in",
    "notice": "a notification that comes in",
    "answer": "the answer to a request of the agent",
    "reply": "a reply",
    "out": "another message that goes out",
    "list": "a request for the list of sessions (`list`)",
    "life": "a point in life",
    "stream": "the opening of a stream (`GET /acp`)",
}


def _where(effect: Effect) -> str:
    return "it is for " + ", or ".join(_PLACES[place] for place in effect.on)


def _can(effect: Effect, value: Node, at: str) -> frozenset[Carrier]:
    """Where an effect is possible, with this value."""
    can = frozenset(carrier for carrier in kinds.CARRIERS if carrier[1] in effect.transports)
    narrow = _NARROW.get(effect.name)
    return can & narrow(value, at) if narrow is not None else can


def _named(effect: Effect, value: Node, at: str) -> str:
    """The effect, with what makes its value special."""
    if effect.name == "split":
        return "`split` into frames" if _can(effect, value, at) == _WEBSOCKET else "`split`"
    special = {"error": "error: {status}", "disconnect": "disconnect: {code}"}
    return f"`{special.get(effect.name, effect.name) if value.kind == 'map' else effect.name}`"


_WEBSOCKET = frozenset({("acp", "ws")})
_HTTP = frozenset(carrier for carrier in kinds.CARRIERS if carrier[1] != "stdio")
_AAP = frozenset(carrier for carrier in kinds.CARRIERS if carrier[0] == "aap")


def _of_error(value: Node, at: str) -> frozenset[Carrier]:
    """HTTP itself answers AAP's requests, and those that carry ACP; a method of ACP is answered in JSON-RPC."""
    if value.kind != "map" or value.get("status") is None:
        return kinds.CARRIERS
    return _HTTP if "/acp" in at or "*" in at else _AAP


def _of_disconnect(value: Node, at: str) -> frozenset[Carrier]:
    return _WEBSOCKET if value.kind == "map" and value.get("code") is not None else kinds.CARRIERS


def _of_split(value: Node, at: str) -> frozenset[Carrier]:
    into = value.get("into") if value.kind == "map" else None
    return _WEBSOCKET if into is not None and into.kind == "text" and into.text == "frames" else kinds.CARRIERS


_NARROW = {"error": _of_error, "disconnect": _of_disconnect, "split": _of_split}
"""Effects that some of their values confine."""


# --- single effects

_FROM_THE_START = ("start", "connected")
_IGNORE_AT: dict[str, tuple[str, ...]] = {
    "cancel": ("cancel", "session/cancel", "turn", "session/prompt", "turn_started", *_FROM_THE_START),
    "eof": ("eof", *_FROM_THE_START),
    "sigterm": ("sigterm", *_FROM_THE_START),
    "ping": ("ping", *_FROM_THE_START),
}


def _ignored(node: Node, at: Node, path: str, b: Build) -> None:
    ignore = node.get("ignore")
    if ignore is None or "*" in at.text:
        return
    for item in ignore.items if ignore.kind == "list" else [ignore]:
        fitting = _IGNORE_AT.get(item.text) if item.kind == "text" else None
        if fitting is not None and at.text not in fitting:
            b.wrong(item, f"`{item.text}` cannot be ignored at `{at.text}`; use {listed(fitting)}", f"{path}/ignore")


def _held(node: Node, at: Node, path: str, where: frozenset[str], b: Build) -> None:
    """What is held until another reply has to be a reply itself."""
    hold = node.get("hold")
    until = hold.get("until") if hold is not None and hold.kind == "map" else hold
    if until is None or until.kind != "text" or until.text != "reply" or where & {"in", "list", "stream", "reply"}:
        return
    why = f"`{at.text}` is no reply, and would be held for ever: `reply` is the next one to the same method"
    b.wrong(until, why, f"{path}/hold")


def _starts(node: Node, at: Node, path: str, b: Build) -> None:
    if at.text != "start":
        return
    for name in ("disconnect", "stall"):
        key = next((key for key, _ in node.pairs if key.text == name), None)
        if key is not None:
            b.wrong(key, f"nobody is connected yet at `start`; use `{name}` at `connected`", f"{path}/{name}")
