"""What can only be said about a scenario as a whole: names that nothing keeps, faults that concern nothing, legality.

Works on nodes, so that it has its say about files with other mistakes too.
"""

from __future__ import annotations

from collections.abc import Callable

from mockagent.scenario import kinds
from mockagent.scenario.effects import EFFECTS, Effect
from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed, suggestion
from mockagent.scenario.top import SHORTHANDS
from mockagent.scenario.types import Build
from mockagent.scenario.verbs import RAW_VERBS


def judge(root: Node, b: Build) -> None:
    """Adds the problems of the whole file to those of its parts."""
    own = _own_names(b)
    _saved(b)
    for node, path in b.faults:
        _fault(node, path, own, b)
    _methods(own, b)
    _afters(own, b)
    if b.legality == "violation" and not _violates(root, b):
        at = root.get("legality") or root
        b.wrong(
            at,
            "`legality: violation`, and nothing here can violate anything: no fault, no awkward `sessions` key, "
            f"no unusual value and none of the steps {listed(sorted(RAW_VERBS))}; say `allowed`",
            "legality",
        )


def _own_names(b: Build) -> set[str]:
    """Kinds of messages that the scenario itself brings up."""
    own: set[str] = set()
    for verb, step, _ in b.steps:
        payload = step.get(verb)
        key = {"request": "method", "notify": "method", "update": "sessionUpdate", "send": "event"}.get(verb)
        if payload is None or key is None:
            continue
        named = payload if payload.kind == "text" and verb != "send" else payload.get(key)
        if named is not None and named.kind == "text":
            own.add(f"{ {'send': 'event'}.get(verb, verb) }:{named.text}")
    return own


def _saved(b: Build) -> None:
    for name, node, path in b.uses:
        if name not in b.saves:
            near = suggestion(name, b.saves) or "; a `save` somewhere in the scenario keeps it"
            b.wrong(node, f"nothing saves `{name}`{near}", path)


def _methods(own: set[str], b: Build) -> None:
    """`wait_for`, `request` and `never` name what a client can send."""
    named = []
    for verb, step, path in b.steps:
        payload = step.get(verb) if verb == "wait_for" else None
        if payload is not None:
            named.append((payload if payload.kind == "text" else payload.get("method"), f"{path}/{verb}"))
    for entry, path in b.expectations:
        if entry.kind == "map":
            named += [(entry.get(key), f"{path}/{key}") for key in ("request", "never")]
    for node, path in named:
        if node is None or node.kind != "text" or node.value is None or "${" in node.text:
            continue
        if not kinds.is_client_method(node.text, own):
            hint = kinds.near(node.text, kinds.INCOMING) or "; a client's own method begins with `_`"
            b.wrong(node, f"no client sends `{node.text:.60}`{hint}", path)


def _afters(own: set[str], b: Build) -> None:
    """`after` of an expectation names a message, or a point in life."""
    for entry, path in b.expectations:
        node = entry.get("after") if entry.kind == "map" else None
        if node is not None and node.kind == "text" and node.text and not kinds.places(node.text, own):
            b.wrong(node, f"`{node.text:.60}` names nothing{kinds.near(node.text)}", f"{path}/after")


def _fault(node: Node, path: str, own: set[str], b: Build) -> None:
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
    when = node.get("when")
    transport = when.get("transport") if when is not None and when.kind == "map" else None
    for key, _ in node.pairs:
        effect = EFFECTS.get(key.text)
        if effect is None:
            continue
        if not any(_possible(effect, place) for place in where):
            b.wrong(key, f"`{effect.name}` cannot happen at `{at.text}`: {_where(effect)}", f"{path}/{key.text}")
        elif transport is not None and transport.kind == "text" and transport.text not in effect.transports:
            b.wrong(
                key,
                f"`{effect.name}` is for {listed(effect.transports)}, and the fault is for `{transport.text}` only",
                f"{path}/{key.text}",
            )
    _ignored(node, at, path, b)


def _possible(effect: Effect, place: str) -> bool:
    """A request for the list, or for a stream, is also something that comes in."""
    return place in effect.on or (place in ("list", "stream") and "in" in effect.on)


def _where(effect: Effect) -> str:
    words = {
        "in": "a message that comes in",
        "out": "one that goes out",
        "list": "a request for the list of sessions (`list`)",
        "life": "a point in life",
        "stream": "the opening of a stream (`GET /acp`)",
    }
    return "it is for " + ", or ".join(words[place] for place in effect.on)


_IGNORE_AT: dict[str, tuple[str, ...]] = {
    "cancel": ("cancel", "session/cancel", "start", "connected"),
    "eof": ("eof", "start", "connected"),
    "sigterm": ("sigterm", "start", "connected"),
    "ping": ("ping", "start", "connected"),
}


def _ignored(node: Node, at: Node, path: str, b: Build) -> None:
    ignore = node.get("ignore")
    if ignore is None or "*" in at.text:
        return
    for item in ignore.items if ignore.kind == "list" else [ignore]:
        fitting = _IGNORE_AT.get(item.text) if item.kind == "text" else None
        if fitting is not None and at.text not in fitting:
            b.wrong(item, f"`{item.text}` cannot be ignored at `{at.text}`; use {listed(fitting)}", f"{path}/ignore")


# --- legality: what lets a scenario break a rule


def _has_fault(root: Node, b: Build) -> bool:
    return bool(b.faults)


def _has_raw_step(root: Node, b: Build) -> bool:
    return any(verb in _LOOSE_VERBS for verb, _, _ in b.steps)


def _has_unusual_value(root: Node, b: Build) -> bool:
    return b.exceeded


def _has_awkward_sessions(root: Node, b: Build) -> bool:
    sessions = root.get("sessions")
    return sessions is not None and any(sessions.get(key) is not None for key in (*SHORTHANDS, "busy", "replay"))


def _goes_on_after_stop(root: Node, b: Build) -> bool:
    return any(verb == "stop" and _stop_is_odd(node, path, b) for verb, node, path in b.steps)


def _stop_is_odd(node: Node, path: str, b: Build) -> bool:
    """Steps stand behind it, or it says `cancelled` of its own."""
    parent, _, index = path.rpartition("/")
    behind = index.isdigit() and any(other == f"{parent}/{int(index) + 1}" for _, _, other in b.steps)
    reason = node.get("stop")
    return behind or (reason is not None and reason.text == "cancelled")


#: raw verbs, and those with which a tool call or a cancel can be told wrongly
_LOOSE_VERBS = RAW_VERBS | {"tool_start", "tool_update", "wait_for", "stderr"}
_WAYS: tuple[Callable[[Node, Build], bool], ...] = (
    _has_fault,
    _has_raw_step,
    _has_unusual_value,
    _has_awkward_sessions,
    _goes_on_after_stop,
)


def _violates(root: Node, b: Build) -> bool:
    return any(way(root, b) for way in _WAYS)
