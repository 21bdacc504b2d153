"""The kinds of values that a scenario file is made of.

Each type can build a value from a node, recording every mistake with its place; give its JSON Schema; and name itself
for the reference. Here are those that hold nothing else; `shapes` has the lists and mappings. No scenario key is known:
the tables in `verbs`, `conditions`, `effects` and `parts` are made of these types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mockagent.scenario import placeholders, scalars
from mockagent.scenario.nodes import Node, describe
from mockagent.scenario.problems import Problem, listed, suggestion

Schema = dict[str, Any]


class _Bad:
    """Marks a value that could not be built; its problem has been recorded."""

    def __repr__(self) -> str:
        return "BAD"


BAD: Any = _Bad()
REQUIRED: Any = _Bad()
_SCALAR: list[str] = ["string", "number", "boolean"]


class Build:
    """What is known while one file is built.

    Attributes:
        problems: every mistake so far.
        legality: of the scenario; only an `allowed` one is held to the values that the specs know.
        refs: how many placeholders were seen; a step counts its own by it.
        editing: inside an `edit`, where `${value}` means something.
        saves, uses: the names that `save` keeps and that `${saved.NAME}` reads.
        exceeded: a value stands somewhere that the specs do not know.
        steps, faults, expectations: the nodes of all of them, for the judgement of the whole file.
    """

    def __init__(self, legality: str = "allowed") -> None:
        self.problems: list[Problem] = []
        self.legality = legality
        self.refs = 0
        self.editing = False
        self.saves: set[str] = set()
        self.uses: list[tuple[str, Node, str]] = []
        self.exceeded = False
        self.steps: list[tuple[str, Node, str]] = []
        self.faults: list[tuple[Node, str]] = []
        self.expectations: list[tuple[Node, str]] = []

    def wrong(self, node: Node, message: str, path: str = "") -> Any:
        """Records a problem; returns BAD."""
        if node.broken:  # its own problem has been recorded
            return BAD
        self.problems.append(Problem(node.place(path), message))
        return BAD

    def text(self, node: Node, path: str) -> str:
        """The text of a scalar, with its placeholders checked."""
        if "${" not in node.text:
            return node.text
        self.refs += 1
        try:
            found = placeholders.refs(node.text)
        except ValueError as error:
            self.wrong(node, str(error), path)
            return node.text
        for ref in found:
            if ref.name.startswith("saved."):
                self.uses.append((ref.name[6:], node, path))
            elif ref.name == "value" and not self.editing:
                self.wrong(node, "`${value}` is the old value of an `edit` and means nothing elsewhere", path)
        return node.text


class Type:
    """One kind of value.

    Attributes:
        words: how the reference and the messages name it.
    """

    words = "anything"

    def build(self, node: Node, b: Build, path: str) -> Any:
        """The value of a node, or BAD after recording why not."""
        raise NotImplementedError

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Its JSON Schema; named parts are put into `defs`."""
        raise NotImplementedError

    def inner(self) -> Iterable[Type]:
        """The types of what it holds, for the reference; steps are left out."""
        return ()

    def refuse(self, node: Node, b: Build, path: str) -> Any:
        """Records that something else is wanted here."""
        if node.empty:
            return b.wrong(node, f"nothing stands here; this has to be {self.words}", path)
        return b.wrong(node, f"this has to be {self.words}, not {describe(node)}", path)


class Text(Type):
    """Any scalar, as it was written.

    Args:
        words: what it is, for messages.
        fills: placeholders are looked for.
        least: fewest characters.
    """

    def __init__(self, words: str = "a text", *, fills: bool = True, least: int = 0) -> None:
        self.words = words
        self.fills = fills
        self.least = least

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "text" or node.value is None:
            return self.refuse(node, b, path)
        if len(node.text) < self.least:
            return b.wrong(node, f"this has to be {self.words}, and may not be empty", path)
        return b.text(node, path) if self.fills else node.text

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": _SCALAR} | ({"minLength": self.least} if self.least else {})


