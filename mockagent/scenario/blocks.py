"""Content: what an agent says and what its tools give back, in the scenario's friendly form or as a raw ACP block.

Local files are found here (relative to the scenario file) and their media types guessed; nothing is read.
"""

from __future__ import annotations

import os
from typing import Any

from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed
from mockagent.scenario.shapes import ByKey, Either, Field, ListOf, Nullable, Record
from mockagent.scenario.types import BAD, REQUIRED, AnyJson, Build, JsonMap, Number, Schema, Text, Type, Whole

#: extension -> media type, for local files
MEDIA: dict[str, str] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".bmp": "image/bmp",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".webm": "audio/webm",
}

#: raw ACP content blocks and their required members: ACP schema v1, `ContentBlock`
RAW: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}

#: raw ACP tool content: ACP schema v1, `ToolCallContent`
RAW_TOOL: dict[str, tuple[str, ...]] = {
    "content": ("content",),
    "diff": ("path", "newText"),
    "terminal": ("terminalId",),
}


class LocalFile(Text):
    """The path of a file beside the scenario, or an address. Paths are built absolute."""

    def __init__(self) -> None:
        super().__init__("the path of a file, an `https:` or a `data:` address", least=1)

    def build(self, node: Node, b: Build, path: str) -> Any:
        text = super().build(node, b, path)
        if text is BAD or text.startswith(("http://", "https://", "data:")) or "${" in text:
            return text
        where = os.path.join(os.path.dirname(os.path.abspath(node.file)), text)
        where = os.path.normpath(where)
        try:
            there = os.path.isfile(where)
        except ValueError:
            there = False
        return where if there else b.wrong(node, f"there is no file `{text:.80}` beside the scenario", path)


