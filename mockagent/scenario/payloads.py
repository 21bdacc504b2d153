"""What the verbs take: one type for each payload, key by key.

Values that the specs enumerate (tool kinds, stop reasons, ...) can be exceeded by scenarios that are not `allowed`.
The rows of the verbs themselves stand in `verbs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mockagent.scenario.blocks import Locations, Part, Parts, ToolContent, ToolOutput
from mockagent.scenario.model import (
    Ask,
    Call,
    Elicit,
    InfoFields,
    McpCall,
    Read,
    Repeat,
    Step,
    Terminal,
    Tool,
    ToolFields,
    WaitFor,
    Write,
)
from mockagent.scenario.nodes import Node
from mockagent.scenario.shapes import Either, Field, ListOf, MapOf, Nullable, Record, Span
from mockagent.scenario.steps import Steps
from mockagent.scenario.types import (
    BAD,
    REQUIRED,
    AnyJson,
    Bool,
    Build,
    Choice,
    JsonMap,
    Known,
    Number,
    Schema,
    Text,
    Type,
    Whole,
)

# --- what the specs enumerate: ACP schema v1 (`ToolKind`, `ToolCallStatus`, ...), AAP `stopReason`

TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
TOOL_STATUSES = ("pending", "in_progress", "completed", "failed")
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error")
OPTION_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
PRIORITIES = ("high", "medium", "low")
PLAN_STATUSES = ("pending", "in_progress", "completed")
UPDATES = (
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
)

ToolKind = Known("kind of tool", *TOOL_KINDS)
ToolStatus = Known("status of a tool call", *TOOL_STATUSES)
StopReason = Known("stop reason", *STOP_REASONS)
Meta = JsonMap()
Json = AnyJson()


def _permission_options(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if "kind" not in values:
        if values.get("id") in OPTION_KINDS:
            values["kind"] = values["id"]
        else:
            values["kind"] = b.wrong(
                node, "`kind` is missing; it can be left out only if the id is a kind itself", path
            )
    values.setdefault("name", values.get("id"))


PermissionOptions = ListOf(
    Record(
        "PermissionOption",
        [
            Field("id", Text(), "Given back by the client.", REQUIRED, "allow_once"),
            Field("name", Text(), "Label.", "the id"),
            Field("kind", Known("kind of permission option", *OPTION_KINDS), "What choosing it means.", "the id"),
            Field("meta", Meta, "`_meta` of the option."),
        ],
        check=_permission_options,
    ),
    words="a list of `{id, name, kind}`",
)


class _OptionList(Type):
    """Permission options; an empty list breaks the rule that there is something to choose."""

    words = PermissionOptions.words

    def inner(self) -> Iterable[Type]:
        return (PermissionOptions,)

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "list" and not node.items:
            b.exceeded = True
            if b.legality == "allowed":
                return b.wrong(
                    node, "a permission request without options is for scenarios that are not `allowed`", path
                )
        return PermissionOptions.build(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return PermissionOptions.schema(defs)


def _ask_needs(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if "tool" not in values and "title" not in values:
        values["tool"] = b.wrong(node, "either `tool` (the id of a tool call) or `title` says what is asked for", path)


_ASK_OPTIONS = [
    Field("content", ToolContent, "Shown with the question."),
    Field("options", _OptionList(), "What the user can choose.", "allow_once and reject_once"),
]
AskPayload = Record(
    "Ask",
    [
        Field("tool", Text("the id of a tool call"), "A tool call that was shown before.", example="call_1"),
        Field("title", Text(), "Title of a tool call that only this request tells of.", example="Delete the branch"),
        *_ASK_OPTIONS,
    ],
    Ask,
    check=_ask_needs,
)
_AskInTool = Record("AskInTool", _ASK_OPTIONS, Ask)


class _BoolOr(Type):
    """`true`, `false`, or a mapping."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.words = f"`true`, `false`, or {record.words}"

    def inner(self) -> Iterable[Type]:
        return (self.record,)

    def build(self, node: Node, b: Build, path: str) -> Any:
        return (self.record if node.kind == "map" else Bool()).build(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [{"type": "boolean"}, self.record.schema(defs)]}


