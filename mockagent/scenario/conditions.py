"""`when`: the table of its keys, and what can be said about a condition without playing it."""

from __future__ import annotations

from typing import Any

import msgspec

from mockagent.scenario.model import When
from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed
from mockagent.scenario.shapes import CountType, Field, ListOf, MapOf, Record
from mockagent.scenario.types import AnyJson, Bool, Build, Choice, Number, Pattern, Pointer, Text, Whole

Json = AnyJson("a value, or a glob")
ORIGINS = ("turn", "replay", "schedule", "fault", "control")
OUTCOMES = ("granted", "denied", "cancelled", "result", "error", "timeout")

_WHEN = [
    Field(
        "prompt",
        Pattern(),
        "The text of the prompt; globs ignore case, and a regex "
        "whose search can take exponential time, such as `/(a+)+$/`, is a mistake.",
        example='"*weather*"',
    ),
    Field("command", Text("the name of a command"), "The prompt is this slash command.", example="plan"),
    Field("turn", CountType(), "Number of the turn in its session, from 1.", example="2.."),
    Field("session", Text("a session's id, or a glob"), "Id of the session.", example="sess_*"),
    Field("mode", Text("the id of a mode"), "The session's current mode.", example="code"),
    Field(
        "option", MapOf(Text(), Json, "a mapping from option to value"), "Values of options.", example="{model: fast}"
    ),
    Field(
        "params",
        MapOf(Pointer(), Json, "a mapping from JSON Pointer to a value or glob"),
        "Members of the message's `params` (AAP: body or query).",
        example='{/cwd: "/home/*"}',
    ),
    Field(
        "result",
        MapOf(Pointer(), Json, "a mapping from JSON Pointer to a value or glob"),
        "Members of the reply's `result` (AAP: body).",
        example="{/stopReason: end_turn}",
    ),
    Field(
        "origin",
        ListOf(Choice(*ORIGINS), single=True),
        "What caused the message, or a list of causes.",
        example="replay",
    ),
    Field("running", Bool(), "A turn runs in the session.", example="false"),
    Field("last_stop", Text("a stop reason"), "How the turn before this one ended.", example="cancelled"),
    Field(
        "tool_result",
        Text("the name of a tool"),
        "The turn was started by this tool's result (AAP).",
        example="ask_user",
    ),
    Field("protocol", Choice("acp", "aap"), "The client's protocol.", example="acp"),
    Field("transport", Choice("stdio", "ws", "http"), "The client's transport.", example="ws"),
    Field("chance", Number(0, 1), "Holds this often, by the seed.", example="0.1"),
    Field("nth", CountType(), "Which of the matches: `2`, `[2, 4]`, `3..`, `2..4`.", example="[2, 4]"),
    Field("every", Whole(1), "Every so many matches.", example="3"),
    Field("times", Whole(1), "So many matches, from the first.", example="1"),
    Field(
        "per",
        Choice("session", "connection", "process"),
        "What `nth`, `every` and `times` count over.",
        "session for messages of a session, else process",
        "connection",
    ),
]

_ANSWER = [
    Field(
        "outcome",
        Text(f"{listed(OUTCOMES)}, or an option's id"),
        f"How the client answered: {listed(OUTCOMES)}, or the id of the option it chose.",
        example="denied",
    ),
    Field("text", Pattern(), "The result as text.", example='"*passed*"'),
]

#: keys of every `when`, and of those in `then` beside them
KEYS = tuple(_WHEN)
ANSWER_KEYS = tuple(_ANSWER)


def _check(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    nth, times = values.get("nth"), values.get("times")
    if nth is None or not isinstance(times, int) or not hasattr(nth, "numbers"):
        return
    first = min(nth.numbers) if nth.numbers else nth.low or 1
    last = max(nth.numbers) if nth.numbers else nth.high
    at = node.get("nth") or node
    if first > times:
        b.wrong(at, f"`nth` asks for match {first} and `times` ends after {times}: this can never hold", f"{path}/nth")
    elif last is not None and last > times:
        b.wrong(at, f"`nth` asks for match {last} and `times` ends after {times}: that one never comes", f"{path}/nth")


class Condition(Record):
    """The `when` of one context.

    Args:
        answer: it stands in `then`, where the client's answer can be asked for.
    """

    def __init__(self, *, answer: bool = False) -> None:
        super().__init__("WhenAnswered" if answer else "When", _WHEN + _ANSWER if answer else _WHEN, When, check=_check)
        self.words = 'a mapping of conditions such as `{prompt: "*weather*"}`'

    def build(self, node: Node, b: Build, path: str) -> Any:
        made = super().build(node, b, path)
        if isinstance(made, When):
            return msgspec.structs.replace(made, place=node.place(path))
        return made

    def unknown(self, key: Node, node: Node, b: Build, path: str) -> None:
        if key.text in ("outcome", "text"):
            b.wrong(key, f"`{key.text}` asks for the client's answer and can stand in a `when` of `then` only", path)
        else:
            super().unknown(key, node, b, path)


class _Setting(Condition):
    """What an option, or one of its choices, can depend on: the other settings of the session."""

    def __init__(self) -> None:
        keys = [field for field in _WHEN if field.key in ("mode", "option")]
        Record.__init__(self, "WhenSet", keys, When)
        self.words = "a mapping with `mode` and `option`, such as `{option: {model: smart}}`"


WhenType = Condition()
SettingType = _Setting()
WhenAnswered = Condition(answer=True)
