"""The keys of a scenario file, and what a whole file becomes.

Here the `sessions` shorthands turn into faults, and the tables of faults and expectations into types.
"""

from __future__ import annotations

from typing import Any

from mockagent.scenario import kinds, model
from mockagent.scenario.agent import AgentType
from mockagent.scenario.conditions import WhenType
from mockagent.scenario.effects import EFFECTS
from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed
from mockagent.scenario.sessions import SessionsType
from mockagent.scenario.shapes import CountType, Field, ListOf, MapOf, Nullable, Record, Span
from mockagent.scenario.steps import PaceType, SaveMap, Steps
from mockagent.scenario.types import (
    BAD,
    REQUIRED,
    AnyJson,
    Build,
    Choice,
    Instant,
    Micros,
    Number,
    Pointer,
    Schema,
    Text,
    Type,
    Whole,
    Yes,
)

LEGALITY = ("allowed", "violation", "unspecified")


class _Placed(Record):
    """A record whose struct has a `place`."""

    def build(self, node: Node, b: Build, path: str) -> Any:
        made = super().build(node, b, path)
        if made is not BAD:
            made["place"] = node.place(path)
            return self.struct(**made)
        return made

    struct: Any = dict


class _Turn(_Placed):
    struct = model.Turn


class _Scheduled(_Placed):
    struct = model.Scheduled


TurnType = _Turn(
    "Turn",
    [
        Field("when", WhenType, "The turn answers the prompt if this holds; without it, always."),
        Field("steps", Steps, "What is played.", "none"),
        Field("save", SaveMap(), "Keeps parts of the prompt's message.", example="{id: /id}"),
    ],
)
ScheduledType = _Scheduled(
    "Scheduled",
    [
        Field("event", Choice(*kinds.STARTS), "What it starts from.", REQUIRED, "session_opened"),
        Field("after", Span, "Wait after the event.", "0s", "2s"),
        Field("every", Span, "Wait between rounds.", "one round for each event", "5s"),
        Field("times", Whole(1), "Rounds.", "without end if `every` is given, else one", "3"),
        Field("session", Text(), "`current`, an id, or a glob over listed sessions.", "current", "sess_*"),
        Field("when", WhenType, "Only if this holds."),
        Field("steps", Steps, "What is played.", REQUIRED, '[{info: {title: "${fake.title}"}}]'),
    ],
)


class At(Text):
    """What a fault is about. Whether it names anything is judged when the whole file is known."""

    def __init__(self) -> None:
        super().__init__("a method, something outgoing, a neutral kind or a point in life", fills=False, least=1)