_TOOL_LOOK = [
    Field("name", Text(), "Programmatic name.", example="web_search"),
    Field("kind", ToolKind, "Category, for the icon.", "other", "fetch"),
    Field("title", Text(), "What it does, for people.", "the name", "Looking up"),
    Field("locations", Locations, "Files it works on.", example="[{path: src/a.py, line: 3}]"),
    Field("input", Json, "Its arguments (ACP `rawInput`, AAP `input`).", example="{q: Osaka}"),
    Field("content", ToolContent, "What the client shows for it.", example="[{diff: {path: a.py, old: a, new: b}}]"),
    Field(
        "output", ToolOutput, "Its result (ACP `rawOutput`, and content if a text; AAP `tool_result`).", example="18°C"
    ),
]
ToolPayload = Record(
    "Tool",
    [
        Field("id", Text(), "Id of the tool call.", "a new one", "call_1"),
        *_TOOL_LOOK,
        Field("ask", _BoolOr(_AskInTool), "Asks the client first.", "false", "true"),
        Field("takes", Span, "Time from the start to the result.", "0s", "800ms"),
        Field("status", ToolStatus, "How it ends.", "completed", "failed"),
        Field(
            "side",
            Choice("server", "client"),
            "Who runs it. Over ACP a tool of the client is skipped.",
            "server",
            "client",
        ),
        Field("listed", Bool(), "Whether AAP's `/meta` has it.", "as in `agent.tools`", "false"),
    ],
    Tool,
)


class _ToolFields(Record):
    """`tool_start`, `tool_update`: keeps exactly the keys that were written."""

    def build(self, node: Node, b: Build, path: str) -> Any:
        values = super().build(node, b, path)
        return values if values is BAD else ToolFields(id=values.pop("id"), fields=values)


_TOOL_FIELDS = [
    Field("id", Text(), "Id of the tool call.", REQUIRED, "call_1"),
    *(field._replace(type=Nullable(field.type), default=None) for field in _TOOL_LOOK),
    Field("status", Nullable(ToolStatus), "Its status.", example="in_progress"),
]

ToolStart = _ToolFields("ToolStart", _TOOL_FIELDS)
ToolUpdate = _ToolFields("ToolUpdate", _TOOL_FIELDS)

PlanPayload = ListOf(
    Either(
        text=Text(),
        map=Record(
            "PlanEntry",
            [
                Field("content", Text(), "What is to be done.", REQUIRED, "Look it up"),
                Field("status", Known("status of a plan entry", *PLAN_STATUSES), "How far it is.", "pending"),
                Field("priority", Known("priority", *PRIORITIES), "How much it matters.", "medium"),
                Field("meta", Meta, "`_meta` of the entry.", attr="_meta"),
            ],
        ),
        words="`{content, status, priority}`, or a text",
        make=lambda value: (
            {"status": "pending", "priority": "medium"} | (value if isinstance(value, dict) else {"content": value})
        ),
    ),
)

Count = Number(0, whole=True, fills=True)
Usage = Record(
    "Usage",
    [
        Field("used", Count, "Tokens in the context.", REQUIRED, "1200"),
        Field("size", Count, "Size of the context.", REQUIRED, "200000"),
        Field(
            "cost",
            Nullable(
                Record(
                    "Cost",
                    [
                        Field("amount", Number(fills=True), "How much, in all.", REQUIRED, "0.12"),
                        Field("currency", Text(), "ISO 4217 code, or `credits`.", REQUIRED, "EUR"),
                    ],
                )
            ),
            "What the session has cost.",
            example="{amount: 0.12, currency: EUR}",
        ),
    ],
)

CommandRow = Record(
    "Command",
    [
        Field("name", Text(), "Name without the slash.", REQUIRED, "plan"),
        Field("description", Text(), "What it does.", "empty", "Make a plan"),
        Field("hint", Nullable(Text()), "What to write behind it.", example="what to plan"),
    ],
    lambda **values: {"description": ""} | values,
)

