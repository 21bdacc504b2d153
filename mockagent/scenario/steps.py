"""Builds steps: one verb with its payload, and siblings. Which verbs there are stands in `verbs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mockagent.scenario.conditions import WhenAnswered, WhenType
from mockagent.scenario.model import Branch, Pace, Step
from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed, suggestion
from mockagent.scenario.shapes import Either, Field, ListOf, MapOf, Nullable, Record, Span
from mockagent.scenario.types import (
    BAD,
    Bool,
    Build,
    Choice,
    JsonMap,
    Number,
    PerSecond,
    Pointer,
    Schema,
    Text,
    Type,
    Whole,
)

if TYPE_CHECKING:
    from mockagent.scenario.verbs import Verb


class SaveMap(MapOf):
    """`save`: names and the pointers they are read from. Notes the names for `${saved.NAME}`."""

    def __init__(self) -> None:
        super().__init__(Text("a name", fills=False), Pointer(), "a mapping from name to JSON Pointer")

    def build(self, node: Node, b: Build, path: str) -> Any:
        made = super().build(node, b, path)
        if made is not BAD:
            for name in made:
                if not (name.isascii() and name.replace("_", "a").isalnum()):
                    b.wrong(node, f"`{name:.40}` is no name; use letters, digits and `_`", path)
            b.saves.update(made)
        return made


class _Chunk(Type):
    words = "`word`, `line`, or a number of characters"
    _word = Choice("word", "line")
    _number = Whole(1)

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "text" and node.text in self._word.names:
            return node.text
        number = node.kind == "text" and isinstance(node.value, int)
        return self._number.build(node, b, path) if number else self.refuse(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [self._word.schema(defs), self._number.schema(defs)]}


PaceType = Record(
    "Pace",
    [
        Field("first", Span, "Wait before the first chunk.", "0s", "300ms"),
        Field("rate", PerSecond, "Chunks a second.", "all at once", "60/s"),
        Field("chunk", _Chunk(), "Size of a chunk: `word`, `line`, or a number of characters.", "word", "word"),
        Field("jitter", Number(0, 1), "How much the gaps vary, as a part of the gap.", "0", "0.2"),
    ],
    Pace,
)


class StepList(Type):
    """A list of steps; inside, only these verbs (all when None).

    Args:
        name: of the definition in the JSON Schema.
        verbs: the verbs that are allowed.
        reason: why others are not, for the message.
    """

    words = "a list of steps, each with one verb, such as `[{say: Hello}, {stop: end_turn}]`"

    def __init__(self, name: str = "Step", verbs: Sequence[str] | None = None, reason: str = "") -> None:
        self.name, self.verbs, self.reason = name, verbs, reason

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "list":
            hint = "; put `- ` before it" if node.kind == "map" else ""
            return b.wrong(node, f"this has to be {self.words}{hint}", path)
        outer = b.refs
        steps = tuple(self.step(item, b, f"{path}/{at}") for at, item in enumerate(node.items))
        b.refs = outer
        return BAD if any(step is BAD for step in steps) else steps

    def step(self, node: Node, b: Build, path: str) -> Any:
        """One step."""
        from mockagent.scenario.verbs import VERBS

        if node.kind != "map":
            known = node.kind == "text" and node.text in VERBS
            hint = f", such as `{VERBS[node.text].example}`" if known else ", such as `say: Hello`"
            return b.wrong(node, f"a step is a mapping with one verb{hint}", path)
        verbs = [key for key, _ in node.pairs if key.text in VERBS]
        if len(verbs) != 1:
            return self._no_single_verb(node, verbs, b, path)
        verb = VERBS[verbs[0].text]
        if self.verbs is not None and verb.name not in self.verbs:
            return b.wrong(
                verbs[0], f"`{verb.name}` cannot stand here: {self.reason}; allowed: {listed(self.verbs)}", path
            )
        return self._build(node, verb, b, path)

    def _no_single_verb(self, node: Node, verbs: list[Node], b: Build, path: str) -> Any:
        from mockagent.scenario.verbs import VERBS

        if verbs:
            names = " and ".join(f"`{key.text}`" for key in verbs)
            return b.wrong(verbs[1], f"a step has one verb, this one has {names}; make a step of each", path)
        if not node.pairs:
            return b.wrong(node, "the step is empty; it needs one verb, such as `say: Hello`", path)
        for key, _ in node.pairs:
            if key.text not in SIBLINGS:
                near = suggestion(key.text, self.verbs or VERBS)
                return b.wrong(
                    key, f"`{key.text:.60}` is no verb{near or f'; known: {listed(self.verbs or VERBS)}'}", path
                )
        return b.wrong(node, f"no verb: a step needs exactly one of {listed(self.verbs or VERBS)}", path)

    def _build(self, node: Node, verb: Verb, b: Build, path: str) -> Any:
        values: dict[str, Any] = {}
        dynamic = False
        b.steps.append((verb.name, node, path))
        for key, value in node.pairs:
            name, inner = key.text, f"{path}/{key.text}"
            if name == verb.name:
                kind: Type = verb.payload
            elif name not in SIBLINGS:
                self._unknown(key, value, verb, b, path)
                continue
            elif name not in verb.siblings or (self.verbs is not None and name not in HISTORY_SIBLINGS):
                self._refused(key, verb, b, path)
                continue
            else:
                kind = SIBLINGS[name].type
            b.refs = 0
            values["payload" if name == verb.name else name] = kind.build(value, b, inner)
            dynamic = dynamic or (b.refs > 0 and name in (verb.name, "meta", "message_id"))
        if BAD in values.values():
            return BAD
        return Step(verb=verb.name, place=node.place(path), dynamic=dynamic, **values)

    def _refused(self, key: Node, verb: Verb, b: Build, path: str) -> None:
        if self.verbs is not None:
            b.wrong(key, f"`{key.text}` means nothing here: {self.reason}", path)
        else:
            able = [name for name in verb.siblings if name not in EVERYWHERE]
            more = f"; beside `{verb.name}` can stand {listed([*EVERYWHERE, *able])}"
            b.wrong(key, f"`{key.text}` means nothing beside `{verb.name}`{more}", path)

    def _unknown(self, key: Node, value: Node, verb: Verb, b: Build, path: str) -> None:
        if value.empty and verb.group == "text":
            b.wrong(
                key,
                f"`{key.text:.60}` is no key of a step; a text with a comma in `{{...}}` has to be quoted: "
                f'`{{{verb.name}: "Hello, world"}}`',
                path,
            )
            return
        names = [*verb.siblings, verb.name]
        near = suggestion(key.text, names) or f"; beside `{verb.name}` can stand {listed(verb.siblings)}"
        b.wrong(key, f"unknown key `{key.text:.60}`{near}", path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        if self.name not in defs:
            defs[self.name] = {}
            defs[self.name] = self._step_schema(defs)
        return {"type": "array", "items": {"$ref": f"#/$defs/{self.name}"}}

    def _step_schema(self, defs: dict[str, Schema]) -> Schema:
        from mockagent.scenario.shapes import field_schema
        from mockagent.scenario.verbs import VERBS

        kinds = []
        for verb in VERBS.values():
            if self.verbs is not None and verb.name not in self.verbs:
                continue
            payload = verb.payload.schema(defs) | {"description": verb.does}
            siblings = [s for s in verb.siblings if self.verbs is None or s in HISTORY_SIBLINGS]
            properties = {verb.name: payload} | {s: field_schema(SIBLINGS[s], defs) for s in siblings}
            kinds.append(
                {
                    "type": "object",
                    "title": verb.name,
                    "properties": properties,
                    "required": [verb.name],
                    "additionalProperties": False,
                }
            )
        return {"anyOf": kinds}


Steps = StepList()


class _Branch(Record):
    """One entry of `then`."""

    def build(self, node: Node, b: Build, path: str) -> Any:
        outer, b.refs = b.refs, 0
        made = super().build(node, b, path)
        b.refs = outer
        return made if made is BAD else Branch(when=made.get("when"), steps=made["steps"], place=node.place(path))


Then = ListOf(
    _Branch(
        "Branch",
        [
            Field("when", WhenAnswered, "Takes this way if it holds; without it, always."),
            Field("steps", Steps, "What is played then.", ()),
        ],
        lambda **values: {"steps": ()} | values,
    ),
    words="a list of `{when, steps}`",
)

#: what can stand beside a verb
SIBLINGS: dict[str, Field] = {
    field.key: field
    for field in (
        Field("after", Span, "Wait before the step.", "0s", "2s"),
        Field("when", WhenType, "Play the step only if this holds."),
        Field(
            "save", SaveMap(), "Keep parts of the message that the step got back.", example="{id: /result/terminalId}"
        ),
        Field("meta", JsonMap(), "`_meta` of what is sent.", example="{source: cache}"),
        Field("message_id", Nullable(Text()), "Id of the message; null: none.", "a new one", "m1"),
        Field("pace", PaceType, "How the text streams.", "the scenario's `pace`", "{rate: 60/s}"),
        Field("join", Bool(), "Goes on with the message of the step before.", "false", "true"),
        Field("timeout", Span, "Takes the question back after so long; the outcome is `timeout`.", "never", "5s"),
        Field("then", Then, "What follows from the client's answer: the first entry that holds."),
        Field("otherwise", Steps, "Played in place of the step when the client cannot do it."),
    )
}
EVERYWHERE = ("after", "when", "save")
HISTORY_SIBLINGS = ("meta", "message_id", "join")


class _OneStep(StepList):
    """A step that stands for the list with only this step."""

    words = "a step"

    def build(self, node: Node, b: Build, path: str) -> Any:
        outer = b.refs
        made = self.step(node, b, path)
        b.refs = outer
        return made if made is BAD else (made,)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        items: Schema = super().schema(defs)["items"]
        return items


#: a step, or a list of steps: one branch of `together`
BranchOf = Either(list=Steps, map=_OneStep(), words="a step, or a list of steps")
