"""Turns the text of a YAML file into a tree of nodes that know their places.

Built from libyaml's events, so that anchors, tags, depth and size are in our hands. What a node means is
not known here.
"""

from __future__ import annotations

from typing import Any, Literal

from mockagent.scenario.model import Place
from mockagent.scenario.problems import Problem, ScenarioError
from mockagent.scenario.scalars import resolve

MAX_DEPTH = 64
MAX_NODES = 500_000
MAX_BYTES = 32 * 1024 * 1024

Kind = Literal["text", "list", "map"]


class Node:
    """A scalar, list or mapping of the file.

    Attributes:
        kind: `text` for scalars.
        text: the characters of a scalar.
        plain: the scalar was written without quotes.
        items: the nodes of a list.
        pairs: keys and values of a mapping, in order.
        size, depth: of the tree below, with every alias counted in full.
        broken: it could not be read, and that has been said.
    """

    __slots__ = ("broken", "column", "depth", "file", "items", "kind", "line", "pairs", "plain", "size", "text")

    def __init__(self, kind: Kind, file: str, line: int, column: int) -> None:
        self.kind: Kind = kind
        self.file = file
        self.line = line
        self.column = column
        self.text = ""
        self.plain = False
        self.items: list[Node] = []
        self.pairs: list[tuple[Node, Node]] = []
        self.size = 1
        self.broken = False
        self.depth = 0

    @property
    def value(self) -> Any:
        """What a scalar is in the core schema: None, bool, int, float or text."""
        return resolve(self.text) if self.plain else self.text

    @property
    def empty(self) -> bool:
        """Nothing was written here (an absent value, not the word `null`)."""
        return self.kind == "text" and self.plain and not self.text

    def get(self, key: str) -> Node | None:
        """The value under a key of a mapping."""
        for name, value in self.pairs:
            if name.text == key:
                return value
        return None

    def place(self, path: str = "") -> Place:
        """Where the node stands."""
        return Place(self.file, self.line, self.column, path.lstrip("/"))


def empty_map(file: str) -> Node:
    """The node of a file that says nothing."""
    return Node("map", file, 1, 1)


def describe(node: Node) -> str:
    """What was found, for messages: `a list`, `the number 12`, `null`."""
    if node.kind != "text":
        return {"list": "a list", "map": "a mapping"}[node.kind]
    value = node.value
    if value is None:
        return "nothing" if node.empty else "null"
    if isinstance(value, bool):
        return f"`{node.text}`"
    if isinstance(value, int | float):
        return f"the number {node.text:.40}"
    shown = node.text if len(node.text) <= 40 else node.text[:37] + "..."
    return f"the text `{shown}`" if node.text.strip() else "an empty text"


def plain(node: Node) -> Any:
    """The node as ordinary data, keys as they were written."""
    if node.kind == "list":
        return [plain(item) for item in node.items]
    if node.kind == "map":
        return {key.text: plain(value) for key, value in node.pairs}
    return node.value


