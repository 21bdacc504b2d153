"""Lists, mappings and records: the values of a scenario file that hold other values.

Goes with `types`; like it, this module knows no scenario key but those of a random duration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mockagent.scenario import scalars
from mockagent.scenario.model import Count, Lognormal, Uniform
from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed, suggestion
from mockagent.scenario.types import BAD, REQUIRED, Build, Micros, Number, Schema, Type, Whole


class ListOf(Type):
    """A list; a single entry may stand alone where `single` says so. Built as a tuple."""

    def __init__(self, entry: Type, *, single: bool = False, least: int = 0, words: str | None = None) -> None:
        self.entry, self.single, self.least = entry, single, least
        self.words = words or (f"{entry.words}, or a list of such" if single else f"a list, each entry {entry.words}")

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "list":
            if not self.single:
                return self.refuse(node, b, path)
            one = self.entry.build(node, b, path)
            return BAD if one is BAD else (one,)
        if len(node.items) < self.least:
            return b.wrong(node, f"the list needs {self.least} or more entries", path)
        return tuple(self.entry.build(item, b, f"{path}/{at}") for at, item in enumerate(node.items))

    def inner(self) -> Iterable[Type]:
        return (self.entry,)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        entry = self.entry.schema(defs)
        many: Schema = {"type": "array", "items": entry} | ({"minItems": self.least} if self.least else {})
        return {"anyOf": [entry, many]} if self.single else many


class Couple(Type):
    """A list of two values, the first not greater than the second."""

    def __init__(self, entry: Type) -> None:
        self.entry = entry
        self.words = f"`[low, high]`, each {entry.words}"

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "list" or len(node.items) != 2:
            return self.refuse(node, b, path)
        low, high = (self.entry.build(item, b, f"{path}/{at}") for at, item in enumerate(node.items))
        if low is BAD or high is BAD:
            return BAD
        return (low, high) if low <= high else b.wrong(node, "the first of the two may not be the greater", path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": "array", "items": self.entry.schema(defs), "minItems": 2, "maxItems": 2}


class MapOf(Type):
    """A mapping with free keys.

    Args:
        key: checks each key as if it were a value.
        value: of each entry.
        words: what it is, for messages.
    """

    def __init__(self, key: Type, value: Type, words: str, example: str = "") -> None:
        self.key, self.value, self.words, self.example = key, value, words, example

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "map":
            return self.refuse(node, b, path)
        made = {}
        for key, value in node.pairs:
            name = self.key.build(key, b, path)
            made[name if name is not BAD else key.text] = self.value.build(value, b, f"{path}/{key.text}")
        return made

    def inner(self) -> Iterable[Type]:
        return (self.value,)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        names = {k: v for k, v in self.key.schema(defs).items() if k in ("pattern", "enum", "minLength")}
        return {"type": "object", "additionalProperties": self.value.schema(defs)} | (
            {"propertyNames": names} if names else {}
        )


class Nullable(Type):
    """A value, or `null`."""

    def __init__(self, kind: Type) -> None:
        self.kind = kind
        self.words = f"{kind.words}, or `null`"

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "text" and node.value is None:
            return None
        return self.kind.build(node, b, path)

    def inner(self) -> Iterable[Type]:
        return (self.kind,)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [self.kind.schema(defs), {"type": "null"}]}


class Either(Type):
    """A different type for each shape of node: scalar, list, mapping.

    Args:
        text, list, map: the types; None where the shape is not allowed.
        words: what it is as a whole.
        make: turns the built value into what the model holds.
    """

    def __init__(
        self,
        *,
        text: Type | None = None,
        list: Type | None = None,
        map: Type | None = None,
        words: str | None = None,
        make: Callable[[Any], Any] | None = None,
    ) -> None:
        self.shapes: dict[str, Type | None] = {"text": text, "list": list, "map": map}
        self.words = words or ", or ".join(shape.words for shape in self.shapes.values() if shape)
        self.make = make

    def build(self, node: Node, b: Build, path: str) -> Any:
        shape = self.shapes[node.kind]
        if shape is None:
            return self.refuse(node, b, path)
        value = shape.build(node, b, path)
        return self.make(value) if self.make and value is not BAD else value

    def inner(self) -> Iterable[Type]:
        return [shape for shape in self.shapes.values() if shape]

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [shape.schema(defs) for shape in self.shapes.values() if shape]}


class ByKey(Type):
    """A mapping whose kind is told by the one key that is always there.

    Args:
        kinds: the telling key -> the type of the whole mapping.
        words: what it is.
    """

    def __init__(self, kinds: Mapping[str, Type], words: str) -> None:
        self.kinds = kinds
        self.words = words

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "map":
            return self.refuse(node, b, path)
        for key, _ in node.pairs:
            if key.text in self.kinds:
                return self.kinds[key.text].build(node, b, path)
        first = node.pairs[0][0] if node.pairs else node
        near = suggestion(first.text, self.kinds) if node.pairs else ""
        return b.wrong(first, f"one of these keys says what this is: {listed(self.kinds)}{near}", path)

    def inner(self) -> Iterable[Type]:
        return self.kinds.values()

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [kind.schema(defs) for kind in self.kinds.values()]}


class Field(NamedTuple):
    """One key of a record.

    Attributes:
        key: as written in the file.
        type: of its value.
        doc: one sentence for the reference and for editors.
        default: in words, for the reference; REQUIRED where the key has to be there.
        example: a value, as YAML.
        attr: name in the model, where it differs from the key.
    """

    key: str
    type: Type
    doc: str
    default: Any = None
    example: str = ""
    attr: str = ""


Check = Callable[[dict[str, Any], Node, Build, str], None]


class Record(Type):
    """A mapping with known keys.

    Args:
        name: in the JSON Schema's definitions; empty to write it out in place.
        fields: the keys.
        make: gets the built values by keyword; a struct, or `dict`.
        words: what it is, for messages.
        check: looks at the built values together.
    """

    def __init__(
        self,
        name: str,
        fields: Sequence[Field],
        make: Callable[..., Any] = dict,
        *,
        words: str | None = None,
        check: Check | None = None,
    ) -> None:
        self.name = name
        self.fields = {field.key: field for field in fields}
        self.make = make
        self.check = check
        self.words = words or "a mapping with " + listed(self.fields)
        required = [field.key for field in fields if field.default is REQUIRED]
        self.required = required

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "map":
            return self.refuse(node, b, path)
        values = self.values(node, b, path)
        if values is None:
            return BAD
        if self.check is not None:
            self.check(values, node, b, path)
        if any(value is BAD for value in values.values()):
            return BAD
        return self.make(**values)

    def values(self, node: Node, b: Build, path: str) -> dict[str, Any] | None:
        """The values by attribute, BAD ones included; None when a required key is missing."""
        values: dict[str, Any] = {}
        for key, value in node.pairs:
            field = self.fields.get(key.text)
            if field is None:
                self.unknown(key, node, b, path)
            else:
                values[field.attr or field.key] = field.type.build(value, b, f"{path}/{key.text}")
        missing = [name for name in self.required if node.get(name) is None]
        for name in missing:
            b.wrong(node, f"`{name}` is missing ({self.fields[name].type.words})", path)
        return None if missing else values

    def unknown(self, key: Node, node: Node, b: Build, path: str) -> None:
        """Records a key that means nothing here."""
        near = suggestion(key.text, self.fields)
        value = node.get(key.text)
        if not near and value is not None and value.empty and len(node.pairs) > 1:
            b.wrong(key, f"`{key.text:.60}` is no key here; a text with a comma in `{{...}}` has to be quoted", path)
            return
        b.wrong(key, f"unknown key `{key.text:.60}`{near or f'; allowed: {listed(self.fields)}'}", path)

    def inner(self) -> Iterable[Type]:
        return [field.type for field in self.fields.values()]

    def schema(self, defs: dict[str, Schema]) -> Schema:
        if not self.name:
            return self.object(defs)
        if self.name not in defs:
            defs[self.name] = {}
            defs[self.name] = self.object(defs)
        return {"$ref": f"#/$defs/{self.name}"}

    def object(self, defs: dict[str, Schema]) -> Schema:
        """The schema of the mapping itself."""
        made: Schema = {
            "type": "object",
            "properties": {key: field_schema(field, defs) for key, field in self.fields.items()},
            "additionalProperties": False,
        }
        return made | ({"required": self.required} if self.required else {})


def field_schema(field: Field, defs: dict[str, Schema]) -> Schema:
    """The schema of one key, with its description."""
    return field.type.schema(defs) | {"description": field.doc}


def _span_check(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if len(values) != 1:
        values["uniform"] = b.wrong(node, "either `uniform` or `lognormal`", path)


def _spread(uniform: tuple[int, int] | None = None, lognormal: Lognormal | None = None) -> Any:
    return lognormal if uniform is None else Uniform(*uniform)


Span = Either(
    text=Micros,
    map=Record(
        "Spread",
        [
            Field("uniform", Couple(Micros), "Drawn evenly between two durations.", example="[10ms, 50ms]"),
            Field(
                "lognormal",
                Record(
                    "",
                    [
                        Field("median", Micros, "Half of the draws are shorter.", REQUIRED),
                        Field("sigma", Number(0, 10), "Spread of the logarithm.", REQUIRED),
                    ],
                    Lognormal,
                ),
                "Drawn with a long tail.",
                example="{median: 80ms, sigma: 0.4}",
            ),
        ],
        _spread,
        check=_span_check,
    ),
    words="a duration such as `250ms`, or `{uniform: [10ms, 50ms]}`, or `{lognormal: {median: 80ms, sigma: 0.4}}`",
)


class CountType(Type):
    """`2`, `[2, 4]`, `3..`, `2..4`."""

    words = "a count: `2`, `[2, 4]`, `3..` or `2..4`"

    def __init__(self, low: int = 1) -> None:
        self.low = low

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "list" and node.items:
            one = Whole(self.low)
            numbers = [one.build(item, b, path) for item in node.items]
            return BAD if BAD in numbers else Count(numbers=frozenset(numbers))
        if node.kind != "text" or node.value is None:
            return self.refuse(node, b, path)
        try:
            made = scalars.count(node.text)
        except ValueError as error:
            return b.wrong(node, str(error), path)
        least = min(made.numbers) if made.numbers else made.low if made.low is not None else self.low
        return made if least >= self.low else b.wrong(node, f"counting starts at {self.low}", path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        number: Schema = {"type": "integer", "minimum": self.low}
        ranges: Schema = {"type": "string", "pattern": r"^([0-9]+|[0-9]+\.\.[0-9]*|\.\.[0-9]+)$"}
        return {"anyOf": [number, ranges, {"type": "array", "items": number, "minItems": 1}]}


def distinct(kind: str, key: str) -> Any:
    """A list of structs of which no two have the same key; it is called as `ListOf` is.

    Args:
        kind: what one of them is, for the words of a mistake.
        key: the attribute that tells them apart.
    """

    class Distinct(ListOf):
        def build(self, node: Node, b: Build, path: str) -> Any:
            made = super().build(node, b, path)
            seen: set[str] = set()
            for at, item in enumerate(made if isinstance(made, tuple) else ()):
                name = getattr(item, key, None)
                if isinstance(name, str) and name in seen:
                    b.wrong(node.items[at], f"two {kind}s have the {key} `{name}`", f"{path}/{at}")
                elif isinstance(name, str):
                    seen.add(name)
            return made

    return Distinct
