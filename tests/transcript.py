"""Judges a whole conversation: our stated rules about an agent that keeps to the spec, over every message of it.

Shown each message in the order in which a client wrote and read them, and the schema's verdict on each comes with it.
Sees messages only; nothing here knows mockagent. Use it for agents whose `legality` is `allowed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.official import Official

Json = dict[str, Any]

CHUNKS = {"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"}
BETWEEN_TURNS = {
    "session_info_update",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "usage_update",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
}
"""Updates that may come while no turn runs."""

FINAL = {"completed", "failed"}
NEEDS = {
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    "terminal/create": ("terminal",),
    "elicitation/create": ("elicitation",),
    "notice": ("session", "notices"),
    "compaction_update": ("session", "compaction"),
    "compaction_summary_chunk": ("session", "compaction"),
}
"""What a client has to have advertised before it may be sent something."""


class Session:
    """What is known of one session."""

    def __init__(self) -> None:
        self.turn: Any = None
        self.cancelled = False
        self.loading = False
        self.tools: dict[str, str] = {}
        self.kinds: dict[str, str] = {}


class Transcript:
    """A conversation and what is wrong with it.

    Args:
        official: judges single messages.

    Attributes:
        problems: what is wrong, with the number of the message.
        messages: how many the agent has sent.
    """

    def __init__(self, official: Official) -> None:
        self.problems: list[str] = []
        self.messages = 0
        self._official = official
        self._capabilities: Json = {}
        self._calls: dict[Any, Json] = {}
        self._answered: set[Any] = set()
        self._asked: set[Any] = set()
        self._open: dict[Any, Json] = {}
        self._sessions: dict[str, Session] = {}
        self._listed: set[str] = set()

    # --- what the client wrote

    def to_agent(self, message: Json) -> None:
        """The client is about to write this."""
        method = message.get("method")
        params = message.get("params") or {}
        if method is None:
            asked = self._open.pop(message["id"], None)
            if asked is not None and _cancels(message):
                self._sessions.setdefault(asked["params"]["sessionId"], Session()).cancelled = True
            return
        if "id" in message:
            self._calls[message["id"]] = message
        if method == "initialize":
            self._capabilities = params.get("clientCapabilities") or {}
        elif method == "session/prompt":
            known = self._sessions.setdefault(params["sessionId"], Session())
            known.turn, known.cancelled = message["id"], False
        elif method == "session/cancel":
            self._sessions.setdefault(params["sessionId"], Session()).cancelled = True
        elif method in ("session/load", "session/resume"):
            fresh = self._sessions[params["sessionId"]] = Session()
            fresh.loading = method == "session/load"

    # --- what the agent wrote

    def from_agent(self, message: Any) -> None:
        """The client has read this."""
        self.messages += 1
        for problem in self._judged(message):
            self.problems.append(f"message {self.messages}: {problem} in {str(message)[:400]}")

    def _judged(self, message: Any) -> Iterator[str]:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            yield "no JSON-RPC message"
        elif "method" not in message:
            yield from self._reply(message)
        elif wrong := self._official.call_problems(message):
            yield from wrong
        else:
            yield from self._request(message) if "id" in message else self._notification(message)

    def ended(self) -> None:
        """The agent has closed its end."""
        for id, call in self._calls.items():
            if id not in self._answered:
                self.problems.append(f"at the end: {call['method']} (id {id!r}) was never answered")

    def _reply(self, message: Json) -> Iterator[str]:
        call = self._calls.get(message.get("id"))
        if call is None:
            yield "a reply to nothing that was asked"
            return
        if call["id"] in self._answered:
            yield "a second reply"
        self._answered.add(call["id"])
        wrong = self._official.reply_problems(call["method"], message)
        yield from wrong
        result = message.get("result") or {} if not wrong else {}
        params = call.get("params") or {}
        if call["method"] == "session/new" and "sessionId" in result:
            if result["sessionId"] in self._sessions:
                yield "a session id that was there already"
            self._sessions[result["sessionId"]] = Session()
        if call["method"] in ("session/load", "session/resume"):
            self._sessions[params["sessionId"]].loading = False
        if call["method"] == "session/prompt":
            yield from self._turn_ended(self._sessions[params["sessionId"]], result)
        yield from _state(result)
        for row in result.get("sessions", []):
            self._listed.add(row["sessionId"])
            yield from _row(row)
        if any(option.get("type") == "boolean" for option in result.get("configOptions") or []) and not self._can(
            ("session", "configOptions")
        ):
            yield "boolean options, for a client that did not ask for them"

    def _turn_ended(self, known: Session, result: Json) -> Iterator[str]:
        for id, status in known.tools.items():
            if status not in FINAL and not known.cancelled:  # after a cancel the client closes them itself
                yield f"the turn ends while tool call {id!r} is {status}"
            known.tools[id] = "failed"
        if result.get("stopReason") == "cancelled" and not known.cancelled:
            yield "cancelled, though nobody cancelled"
        if known.turn in self._answered:
            known.turn = None
        for asked in self._open.values():
            if not known.cancelled and self._sessions.get(asked["params"].get("sessionId", "")) is known:
                yield f"the turn ends while {asked['method']} is open"

    def _request(self, message: Json) -> Iterator[str]:
        if message["id"] in self._asked:
            yield "a request id that was used before"
        self._asked.add(message["id"])
        self._open[message["id"]] = message
        params = message.get("params") or {}
        known = self._sessions.get(params.get("sessionId", ""))
        if known is None:
            yield "a request for a session that the client does not know"
            return
        if message["method"] in NEEDS and not self._can(NEEDS[message["method"]]):
            yield "the client did not advertise that it can do this"
        if message["method"] == "session/request_permission":
            options = [option["optionId"] for option in params["options"]]
            if not options or len(set(options)) < len(options):
                yield "options need ids, each its own"
            if params["toolCall"]["toolCallId"] not in known.tools:
                yield "permission for a tool call that was not announced"
            yield from _tool_paths(params["toolCall"])
        if "path" in params:
            yield from _absolute("path", params["path"])

    def _notification(self, message: Json) -> Iterator[str]:
        if message["method"] != "session/update":
            return
        params = message["params"]
        update = params["update"]
        known = self._sessions.get(params["sessionId"])
        kind = update["sessionUpdate"]
        if known is None:
            if kind != "session_info_update" or params["sessionId"] not in self._listed:
                yield "an update for a session that the client does not know"
            return
        if known.turn is None and not known.loading and kind not in BETWEEN_TURNS:
            yield f"{kind} while no turn runs"
        if kind in NEEDS and not self._can(NEEDS[kind]):
            yield "the client did not advertise that it takes this"
        look = LOOKS.get(kind)
        if look is not None:
            yield from look(known, update)

    def _can(self, path: tuple[str, ...]) -> bool:
        value: Any = self._capabilities
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False


def _cancels(answer: Json) -> bool:
    """A permission request that is answered `cancelled` says that the user has cancelled the turn."""
    result = answer.get("result")
    outcome = result.get("outcome") if isinstance(result, dict) else None
    return isinstance(outcome, dict) and outcome.get("outcome") == "cancelled"


# --- one kind of update each


def _chunk(known: Session, update: Json) -> Iterator[str]:
    id = update.get("messageId")
    if id is not None and known.kinds.setdefault(id, update["sessionUpdate"]) != update["sessionUpdate"]:
        yield f"message id {id!r} belongs to another kind of message"


def _tool_call(known: Session, update: Json) -> Iterator[str]:
    if update["toolCallId"] in known.tools:  # ids are unique within a session (schema, ToolCall)
        yield f"tool call {update['toolCallId']!r} is announced twice"
    known.tools[update["toolCallId"]] = update.get("status") or "pending"
    yield from _tool_paths(update)


def _tool_update(known: Session, update: Json) -> Iterator[str]:
    if update["toolCallId"] not in known.tools:
        yield f"tool call {update['toolCallId']!r} was not announced"
    if update.get("status") is not None:
        known.tools[update["toolCallId"]] = update["status"]
    yield from _tool_paths(update)


def _options(known: Session, update: Json) -> Iterator[str]:
    yield from _state(update)


LOOKS: dict[str, Callable[[Session, Json], Iterator[str]]] = {
    **dict.fromkeys(CHUNKS, _chunk),
    "tool_call": _tool_call,
    "tool_call_update": _tool_update,
    "config_option_update": _options,
}


# --- values that the schema cannot judge


def _absolute(field: str, path: str) -> Iterator[str]:
    """All paths are absolute (Overview, argument requirements)."""
    if not re.match(r"/|\\\\|[A-Za-z]:[\\/]", path):
        yield f"{field} {path!r} is not absolute"


def _tool_paths(call: Json) -> Iterator[str]:
    for place in call.get("locations") or []:
        yield from _absolute("location", place["path"])
        if place.get("line") == 0:
            yield "lines are counted from 1"
    for part in call.get("content") or []:
        if part["type"] == "diff":
            yield from _absolute("diff", part["path"])


def _state(result: Json) -> Iterator[str]:
    """What is current has to be on offer."""
    modes = result.get("modes")
    if modes and modes["currentModeId"] not in [mode["id"] for mode in modes["availableModes"]]:
        yield "the current mode is not on offer"
    for option in result.get("configOptions") or []:
        if option["type"] != "select":
            continue
        choices = [choice for entry in option["options"] for choice in entry.get("options", [entry])]
        if option["currentValue"] not in [choice["value"] for choice in choices]:
            yield f"the value of option {option['id']!r} is not on offer"


def _row(row: Json) -> Iterator[str]:
    yield from _absolute("cwd", row["cwd"])
    if row.get("updatedAt") is not None and not re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", row["updatedAt"]
    ):
        yield f"updatedAt {row['updatedAt']!r} is no ISO 8601 time"
