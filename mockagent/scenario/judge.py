"""What can only be said about a scenario as a whole: names that nothing keeps, faults that concern nothing, legality.

Works on nodes, so that it has its say about files with other mistakes too.
"""

from __future__ import annotations

from collections.abc import Callable

from mockagent.scenario import kinds
from mockagent.scenario.faults import judge_fault
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
        judge_fault(node, path, own, b)
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


def _names_a_tool_call(root: Node, b: Build) -> bool:
    """A call with an id of its own has it again whenever its steps are played again."""
    calls = (step.get("tool") for verb, step, _ in b.steps if verb == "tool")
    return any(call is not None and call.kind == "map" and call.get("id") is not None for call in calls)


def _goes_on_after_stop(root: Node, b: Build) -> bool:
    return any(verb == "stop" and _stop_is_odd(node, path, b) for verb, node, path in b.steps)


def _stop_is_odd(node: Node, path: str, b: Build) -> bool:
    """Steps stand behind it, or it says `cancelled` of its own."""
    parent, _, index = path.rpartition("/")
    behind = index.isdigit() and any(other == f"{parent}/{int(index) + 1}" for _, _, other in b.steps)
    reason = node.get("stop")
    return behind or (reason is not None and reason.text == "cancelled")


#: raw verbs, those with which a tool call or a cancel can be told wrongly, and those that can leave the session's roots
_LOOSE_VERBS = RAW_VERBS | {"tool_start", "tool_update", "wait_for", "stderr", "read", "write", "terminal"}
_WAYS: tuple[Callable[[Node, Build], bool], ...] = (
    _has_fault,
    _has_raw_step,
    _has_unusual_value,
    _has_awkward_sessions,
    _goes_on_after_stop,
    _names_a_tool_call,
)


def _violates(root: Node, b: Build) -> bool:
    return any(way(root, b) for way in _WAYS)
