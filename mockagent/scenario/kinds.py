"""What `at`, `wait_for` and expectations can name: methods, updates, events, neutral kinds, points in life.

Source: ACP schema v1 (methods), its transport proposal (`/acp`), AAP's endpoints and events. Extension methods begin
with `_` and are always possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from mockagent.scenario.payloads import UPDATES
from mockagent.scenario.problems import suggestion

#: requests and notifications of an ACP client
ACP_IN = (
    "initialize",
    "authenticate",
    "logout",
    "session/new",
    "session/load",
    "session/list",
    "session/resume",
    "session/fork",
    "session/close",
    "session/delete",
    "session/prompt",
    "session/cancel",
    "session/set_mode",
    "session/set_config_option",
    "$/cancel_request",
)
#: requests of an AAP client, and those that carry ACP over HTTP
HTTP_IN = (
    "GET /meta",
    "GET /sessions",
    "POST /sessions",
    "GET /sessions/*",
    "DELETE /sessions/*",
    "GET /sessions/*/history",
    "POST /sessions/*/turns",
    "GET /acp",
    "POST /acp",
    "DELETE /acp",
)
#: requests to an ACP client
ACP_OUT = (
    "session/request_permission",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
    "elicitation/create",
)
NOTES_OUT = ("session/update", "elicitation/complete", "$/cancel_request")
EVENTS = (
    "turn_start",
    "text_delta",
    "thinking_delta",
    "text",
    "thinking",
    "tool_call",
    "tool_result",
    "turn_stop",
)
#: neutral kind -> what it means in ACP, and in AAP
NEUTRAL_IN: dict[str, tuple[str, str]] = {
    "list": ("session/list", "GET /sessions"),
    "create": ("session/new", "POST /sessions"),
    "load": ("session/load", "GET /sessions/*"),
    "turn": ("session/prompt", "POST /sessions/*/turns"),
    "cancel": ("session/cancel", "the end of a turn's response by the client"),
}
NEUTRAL_OUT: dict[str, tuple[str, str]] = {
    "say": ("update:agent_message_chunk", "event:text_delta, event:text"),
    "think": ("update:agent_thought_chunk", "event:thinking_delta, event:thinking"),
    "tool": ("update:tool_call, update:tool_call_update", "event:tool_call, event:tool_result"),
    "stop": ("reply:session/prompt", "event:turn_stop"),
}
#: point in life -> when it is
POINTS: dict[str, str] = {
    "start": "the process has started",
    "connected": "a client has connected",
    "session_opened": "a session was made, loaded or resumed",
    "session_listed": "a session was in a list",
    "turn_started": "a turn begins",
    "turn_ended": "a turn has ended",
    "mode_changed": "the client has chosen a mode",
    "option_changed": "the client has changed an option",
    "eof": "the client has closed its side",
    "sigterm": "the process is asked to leave",
    "ping": "a WebSocket ping came",
    "closed": "a connection is gone",
    "idle": "nothing happens any more",
}
#: what `schedule` can start from
STARTS = (
    "connected",
    "session_opened",
    "session_listed",
    "turn_started",
    "turn_ended",
    "mode_changed",
    "option_changed",
)

INCOMING = frozenset({"in", "notice", "answer", "list", "stream"})

Carrier = tuple[str, str]
"""A protocol, and what it is spoken over."""

CARRIERS: frozenset[Carrier] = frozenset({("acp", "stdio"), ("acp", "ws"), ("acp", "http"), ("aap", "http")})

_ACP = frozenset(carrier for carrier in CARRIERS if carrier[0] == "acp")
_AAP = CARRIERS - _ACP
_NOTIFICATIONS = frozenset({"session/cancel", "$/cancel_request", "cancel"})
PREFIXES = ("reply:", "answer:", "update:", "request:", "notify:", "event:")


def _matches(pattern: str, name: str) -> bool:
    """A glob in which `*` stands for any text."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == name
    if not name.startswith(parts[0]) or not name.endswith(parts[-1]):
        return False
    at, end = len(parts[0]), len(name) - len(parts[-1])
    for part in parts[1:-1]:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