class Pattern(Text):
    """A glob, or a regular expression between slashes."""

    words = "a glob such as `*weather*`, or a `/regex/`"

    def __init__(self) -> None:
        super().__init__(Pattern.words)

    def build(self, node: Node, b: Build, path: str) -> Any:
        text = super().build(node, b, path)
        if text is BAD or len(text) < 2 or text[0] != "/" or text[-1] != "/" or "${" in text:
            return text
        import re

        try:
            re.compile(text[1:-1])
        except (re.error, OverflowError, RecursionError) as error:
            return b.wrong(node, f"`{text}` is not a regular expression: {error}", path)
        from mockagent.scenario.backtracking import exponential

        return b.wrong(node, f"`{text:.80}` {_BACKTRACKS}", path) if exponential(text[1:-1]) else text


_BACKTRACKS = (
    "can take time that doubles with each character of a text that nearly fits, because a repetition holds something "
    "that can be read in several ways; write it so that there is one way, such as `a+` for `(a+)+`, `[ab]+` for "
    "`(a|[ab])+`, or `(\\w+\\s)+` for `(\\w+\\s?)+`"
)


class Choice(Type):
    """One of some words."""

    def __init__(self, *names: str, words: str | None = None) -> None:
        self.names = names
        self.words = words or listed(names)

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "text" and (node.text in self.names or (node.value is None and "null" in self.names)):
            return node.text if node.text in self.names else "null"
        if node.kind != "text" or node.value is None:
            return self.refuse(node, b, path)
        near = suggestion(node.text, self.names)
        return b.wrong(node, f"`{node.text:.60}` is not known here; allowed: {listed(self.names)}{near}", path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"enum": [*self.names, *([None] if "null" in self.names else [])]}


class Known(Type):
    """A word of a list that the specs give. Other words can be said too, by a scenario that is not `allowed`.

    Args:
        what: names the list, for messages.
        names: its words.
    """

    def __init__(self, what: str, *names: str) -> None:
        self.what = what
        self.names = names
        self.words = listed(names)

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "text" or node.value is None:
            return self.refuse(node, b, path)
        text = b.text(node, path)
        if text in self.names or text.startswith("${"):
            return text
        b.exceeded = True
        if b.legality == "allowed":
            near = suggestion(text, self.names)
            return b.wrong(
                node,
                f"`{text:.60}` is no {self.what}; known: {listed(self.names)}{near} (any other can be said where "
                "`legality` is `violation` or `unspecified`)",
                path,
            )
        return text

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [{"enum": list(self.names)}, {"type": _SCALAR}]}


class Bool(Type):
    words = "`true` or `false`"

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "text" and isinstance(node.value, bool):
            return node.value
        if node.kind == "text" and node.text.lower() in ("yes", "no", "on", "off", "true", "false"):
            return b.wrong(node, f"`{node.text}` is a text in YAML 1.2; write `true` or `false` without quotes", path)
        return self.refuse(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": "boolean"}


class Yes(Bool):
    """`true`, for keys that can only switch something on."""

    words = "`true`"

    def build(self, node: Node, b: Build, path: str) -> Any:
        value = super().build(node, b, path)
        return b.wrong(node, "only `true` can stand here; leave the key out instead", path) if value is False else value

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"const": True}