class FaultType(_Placed):
    """One entry of `faults`."""

    struct = model.Fault

    def __init__(self) -> None:
        super().__init__(
            "Fault",
            [
                Field("at", At(), "What it is about.", REQUIRED, "session/list"),
                Field("when", WhenType, "Only if this holds.", example="{nth: 2}"),
                Field("save", SaveMap(), "Keeps parts of the message.", example="{id: /id}"),
                *(Field(row.name, row.type, row.does, example="") for row in EFFECTS.values()),
            ],
            self._make,
            check=self._check,
            words="a mapping with `at` and effects",
        )

    def build(self, node: Node, b: Build, path: str) -> Any:
        b.faults.append((node, path))
        return super().build(node, b, path)

    @staticmethod
    def _check(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
        given = [name for name in EFFECTS if name in values]
        unknown = any(key.text not in EFFECTS and key.text not in ("at", "when", "save") for key, _ in node.pairs)
        if not given and "save" not in values and not unknown:
            b.wrong(node, f"the fault does nothing; effects: {listed(EFFECTS)}", path)
        for at, name in enumerate(given):
            for other in given[at + 1 :]:
                if other in EFFECTS[name].against or name in EFFECTS[other].against:
                    key = next(key for key, _ in node.pairs if key.text == other)
                    b.wrong(key, f"`{other}` contradicts `{name}` of the same fault", path)

    @staticmethod
    def _make(**values: Any) -> Any:
        effects = {name: values.pop(name) for name in EFFECTS if name in values}
        return values | {"effects": effects}


#: what an expectation looks for -> type and sentence
LOOKS: dict[str, Field] = {
    field.key: field
    for field in (
        Field("request", Text(), "The client sends this method.", example="session/cancel"),
        Field("never", Text(), "The client does not send this method.", example="session/prompt"),
        Field(
            "permission",
            Text(),
            "The client answers a permission like this: `cancelled`, or an option's id.",
            example="cancelled",
        ),
        Field("reply_error", Whole(), "The client answers a request with this error code.", example="-32601"),
        Field(
            "disconnect",
            Record("Leaves", [Field("within", Micros, "How soon.", "any time", "5s")]),
            "The client ends the connection.",
            example="{within: 5s}",
        ),
        Field("single_submit", Yes(), "No prompt is sent twice with the same content after a fault.", example="true"),
    )
}
_BESIDE = (
    Field("count", CountType(0), "How often.", "1..", "1"),
    Field("within", Micros, "How soon (wall time).", "any time", "2s"),
    Field(
        "params",
        MapOf(Pointer(), AnyJson(), "a mapping from JSON Pointer to a value or glob"),
        "Members of the message's `params`.",
        example='{/sessionId: "sess_*"}',
    ),
    Field("after", Text(), "Only what comes after such a message, as `at` writes it.", example="reply:session/new"),
    Field("to", Text(), "Method of the request that was answered.", example="elicitation/create"),
)


class ExpectationType(Record):
    """One entry of `expect`."""

    def __init__(self) -> None:
        super().__init__("Expectation", [*LOOKS.values(), *_BESIDE], words="a mapping with one of " + listed(LOOKS))

    def build(self, node: Node, b: Build, path: str) -> Any:
        b.expectations.append((node, path))
        values = super().build(node, b, path)
        if values is BAD:
            return BAD
        looks = [key for key in LOOKS if key in values]
        if len(looks) != 1:
            return b.wrong(node, f"an expectation has exactly one of {listed(LOOKS)}", path)
        what = looks[0]
        value = values.pop(what)
        if what == "disconnect":
            values |= value
            value = True
        return model.Expectation(what=what, value=value, place=node.place(path), **values)


FIELDS = [
    Field("name", Text("a name", fills=False, least=1), "Name of the scenario.", "the file's name", "late-title"),
    Field("summary", Text(fills=False), "One sentence for the table of scenarios.", "empty"),
    Field("legality", Choice(*LEGALITY), "How the spec sees this agent's behaviour.", "allowed", "violation"),
    Field("right_client", Text(fills=False), "What a right client does.", "empty"),
    Field("tags", ListOf(Text(fills=False), single=True), "For the table of scenarios.", "none", "[lists, titles]"),
    Field(
        "include",
        ListOf(Text("a path", fills=False), single=True),
        "Files that are merged under this one.",
        "none",
        "[base.yaml]",
    ),
    Field(
        "without",
        ListOf(Text("a path such as `agent/modes`", fills=False), single=True),
        "Paths that are taken out of the included files.",
        "none",
        "[agent/modes, turns/0]",
    ),
    Field("seed", Whole(), "Of all random choices.", "0", "7"),
    Field(
        "clock",
        Record(
            "Clock",
            [
                Field(
                    "now", Nullable(Instant), "Start of the logical clock.", "the wall clock", '"2026-01-15T09:00:00Z"'
                ),
                Field("speed", Number(0), "Divides all waits; 0: no waits at all.", "1"),
            ],
            model.ClockRules,
        ),
        "The time.",
        "the wall clock",
        '{now: "2026-01-15T09:00:00Z", speed: 1}',
    ),
    Field(
        "pace",
        PaceType,
        "How `say` and `think` stream.",
        "at once",
        "{first: 300ms, rate: 60/s, chunk: word, jitter: 0.2}",
    ),
    Field("agent", AgentType, "Who the agent says it is.", "a mock agent that can do everything"),
    Field("sessions", SessionsType, "The sessions that are there, and how they are kept.", "none but the clients' own"),
    Field(
        "turns",
        ListOf(TurnType),
        "The first turn whose `when` holds answers the prompt.",
        "one sentence with the prompt in it",
    ),
    Field("schedule", ListOf(ScheduledType), "What happens outside turns.", "nothing"),
    Field("faults", ListOf(FaultType()), "Where the agent departs from the right way.", "none"),
    Field("expect", ListOf(ExpectationType()), "What the client is expected to do.", "nothing"),
]

Fields = Record("Scenario", FIELDS, words="a mapping with the keys of a scenario")


class ScenarioType(Type):
    """A whole file."""

    words = Fields.words

    def build(self, node: Node, b: Build, path: str) -> Any:
        """The scenario, or BAD. Built even from a file with problems as far as it goes."""
        values = Fields.build(node, b, path)
        if values is BAD:
            return BAD
        values.pop("include", None)
        values.pop("without", None)
        sessions, compiled = _sessions(values.pop("sessions", {}), node.get("sessions"))
        faults = (*values.pop("faults", ()), *compiled)
        return model.Scenario(sessions=sessions, faults=faults, file=node.file, **values)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return Fields.object(defs)


#: shorthand -> the refusal that it stands in for, and the value that changes nothing
SHORTHANDS: dict[str, tuple[str, str]] = {
    "invalid_cursor": ("invalid_cursor", "error"),
    "unknown": ("session_not_found", "session_not_found"),
    "inactive": ("session_inactive", "session_inactive"),
}


def _sessions(values: dict[str, Any], node: Node | None) -> tuple[model.Sessions, list[model.Fault]]:
    """The sessions, and the faults that their shorthands stand for."""
    values = dict(values)
    compaction = values.pop("compaction", {})
    if "keep" in compaction:
        values["compaction_keep"] = compaction["keep"]
    faults = []
    for key, (refusal, usual) in SHORTHANDS.items():
        wanted = values.get(key, usual)
        if wanted != usual and node is not None:
            where = node.get(key) or node
            effect = {"instead": wanted} if wanted in ("create", "empty", "first_page") else {"error": wanted}
            faults.append(
                model.Fault(
                    at=f"refusal:{refusal}", effects=effect, shorthand=key, place=where.place(f"sessions/{key}")
                )
            )
    return model.Sessions(**values), faults


Top = ScenarioType()