@cache
def known() -> dict[str, str]:
    """Every name that `at` can have -> where it is, one of `EVERYWHERE`."""
    names = dict.fromkeys((*ACP_IN, *HTTP_IN, *NEUTRAL_IN), "in")
    names |= dict.fromkeys(_NOTIFICATIONS, "notice")
    names |= dict.fromkeys(("session/list", "GET /sessions", "list"), "list")
    names["GET /acp"] = "stream"
    names |= dict.fromkeys((f"reply:{method}" for method in (*ACP_IN, *HTTP_IN)), "reply")
    names |= dict.fromkeys((f"answer:{method}" for method in ACP_OUT), "answer")
    names |= dict.fromkeys((f"update:{kind}" for kind in UPDATES), "out")
    names |= dict.fromkeys((f"request:{method}" for method in ACP_OUT), "out")
    names |= dict.fromkeys((f"notify:{method}" for method in NOTES_OUT), "out")
    names |= dict.fromkeys((f"event:{name}" for name in EVENTS), "out")
    names |= dict.fromkeys((*NEUTRAL_OUT, "raw"), "out") | {"stop": "reply"}
    return names | dict.fromkeys(POINTS, "life")


def places(at: str, own: Iterable[str] = ()) -> frozenset[str]:
    """Where the things are that an `at` names; empty if it names nothing.

    Args:
        at: as written in the scenario, with globs.
        own: names that the scenario itself brings up (`request:acme/ping`).
    """
    if at.startswith(("_", "reply:_", "answer:_")):
        return frozenset({"reply" if at.startswith("reply:") else "answer" if at.startswith("answer:") else "in"})
    if at.startswith(("request:_", "notify:_", "update:_", "event:_")):
        return frozenset({"out"})
    found = {where for name, where in known().items() if at == name or ("*" in at and _matches(at, name))}
    # a method may be given with a session's id or an agent's name in its path
    found |= {where for name, where in known().items() if "*" in name and _matches(name, at)}
    found |= {known()[path] for path in ("GET /acp", "POST /acp", "DELETE /acp") if at.startswith(path + "/")}
    found |= {"out" for name in own if at == name or ("*" in at and _matches(at, name))}
    return frozenset(found)


def carriers(at: str, own: Iterable[str] = ()) -> frozenset[Carrier]:
    """The protocols and transports in which what an `at` names can be met.

    Args:
        at, own: as for `places`.
    """
    found: frozenset[Carrier] = frozenset()
    for name in (*known(), *own, at):
        if name == at or ("*" in at and _matches(at, name)) or ("*" in name and _matches(name, at)):
            found |= _carried(name)
    return found


def _carried(name: str) -> frozenset[Carrier]:
    """Where one message, neutral kind or point is met."""
    name = name.removeprefix("reply:")
    if name in ("*", "raw", *NEUTRAL_IN, *NEUTRAL_OUT):
        return CARRIERS
    if name in POINTS:
        return {"eof": frozenset({("acp", "stdio")}), "ping": _ACP - {("acp", "stdio")}}.get(name, CARRIERS)
    method, _, path = name.partition(" ")
    if path == "/acp" or path.startswith("/acp/"):
        over_websocket = frozenset({("acp", "ws")}) if method == "GET" else frozenset()
        return frozenset({("acp", "http")}) | over_websocket
    return _AAP if path or name.startswith("event:") else _ACP


EVERYWHERE = frozenset({"in", "notice", "answer", "list", "stream", "reply", "out", "life"})


def near(at: str, where: frozenset[str] = EVERYWHERE) -> str:
    """Words about what may have been meant, of the names that are in these places."""
    head = next((prefix for prefix in PREFIXES if at.startswith(prefix)), "")
    return suggestion(at, [name for name, place in known().items() if name.startswith(head) and place in where])


def is_client_method(method: str, own: Iterable[str] = ()) -> bool:
    """Whether a client can send this: a method, a neutral kind, or a glob over them."""
    return bool(places(method, own) & INCOMING)