OptionChange = Record(
    "OptionChange",
    [
        Field("id", Text(), "Id of the option.", REQUIRED, "model"),
        Field("value", Json, "Its new value.", REQUIRED, "smart"),
    ],
)

Notice = Either(
    text=Text(least=1),
    map=Record(
        "Notice",
        [
            Field("title", Text(least=1), "What to tell.", REQUIRED, "The model is overloaded"),
            Field("severity", Known("severity", "info", "warning", "error"), "How bad it is.", "info", "warning"),
            Field("description", Nullable(Text()), "More about it."),
        ],
    ),
    make=lambda value: {"severity": "info"} | (value if isinstance(value, dict) else {"title": value}),
    words="`{title, severity, description}`, or a text",
)


def _compaction_needs(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if ("status" in values) == ("chunk" in values):
        values["status"] = b.wrong(node, "either `status` (an update) or `chunk` (more of the summary)", path)


Compaction = Record(
    "Compaction",
    [
        Field("id", Text(), "Id of the compaction.", REQUIRED, "compact_1"),
        Field(
            "status",
            Known("status of a compaction", "in_progress", "completed", "failed", "cancelled"),
            "How far it is.",
            example="in_progress",
        ),
        Field("summary", Nullable(Parts), "The whole summary so far; null clears it."),
        Field("error", Nullable(Text()), "Why it failed."),
        Field("chunk", Part, "One more piece of the summary, in place of a status."),
    ],
    check=_compaction_needs,
)


class _Moment(Text):
    """A time as sessions carry it. Broken ones can be said by scenarios that are not `allowed`."""

    def __init__(self) -> None:
        super().__init__("an ISO time, `now`, or `2h ago`")

    def build(self, node: Node, b: Build, path: str) -> Any:
        from mockagent.scenario import scalars

        text = super().build(node, b, path)
        if text is BAD or text == "now" or "${" in text:
            return text
        try:
            if text.endswith(" ago"):
                scalars.duration(text[:-4].strip())
            else:
                scalars.instant(text)
        except ValueError as error:
            b.exceeded = True
            if b.legality == "allowed":
                return b.wrong(node, f"{error} (`2h ago` and `now` are fine too)", path)
        return text


Moment = _Moment()
Info = Record(
    "Info",
    [
        Field("title", Nullable(Text()), "New title; null clears it.", "kept", "Weather in Osaka"),
        Field("updated_at", Nullable(Moment), "New time of the last activity; null clears it.", "kept", "2h ago"),
        Field("meta", Nullable(Meta), "Merged deeply; null inside removes a key, null removes all.", "kept"),
        Field("force", Bool(), "Passes the title limit.", "false", "true"),
    ],
    InfoFields,
)


def _elicit_needs(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if ("schema" in values) == ("url" in values):
        values["schema"] = b.wrong(node, "either `schema` (a form) or `url`", path)


Position = Number(0, whole=True)
ReadPayload = Either(
    text=Text(),
    map=Record(
        "Read",
        [
            Field("path", Text(), "The file, in the session's folder when relative.", REQUIRED, "src/a.py"),
            Field("line", Position, "First line, from 1.", example="1"),
            Field("limit", Position, "So many lines.", example="40"),
        ],
        Read,
    ),
    make=lambda value: Read(path=value) if isinstance(value, str) else value,
    words="a path, or `{path, line, limit}`",
)
WritePayload = Record(
    "Write",
    [
        Field("path", Text(), "The file, in the session's folder when relative.", REQUIRED, "notes.txt"),
        Field("content", Text(), "Its new text.", REQUIRED, "Hello"),
    ],
    Write,
)
TerminalPayload = Either(
    text=Text(),
    map=Record(
        "Terminal",
        [
            Field("command", Text(), "The program.", REQUIRED, "pytest"),
            Field("args", ListOf(Text()), "Its arguments.", "none", "[-q]"),
            Field("cwd", Text(), "Its folder.", "the session's"),
            Field("env", MapOf(Text(), Text(), "a mapping from name to text"), "Its variables.", "none"),
            Field("limit", Whole(0), "Bytes of output that the client keeps.", example="65536"),
            Field("kill_after", Span, "Kills it after so long; the outcome is `timeout`.", "never", "5s"),
            Field("tool", Text("the id of a tool call"), "A tool call that shows it live.", example="call_1"),
        ],
        Terminal,
    ),
    make=lambda value: Terminal(command=value) if isinstance(value, str) else value,
    words="a command, or `{command, args, cwd, env, limit, kill_after, tool}`",
)
ElicitPayload = Record(
    "Elicit",
    [
        Field("message", Text(), "The question.", REQUIRED, "Which branch?"),
        Field("schema", Meta, "JSON Schema of a form.", example="{type: object, properties: {branch: {type: string}}}"),
        Field("url", Text("an address"), "A page for the user, in place of a form."),
        Field("id", Text(), "Id of a page, for `elicitation/complete`.", "a new one", "login_1"),
        Field("tool", Text("the id of a tool call"), "A tool call that it belongs to.", example="call_1"),
    ],
    Elicit,
    check=_elicit_needs,
)
McpPayload = Record(
    "Mcp",
    [
        Field("server", Text(), "Name of one of the client's MCP servers.", REQUIRED, "files"),
        Field("tool", Text(), "Name of the tool.", REQUIRED, "read"),
        Field("arguments", Meta, "Its arguments.", "none"),
    ],
    McpCall,
)
CallPayload = Either(
    text=Text("a method", least=1),
    map=Record(
        "Call",
        [
            Field("method", Text("a method", least=1), "Name of the method.", REQUIRED, "_acme/ping"),
            Field(
                "params", Json, "Its params; `sessionId` is added to a mapping without one.", "only the session's id"
            ),
        ],
        Call,
    ),
    make=lambda value: Call(method=value) if isinstance(value, str) else value,
    words="a method, or `{method, params}`",
)


class _Update(JsonMap):
    """A raw update; its kind is held to the schema in `allowed` scenarios."""

    def __init__(self) -> None:
        super().__init__("the body of a `session/update`, with `sessionUpdate`")

    def build(self, node: Node, b: Build, path: str) -> Any:
        made = super().build(node, b, path)
        kind = node.get("sessionUpdate") if made is not BAD else None
        if made is BAD or b.legality != "allowed":
            return made
        if kind is None:
            return b.wrong(node, "`sessionUpdate` is missing; only scenarios that are not `allowed` can do that", path)
        return BAD if Known("kind of update", *UPDATES).build(kind, b, path) is BAD else made


def _repeat_ends(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    if values.get("times") is None and not values.get("every") and not any(map(_waits, values.get("steps") or ())):
        values["times"] = b.wrong(node, "this repeats for ever without a wait; say `times`, or `every`", path)


#: verbs that take time, or end a turn
_PAUSING = frozenset(
    {"wait", "wait_for", "ask", "read", "write", "terminal", "elicit", "mcp", "request", "hang", "stop"}
)


def _waits(step: object) -> bool:
    return isinstance(step, Step) and (
        bool(step.after) or step.verb in _PAUSING or bool(getattr(step.payload, "takes", 0))
    )


RepeatPayload = Record(
    "Repeat",
    [
        Field("times", Whole(0), "How often.", "for ever", "3"),
        Field("every", Span, "Wait between two rounds.", "0s", "1s"),
        Field("steps", Steps, "What is repeated.", REQUIRED, "[{say: tick}]"),
    ],
    Repeat,
    check=_repeat_ends,
)
WaitForPayload = Either(
    text=Text("a method", least=1),
    map=Record(
        "WaitFor",
        [
            Field(
                "method",
                Text("a method", least=1),
                "What the client has to send, from now on.",
                REQUIRED,
                "session/cancel",
            ),
            Field("timeout", Span, "Goes on without it after so long.", "never", "5s"),
        ],
        WaitFor,
    ),
    make=lambda value: WaitFor(method=value) if isinstance(value, str) else value,
    words="a method, or `{method, timeout}`",
)

Update = _Update()