def read(data: bytes, file: str) -> tuple[Node | None, list[Problem]]:
    """Reads the bytes of a file.

    Returns:
        The root node (None if there is none to go on with), and the problems of the syntax.

    Raises:
        ScenarioError: PyYAML comes without its C loader.
    """
    if len(data) > MAX_BYTES:
        return None, [Problem(Place(file, 1, 1), f"the file has more than {MAX_BYTES // 1_048_576} MiB")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        return None, [Problem(Place(file, line, column), "the file is not UTF-8; save it in that encoding")]
    return _Composer(text, file).compose()


class _Composer:
    """One pass over the events of a file."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.problems: list[Problem] = []
        self.anchors: dict[str, Node | None] = {}

    def compose(self) -> tuple[Node | None, list[Problem]]:
        try:
            from yaml.cyaml import CParser  # type: ignore[attr-defined]
        except ImportError:
            raise ScenarioError.single(
                "PyYAML has been built without libyaml, and its pure Python parser reads some files differently; "
                "install a PyYAML wheel for this platform"
            ) from None
        from yaml import YAMLError

        try:
            root = self._events(CParser(self.text))
        except YAMLError as error:
            from mockagent.scenario.hints import explain

            self.problems.append(explain(error, self.text, self.file))
            return None, self.problems
        except _Stop:
            return None, self.problems
        if root is None and not self.problems:
            self.problems.append(Problem(Place(self.file, 1, 1), "the file is empty; write at least `{}`"))
        return root, self.problems

    def _wrong(self, event: Any, message: str) -> None:
        mark = event.start_mark
        self.problems.append(Problem(Place(self.file, mark.line + 1, mark.column + 1), message))

    def _events(self, parser: Any) -> Node | None:
        root: Node | None = None
        stack: list[_Open] = []
        documents = 0
        while True:
            event = parser.get_event()
            name = type(event).__name__
            if name == "StreamEndEvent":
                return root
            if name == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    self._wrong(event, "a second document starts here; a scenario file holds one")
                    return root
            elif name == "ScalarEvent":
                root = self._add(stack, self._scalar(event), event) or root
            elif name == "AliasEvent":
                root = self._add(stack, self._alias(event), event) or root
            elif name in ("MappingStartEvent", "SequenceStartEvent"):
                self._open(stack, event, "map" if name[0] == "M" else "list")
            elif name in ("MappingEndEvent", "SequenceEndEvent"):
                top = stack.pop()
                if top.anchor:
                    self.anchors[top.anchor] = top.node
                root = self._add(stack, top.node, event) or root

    def _node(self, kind: Kind, event: Any) -> Node:
        if event.tag is not None and event.tag != "!":
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            hint = "; quote a text instead" if shown == "!!str" else ""
            self._wrong(event, f"tags such as `{shown}` are not used in scenarios{hint}")
        mark = event.start_mark
        return Node(kind, self.file, mark.line + 1, mark.column + 1)

    def _scalar(self, event: Any) -> Node:
        node = self._node("text", event)
        node.text = event.value
        node.plain = event.style in (None, "") and event.implicit[0]
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> Node:
        name = event.anchor
        node = self.anchors.get(name)
        if node is None:
            if name in self.anchors:
                self._wrong(event, f"the alias `*{name}` stands inside what it names; that has no end")
            else:
                self._wrong(event, f'there is no `&{name}` before this alias; a text with a star is quoted: "*{name}*"')
            node = Node("text", self.file, event.start_mark.line + 1, event.start_mark.column + 1)
            node.broken = True
        return node

    def _open(self, stack: list[_Open], event: Any, kind: Kind) -> None:
        if len(stack) >= MAX_DEPTH:
            self._wrong(event, f"more than {MAX_DEPTH} levels deep")
            raise _Stop
        node = self._node(kind, event)
        if event.anchor:
            self.anchors[event.anchor] = None
        stack.append(_Open(node, event.anchor))

    def _add(self, stack: list[_Open], node: Node, event: Any) -> Node | None:
        """Puts a finished node into the one that is open; without one it is the root."""
        if not stack:
            return node
        top = stack[-1]
        into = top.node
        into.size += node.size
        into.depth = max(into.depth, node.depth + 1)
        if into.size > MAX_NODES or len(stack) + node.depth > MAX_DEPTH:
            self._wrong(event, "the aliases make the file too large")
            raise _Stop
        if into.kind == "list":
            into.items.append(node)
        elif top.key is None:
            self._key(top, node)
        else:
            if top.keep:
                into.pairs.append((top.key, node))
            top.key = None
        return None

    def _key(self, top: _Open, key: Node) -> None:
        top.key = key
        top.keep = key.kind == "text"
        if not top.keep:
            self.problems.append(
                Problem(
                    key.place(),
                    f"a key is a word, not {describe(key)}; quote a text that starts with a brace or bracket",
                )
            )
            return
        before = top.lines.setdefault(key.text, key.line)
        if before != key.line or any(known.text == key.text for known, _ in top.node.pairs):
            top.keep = False
            where = f"stands in line {before} already" if before != key.line else "stands here twice"
            self.problems.append(Problem(key.place(), f"the key `{key.text}` {where}"))


class _Open:
    """A list or mapping whose end has not come yet."""

    __slots__ = ("anchor", "keep", "key", "lines", "node")

    def __init__(self, node: Node, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.key: Node | None = None
        self.keep = True
        self.lines: dict[str, int] = {}


class _Stop(Exception):
    """There is no use in reading on."""
