"""The tables of faults: what can be done to a message or at a point in life, and where.

A row says what an effect takes, where it is possible and what it contradicts. Nothing here plays a fault.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mockagent.errors import NAMED
from mockagent.scenario.nodes import Node
from mockagent.scenario.problems import listed
from mockagent.scenario.shapes import ByKey, Either, Field, ListOf, MapOf, Record, Span
from mockagent.scenario.steps import Steps
from mockagent.scenario.types import (
    REQUIRED,
    AnyJson,
    Build,
    ByteRate,
    Choice,
    Micros,
    Pointer,
    Schema,
    Text,
    Type,
    Whole,
    Yes,
)

Json = AnyJson()

#: WebSocket close codes that never stand in a close frame: RFC 6455, section 7.4.1
UNSENDABLE = frozenset({1005, 1006, 1015})

#: the signals by which an agent may end itself
SIGNALS: dict[str, int] = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGABRT": 6,
    "SIGKILL": 9,
    "SIGSEGV": 11,
    "SIGPIPE": 13,
    "SIGTERM": 15,
}


def _with_message(**values: Any) -> dict[str, Any]:
    """A JSON-RPC error has a message (section 5.1): without one in the file, that of the first name with its code."""
    usual = next((row.message for row in NAMED.values() if row.code == values["code"]), "Error")
    return {"code": values["code"], "message": usual} | values


_CODED = Record(
    "Error",
    [
        Field("code", Whole(), "JSON-RPC error code.", REQUIRED, "-32603"),
        Field("message", Text(), "What is wrong.", "that of the named error with this code", "Out of memory"),
        Field("data", Json, "More about it.", "none", "{reason: oom}"),
    ],
    _with_message,
)
_HTTP = Record(
    "HttpError",
    [
        Field("status", Whole(100, 599), "HTTP status; 200 is allowed.", REQUIRED, "503"),
        Field(
            "headers", MapOf(Text(), Text(), "a mapping from name to text"), "Headers.", "none", '{Retry-After: "2"}'
        ),
        Field("body", Json, "Body: a text, or JSON.", "empty"),
    ],
)

#: an error: a name of the table, or written out
ErrorValue = Either(
    text=Choice(*NAMED, words="the name of an error"),
    map=ByKey({"code": _CODED, "status": _HTTP}, "`{code, message, data}`, or for HTTP `{status, headers, body}`"),
    words="the name of an error, `{code, message, data}`, or for HTTP `{status, headers, body}`",
)


def _close_code(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if values.get("code") in UNSENDABLE:
        values["code"] = b.wrong(
            node.get("code") or node,
            f"{values['code']} cannot be sent: RFC 6455 keeps it for what a receiver makes of a missing close frame; "
            "write `disconnect: reset` or `disconnect: half` for an abnormal close",
            path,
        )


Disconnect = Either(
    text=Choice("close", "reset", "half"),
    map=Record(
        "Close",
        [
            Field("code", Whole(1000, 4999), "WebSocket close code.", REQUIRED, "1011"),
            Field("reason", Text(), "Reason in the close frame.", "empty"),
        ],
        lambda **values: {"reason": ""} | values,
        check=_close_code,
    ),
    words="`close`, `reset`, `half`, or `{code, reason}` for a WebSocket",
)


class _Signal(Type):
    """The name of a signal, or its number. Built as the number."""

    words = f"a signal: {listed(SIGNALS)}"

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "text" and isinstance(node.value, int):
            return Whole(1, 31).build(node, b, path)
        name = node.text if node.kind == "text" else ""
        number = SIGNALS.get(name, SIGNALS.get(f"SIG{name}"))
        return self.refuse(node, b, path) if number is None else number

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [{"type": "integer"}, {"enum": [*SIGNALS, *(name[3:] for name in SIGNALS)]}]}


def _one_exit(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if len(values) != 1:
        values["code"] = b.wrong(node, "either `code` or `signal`", path)


Exit = Either(
    text=Whole(0, 255),
    map=Record(
        "Exit",
        [
            Field("code", Whole(0, 255), "Exit status.", example="1"),
            Field("signal", _Signal(), "Dies by this signal.", example="SIGKILL"),
        ],
        check=_one_exit,
    ),
    words="an exit status, or `{code: 1}`, or `{signal: SIGKILL}`",
    make=lambda value: value if isinstance(value, dict) else {"code": value},
)


class _Forever(Type):
    """A duration, or `forever`."""

    words = "a duration, or `forever`"

    def build(self, node: Node, b: Build, path: str) -> Any:
        return "forever" if node.kind == "text" and node.text == "forever" else Micros.build(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [Micros.schema(defs), {"const": "forever"}]}


def _some_stall(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if not values:
        values["write"] = b.wrong(node, "`write` or `read` is missing", path)


Stall = Record(
    "Stall",
    [
        Field("write", _Forever(), "Writes nothing for so long (wall time).", example="5s"),
        Field("read", _Forever(), "Reads nothing for so long (wall time).", example="forever"),
    ],
    check=_some_stall,
)


def _some_stderr(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if "text" not in values and "bytes" not in values:
        values["text"] = b.wrong(node, "`text` or `bytes` is missing", path)


Stderr = Either(
    text=Text(),
    map=Record(
        "Stderr",
        [
            Field("text", Text(), "What is written.", "dots"),
            Field(
                "bytes", Whole(1, 1_000_000_000), "So many bytes, by repeating the text.", "the text once", "1000000"
            ),
            Field("every", Micros, "Again and again, with this wait.", "once", "1s"),
        ],
        check=_some_stderr,
    ),
    words="a text, or `{text, bytes, every}`",
    make=lambda value: value if isinstance(value, dict) else {"text": value},
)


class _Editing(Type):
    """Values inside an edit may hold `${value}`."""

    def __init__(self, kind: Type) -> None:
        self.kind = kind
        self.words = kind.words

    def build(self, node: Node, b: Build, path: str) -> Any:
        b.editing = True
        try:
            return self.kind.build(node, b, path)
        finally:
            b.editing = False

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return self.kind.schema(defs)


_EDITS = {
    "set": Record(
        "EditSet",
        [
            Field(
                "set",
                Pointer(),
                "What is set; created if absent, `/-` appends, `/0+` inserts.",
                REQUIRED,
                "/result/title",
            ),
            Field("to", _Editing(Json), "The new value; `${value}` is the old one.", REQUIRED, "null"),
            Field("as", Choice("string", "number"), "Turns the value into this type.", "as it is", "string", attr="as"),
        ],
    ),
    "remove": Record(
        "EditRemove",
        [Field("remove", Pointer(), "What is removed; what is absent is left alone.", REQUIRED, "/result/sessions/0")],
    ),
    "event_name": Record(
        "EditEvent", [Field("event_name", _Editing(Text()), "New name of the SSE event.", REQUIRED, "text_dleta")]
    ),
}
Edit = ListOf(
    ByKey(_EDITS, "`{set: POINTER, to: VALUE}`, `{remove: POINTER}` or `{event_name: NAME}`"), single=True, least=1
)

HOLDS = ("reply", "turn_ended", "next_prompt", "never")


class _Until(Type):
    words = f"{listed(HOLDS)}, or a duration"

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "text" and node.text[:1].isdigit():
            return Span.build(node, b, path)
        return (Choice(*HOLDS, words=self.words) if node.kind == "text" else Span).build(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [{"enum": list(HOLDS)}, Span.schema(defs)]}


Hold = Either(
    text=_Until(),
    map=Record("Hold", [Field("until", _Until(), "When it is let go.", REQUIRED, "reply")]),
    words="`{until: EVENT}`; events: " + _Until.words,
    make=lambda value: value if isinstance(value, dict) else {"until": value},
)

Page = Either(
    text=Choice("empty", "shrink", "shuffle"),
    map=Record("Overlap", [Field("overlap", Whole(1), "So many rows of the page before come again.", REQUIRED, "2")]),
    words="`empty`, `shrink`, `shuffle` or `{overlap: N}`",
)
Rows = ListOf(
    Record(
        "RowRule",
        [
            Field("match", Text("a glob"), "Over the session's id.", "*", "sess_*"),
            Field("set", Json, "Members of the row.", "nothing", "{title: null}"),
            Field("copies", Whole(0), "How often the row comes, in all.", "1", "2"),
        ],
        lambda **values: {"match": "*"} | values,
    ),
    single=True,
)


class _Cuts(Type):
    """`at` of a split: offsets in bytes, or `utf8`."""

    words = "a list of offsets in bytes, or `utf8` (inside the first character of several bytes)"
    _offsets = ListOf(Whole(1), single=True, least=1)

    def build(self, node: Node, b: Build, path: str) -> Any:
        return "utf8" if node.kind == "text" and node.text == "utf8" else self._offsets.build(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [self._offsets.schema(defs), {"const": "utf8"}]}


def _one_cut(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if ("at" in values) == ("parts" in values):
        values["at"] = b.wrong(node, "either `at` or `parts`", path)


Split = Record(
    "Split",
    [
        Field("at", _Cuts(), "Where it is cut.", example="[10, 20]"),
        Field("parts", Whole(2, 1_000_000), "Into so many equal parts.", example="3"),
        Field("into", Choice("writes", "frames", "messages"), "What each part becomes.", "writes", "frames"),
        Field("pause", Micros, "Wait between parts (wall time).", "none", "50ms"),
    ],
    lambda **values: {"into": "writes"} | values,
    check=_one_cut,
)
Around = Record(
    "Around",
    [
        Field("before", Text(), "Bytes at the beginning of its line, event or frame.", "none", '"\\e[0m"'),
        Field("after", Text(), "Bytes behind its end; on a WebSocket inside the frame.", "none"),
    ],
)
IGNORABLE = ("eof", "sigterm", "cancel", "ping")


class Effect(NamedTuple):
    """One row.

    Attributes:
        name: the key in a fault.
        layer: `answer`, `order`, `list`, `wire` or `life`; effects of one fault apply in this order.
        type: of its value.
        does: one sentence.
        example: a fault, as YAML in one line.
        on: where it is possible: `in` (a request; acts on its reply), `notice` (a notification of the client), `answer`
            (its answer to a request of ours), `reply`, `out` (what else goes out), `list` (a request for the list),
            `life` (points in life), `stream` (a stream's GET).
        against: effects that cannot stand beside it.
        transports: where the wire can carry it.
    """

    name: str
    layer: str
    type: Type
    does: str
    example: str
    on: tuple[str, ...]
    against: tuple[str, ...] = ()
    transports: tuple[str, ...] = ("stdio", "ws", "http")


_BOTH = ("in", "notice", "answer", "reply", "out")
_ANSWER = ("in", "notice", "reply")
_BYTES = ("in", "reply", "out")
_ANY = (*_BOTH, "life")
_WIRE = ("bytes", "newline", "split", "coalesce", "truncate", "rate", "escape", "binary", "comment", "no_blank")
_LIST = ("cursor", "page", "rows")

_ROWS = (
    Effect("error", "answer", ErrorValue, "Answers with an error, in place of the handler; on `reply:`, behind it.",
           "{at: session/list, when: {nth: 2}, error: invalid_cursor}", _ANSWER, ("result", "drop", *_LIST)),
    Effect("result", "answer", Json, "Answers with this result, in place of the handler; on `reply:`, behind it.",
           "{at: session/load, result: null}", _ANSWER, ("error", "drop", *_LIST)),
    Effect("edit", "answer", Edit,
           "Changes the reply, or the message. At a request, `/params/...` and `/http/query/...` change the request.",
           '{at: "update:session_info_update", edit: [{set: /params/update/title, to: 7}]}', _BOTH, ("drop",)),
    Effect("event_name", "answer", _Editing(Text()), "Gives the SSE event another name.",
           '{at: "event:text_delta", event_name: text_dleta}', _BYTES, ("drop",), ("http",)),
    Effect("drop", "order", Yes(), "The request never arrives; the message never leaves.",
           '{at: "reply:session/prompt", drop: true}', _BOTH,
           ("error", "result", "edit", "event_name", "copies", "delay", "hold", "resend", *_LIST, *_WIRE)),
    Effect("copies", "order", Whole(2), "The message leaves so many times in all.",
           '{at: "update:agent_message_chunk", copies: 2}', _BOTH, ("drop",)),
    Effect("delay", "order", Span, "Holds back the message, and all behind it on the channel.",
           "{at: initialize, delay: 20s}", _BOTH, ("drop", "hold")),
    Effect("hold", "order", Hold, "Holds back the message; others pass it.",
           '{at: "reply:session/new", when: {nth: 1}, hold: {until: reply}}', _BOTH, ("drop", "delay")),
    Effect("play_before", "order", Steps, "Plays steps before the message.",
           '{at: "reply:session/new", play_before: [{info: {title: Early}}]}', _BOTH),
    Effect("play_after", "order", Steps, "Plays steps behind the message and its copies.",
           '{at: "event:turn_stop", play_after: [{say: One more thing}]}', _BOTH),
    Effect("resend", "order", Choice("unseen", "all", "none"), "What a stream that is opened again gets of the past.",
           '{at: "GET /acp", resend: all}', ("stream",), ("drop",), ("http",)),
    Effect("cursor", "list", Choice("repeat", "cycle", "empty", "null", "endless", "expired"), "A cursor that lies.",
           "{at: list, cursor: repeat}", ("list",), ("error", "result", "drop")),
    Effect("page", "list", Page, "A page that does not fit to the others.",
           "{at: list, when: {nth: 2}, page: {overlap: 3}}", ("list",), ("error", "result", "drop")),
    Effect("rows", "list", Rows, "Rows with other values, or several times.",
           "{at: list, rows: [{match: sess_auth, set: {title: null}}]}", ("list",), ("error", "result", "drop")),
    Effect("bytes", "wire", Around, "Puts bytes around the message.",
           '{at: "reply:initialize", bytes: {before: "Starting...\\n"}}', _BYTES, ("drop",)),
    Effect("newline", "wire", Choice("crlf", "cr", "none", "double"), "Another end of line.",
           '{at: "*", newline: crlf}', _BYTES, ("drop",)),
    Effect("split", "wire", Split, "Sends the message in several writes, frames or messages.",
           "{at: say, split: {at: utf8, pause: 50ms}}", _BYTES, ("drop",)),
    Effect("coalesce", "wire", Whole(2), "This message and so many less one before it leave in one write.",
           '{at: "reply:session/prompt", coalesce: 3}', _BYTES, ("drop",)),
    Effect("truncate", "wire", Whole(0), "Only the first bytes leave.",
           "{at: say, truncate: 40}", _BYTES, ("drop",)),
    Effect("rate", "wire", ByteRate, "The bytes drip out (wall time).",
           "{at: say, rate: 200B/s}", _BYTES, ("drop",)),
    Effect("escape", "wire", Choice("ascii"), "Writes all other characters as JSON escapes.",
           "{at: say, escape: ascii}", _BYTES, ("drop",)),
    Effect("binary", "wire", Yes(), "Sends a binary frame.",
           "{at: say, when: {transport: ws}, binary: true}", _BYTES, ("drop",), ("ws",)),
    Effect("comment", "wire", Text(),
           "Puts a sign of life before the message: on an SSE stream a comment, on a WebSocket a ping with this data.",
           '{at: "event:text_delta", comment: keep-alive}', _BYTES, ("drop",), ("ws", "http")),
    Effect("no_blank", "wire", Yes(), "Leaves out the blank line behind the event.",
           '{at: "event:turn_stop", no_blank: true}', _BYTES, ("drop",), ("http",)),
    Effect("disconnect", "life", Disconnect, "Ends the channel, behind what was sent before.",
           '{at: say, when: {nth: 3}, disconnect: reset}', _ANY, ("exit",)),
    Effect("exit", "life", Exit, "Ends the process.",
           "{at: start, stderr: no licence, exit: {code: 1}}", _ANY, ("disconnect",)),
    Effect("stall", "life", Stall, "Stops writing or reading on the channel.",
           "{at: say, when: {nth: 2}, stall: {write: forever}}", _ANY),
    Effect("ignore", "life", ListOf(Choice(*IGNORABLE), single=True, least=1), "Goes on as if this had not happened.",
           "{at: eof, ignore: [eof]}", _ANY),
    Effect("stderr", "life", Stderr, "Writes to standard error.",
           "{at: start, stderr: {bytes: 1000000}}", _ANY),
    Effect("child", "life", Micros, "Starts a child process that does nothing, hears neither the end of its stdin nor "
           "SIGTERM, keeps stderr open, and stays for so long (wall time).",
           "{at: start, child: 30s}", _ANY),
)  # fmt: skip

#: name -> row, in the order of the layers
EFFECTS: dict[str, Effect] = {row.name: row for row in _ROWS}