class Number(Type):
    """A number within bounds.

    Args:
        whole: integers only.
        low, high: the bounds, both allowed themselves.
        fills: a text with one placeholder may stand for it.
    """

    def __init__(
        self, low: float | None = None, high: float | None = None, *, whole: bool = False, fills: bool = False
    ) -> None:
        self.low, self.high, self.whole, self.fills = low, high, whole, fills
        kind = "a whole number" if whole else "a number"
        if low is not None and high is not None:
            kind += f" from {low:,} to {high:,}"
        elif low is not None:
            kind += f" of {low:,} or more"
        self.words = kind

    def build(self, node: Node, b: Build, path: str) -> Any:
        value = node.value if node.kind == "text" else None
        if self.fills and isinstance(value, str) and value.startswith("${"):
            return b.text(node, path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self.refuse(node, b, path)
        if self.whole and isinstance(value, float):
            if not value.is_integer():
                return self.refuse(node, b, path)
            value = int(value)
        if (
            value != value
            or (self.low is not None and value < self.low)
            or (self.high is not None and value > self.high)
        ):
            return self.refuse(node, b, path)
        if abs(value) >= 2**63:
            return b.wrong(node, "the number is too large", path)
        return value

    def schema(self, defs: dict[str, Schema]) -> Schema:
        plain: Schema = {"type": "integer" if self.whole else "number"}
        if self.low is not None:
            plain["minimum"] = self.low
        if self.high is not None:
            plain["maximum"] = self.high
        return {"anyOf": [plain, {"type": "string", "pattern": r"^\$\{.*\}$"}]} if self.fills else plain


def Whole(low: int | None = None, high: int | None = None, *, fills: bool = False) -> Number:
    """A whole number within bounds."""
    return Number(low, high, whole=True, fills=fills)


class Notation(Type):
    """A text with a grammar of its own.

    Args:
        words: what it is, for messages.
        parse: from text to value; raises ValueError with the sentence to print.
        pattern: a regular expression for the JSON Schema.
        hint: what to say about a bare number; it gets the number's text.
    """

    def __init__(
        self, words: str, parse: Callable[[str], Any], pattern: str, hint: Callable[[str], str] | None = None
    ) -> None:
        self.words, self.parse, self.pattern, self.hint = words, parse, pattern, hint

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind != "text" or node.value is None:
            return self.refuse(node, b, path)
        try:
            return self.parse(node.text)
        except ValueError as error:
            return b.wrong(node, str(error), path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": "string", "pattern": self.pattern}


DURATION_PATTERN = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h|d)$"
Micros = Notation("a duration such as `250ms`", scalars.duration, DURATION_PATTERN)
Instant = Notation("a time such as `2026-01-15T09:00:00Z`", scalars.instant, r"^[0-9]{4}-")
PerSecond = Notation("a rate such as `60/s`", scalars.per_second, r"^[0-9.]+/\s*s$")
ByteRate = Notation("a rate such as `2KB/s`", scalars.byte_rate, r"^[0-9.]+ ?(B|KB|MB|KiB|MiB)/\s*s$")


class AnyJson(Type):
    """Whatever JSON can say."""

    def __init__(self, words: str = "any JSON value") -> None:
        self.words = words

    def build(self, node: Node, b: Build, path: str) -> Any:
        return _json(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {}


def _json(node: Node, b: Build, path: str) -> Any:
    if node.kind == "list":
        return [_json(item, b, f"{path}/{at}") for at, item in enumerate(node.items)]
    if node.kind == "map":
        return {key.text: _json(value, b, f"{path}/{key.text}") for key, value in node.pairs}
    value = node.value
    if isinstance(value, str):
        return b.text(node, path)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return b.wrong(node, "JSON has no such number; quote it to send it as text", path)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return b.wrong(node, "the number is too large for JSON readers; use `send` with a text", path)
    return value


class JsonMap(AnyJson):
    """A JSON object."""

    def __init__(self, words: str = "a mapping of JSON values") -> None:
        super().__init__(words)

    def build(self, node: Node, b: Build, path: str) -> Any:
        return super().build(node, b, path) if node.kind == "map" else self.refuse(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": "object"}


class Pointer(Text):
    """A JSON Pointer (RFC 6901)."""

    def __init__(self) -> None:
        super().__init__("a JSON Pointer such as `/result/sessions/0`")

    def build(self, node: Node, b: Build, path: str) -> Any:
        text = super().build(node, b, path)
        if text is BAD or not text or text.startswith(("/", "${")):
            return text
        return b.wrong(node, f"a JSON Pointer starts with a slash: `/{text}`", path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": "string", "pattern": r"^($|/|\$\{)"}