def _guess(key: str) -> Any:
    def check(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
        source = values.get(key)
        if "mime" in values or source is BAD or not isinstance(source, str):
            return
        if source.startswith("data:"):
            values["mime"] = source[5:].partition(",")[0].partition(";")[0] or "text/plain"
            return
        guess = MEDIA.get(os.path.splitext(source.partition("?")[0])[1].lower())
        if guess is not None:
            values["mime"] = guess
        elif "${" not in source:
            values["mime"] = b.wrong(node, f"the media type of `{source[-60:]}` is unknown; say `mime`", path)

    return check


_COMMON = [
    Field("annotations", JsonMap(), "Annotations of the block, as in ACP's schema."),
    Field("meta", JsonMap(), "`_meta` of the block."),
]


def _media(kind: str) -> Record:
    name = kind.capitalize()
    return Record(
        f"{name}Block",
        [
            Field(
                kind, LocalFile(), f"The {kind}: a file beside the scenario, or an address.", REQUIRED, f"logo.{kind}"
            ),
            Field("mime", Text("a media type"), "Media type.", "from the file's name"),
            Field("uri", Text(), "Where it can be had (ACP `uri`).") if kind == "image" else _COMMON[0],
            *_COMMON[0 if kind == "image" else 1 :],
        ],
        check=_guess(kind),
    )


def _link_name(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    uri = values.get("link")
    if isinstance(uri, str) and "name" not in values:
        values["name"] = uri.rstrip("/").rpartition("/")[2] or uri


def _one_of_two(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if ("text" in values) == ("blob" in values):
        values["text"] = b.wrong(node, "a resource has either `text` or `blob` (base64)", path)


BLOCKS: dict[str, Type] = {
    "text": Record("TextBlock", [Field("text", Text(), "The text.", REQUIRED), *_COMMON]),
    "image": _media("image"),
    "audio": _media("audio"),
    "link": Record(
        "LinkBlock",
        [
            Field("link", Text("an address"), "Address of the resource.", REQUIRED, "file:///home/dev/README.md"),
            Field("name", Text(), "Its name.", "the end of the address"),
            Field("title", Text(), "Its title."),
            Field("description", Text(), "What it is."),
            Field("mime", Text("a media type"), "Media type."),
            Field("size", Whole(0), "Bytes."),
            *_COMMON,
        ],
        check=_link_name,
    ),
    "resource": Record(
        "ResourceBlock",
        [
            Field(
                "resource",
                Record(
                    "Resource",
                    [
                        Field("uri", Text("an address"), "Address of the resource.", REQUIRED),
                        Field("text", Text(), "Its text."),
                        Field("blob", Text("base64"), "Its bytes, as base64."),
                        Field("mime", Text("a media type"), "Media type."),
                        Field("meta", JsonMap(), "`_meta` of the contents."),
                    ],
                    check=_one_of_two,
                ),
                "The resource itself.",
                REQUIRED,
                "{uri: file:///a.txt, text: Hello}",
            ),
            *_COMMON,
        ],
    ),
}


class RawBlock(JsonMap):
    """A block as ACP has it, told by its `type`. Unknown types are for scenarios that are not `allowed`."""

    def __init__(self, kinds: dict[str, tuple[str, ...]]) -> None:
        super().__init__("an ACP block with its `type`")
        self.kinds = kinds

    def build(self, node: Node, b: Build, path: str) -> Any:
        made = super().build(node, b, path)
        if made is BAD or b.legality != "allowed":
            b.exceeded = True
            return made
        kind = made.get("type")
        if kind not in self.kinds:
            return b.wrong(node, f"`{kind}` is no type of block; known: {listed(self.kinds)}", path)
        missing = [key for key in self.kinds[kind] if key not in made]
        return b.wrong(node, f"a block of type `{kind}` needs {listed(missing)}", path) if missing else made

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}}


Block = ByKey(
    BLOCKS | {"type": RawBlock(RAW)}, "a content block: `{text: ...}`, `{image: logo.png}`, `{link: URI}`, ..."
)

Part = Either(text=Text(), map=Block, words="a text or a content block")

#: what the text verbs take; always built as a tuple of texts and blocks
Parts = ListOf(Part, single=True, words="a text, a content block, or a list of these")

Diff = Record(
    "Diff",
    [
        Field(
            "diff",
            Record(
                "DiffFields",
                [
                    Field("path", Text("a path"), "The file, in the session's folder when relative.", REQUIRED),
                    Field("old", Nullable(Text()), "Text before; null or absent for a new file."),
                    Field("new", Text(), "Text after.", REQUIRED),
                ],
            ),
            "A change to a file.",
            REQUIRED,
            "{path: src/a.py, old: a, new: b}",
        ),
        Field("meta", JsonMap(), "`_meta` of the diff."),
    ],
)
TerminalContent = Record(
    "TerminalContent",
    [
        Field("terminal", Text("the id of a terminal"), "A terminal that the client shows live.", REQUIRED),
        Field("meta", JsonMap(), "`_meta` of the content."),
    ],
)

ToolContent = ListOf(
    Either(
        text=Text(),
        map=ByKey(
            {"diff": Diff, "terminal": TerminalContent} | BLOCKS | {"type": RawBlock(RAW | RAW_TOOL)},
            "content of a tool call: a text, `{diff: {path, old, new}}`, `{terminal: ID}` or a content block",
        ),
    ),
    single=True,
    words="text, `{diff: {path, old, new}}`, `{terminal: ID}`, a content block, or a list of these",
)

#: the result of a tool: a scalar is taken as text, anything else as JSON
ToolOutput = Either(text=Text(), list=AnyJson(), map=AnyJson(), words="a text, or any JSON value")

Locations = ListOf(
    Either(
        text=Text(),
        map=Record(
            "Location",
            [
                Field("path", Text("a path"), "The file.", REQUIRED),
                Field("line", Nullable(Number(0, whole=True, fills=True)), "Line, from 1."),
            ],
        ),
        words="`{path, line}`",
        make=lambda value: {"path": value} if isinstance(value, str) else value,
    ),
    single=True,
)
