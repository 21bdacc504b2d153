"""The agent and its sessions: what a scenario file says under `agent` and `sessions`.

What happens is said elsewhere: steps in `verbs`, the other keys of a file in `top`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mockagent.errors import NAMED
from mockagent.scenario import model
from mockagent.scenario.conditions import SettingType
from mockagent.scenario.effects import ErrorValue
from mockagent.scenario.nodes import Node
from mockagent.scenario.payloads import CommandRow, Moment
from mockagent.scenario.problems import listed
from mockagent.scenario.shapes import Couple, Either, Field, ListOf, MapOf, Nullable, Record, Span
from mockagent.scenario.steps import StepList
from mockagent.scenario.types import (
    REQUIRED,
    Bool,
    Build,
    Choice,
    JsonMap,
    Known,
    Micros,
    Number,
    PerSecond,
    Schema,
    Text,
    Type,
    Whole,
)
from mockagent.scenario.verbs import HISTORY_VERBS

# --- agent

#: group -> its switches; the attribute of the model behind each
_GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "prompt": {
        "image": ("image", "ACP prompts may hold images."),
        "audio": ("audio", "ACP prompts may hold audio."),
        "embedded_context": ("embedded_context", "ACP prompts may hold resources."),
    },
    "mcp": {
        "http": ("mcp_http", "MCP servers over HTTP."),
        "sse": ("mcp_sse", "MCP servers over SSE."),
    },
    "history": {
        "full": ("history_full", "AAP gives the full history."),
        "compacted": ("history_compacted", "AAP gives a compacted history."),
    },
    "stream": {
        "delta": ("stream_delta", "AAP streams pieces."),
        "message": ("stream_message", "AAP streams whole messages."),
        "none": ("stream_none", "AAP answers without a stream."),
    },
    "images": {
        "http": ("images_http", "AAP takes images by address."),
        "data": ("images_data", "AAP takes images as data."),
    },
}
_SWITCHES = {
    "load": "`session/load`.",
    "list": "`session/list`.",
    "resume": "`session/resume`.",
    "close": "`session/close`.",
    "delete": "`session/delete`.",
    "fork": "`session/fork` (unstable).",
    "additional_directories": "Sessions with more than one folder.",
    "client_tools": "AAP takes tools of the client.",
}


class _Group(Type):
    """`true` or `false` for all of a group, or a mapping. Built as a mapping from attribute to value."""

    def __init__(self, name: str) -> None:
        self.names = {key: attr for key, (attr, _) in _GROUPS[name].items()}
        fields = [Field(key, Bool(), doc, "true", attr=attr) for key, (attr, doc) in _GROUPS[name].items()]
        self.record = Record("", fields)
        self.words = f"`true`, `false`, or {self.record.words}"

    def inner(self) -> Iterable[Type]:
        return (self.record,)

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "map":
            return self.record.build(node, b, path)
        value = Bool().build(node, b, path)
        return dict.fromkeys(self.names.values(), value) if isinstance(value, bool) else value

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [{"type": "boolean"}, self.record.schema(defs)]}


def _capabilities(**values: Any) -> model.Capabilities:
    flat: dict[str, bool] = {}
    for key, value in values.items():
        flat |= value if isinstance(value, dict) else {key: value}
    return model.Capabilities(**flat)


CapabilitiesType = Record(
    "Capabilities",
    [
        *(Field(key, Bool(), doc, "false" if key == "fork" else "true") for key, doc in _SWITCHES.items()),
        *(Field(key, _Group(key), "All of them, or one by one.", "all true") for key in _GROUPS),
    ],
    _capabilities,
)

_OptionChoice = Record(
    "OptionChoice",
    [
        Field("value", Text(), "The value.", REQUIRED, "fast"),
        Field("name", Text(), "Its label.", "the value", "Fast"),
        Field("description", Text(), "What it means."),
        Field("when", SettingType, "It can be chosen only while this holds.", example="{option: {model: smart}}"),
    ],
    lambda **values: {"value": values["value"], "name": values.get("name", values["value"])} | values,
)
_PlainChoice = Either(
    text=Text(),
    map=_OptionChoice,
    words="a value, or `{value, name}`",
    make=lambda value: {"value": value, "name": value} if isinstance(value, str) else value,
)
_OptionGroup = Record(
    "OptionGroup",
    [
        Field("group", Text(), "Id of the group.", REQUIRED, "quick"),
        Field("name", Text(), "Its label.", "the id", "Quick ones"),
        Field("choices", ListOf(_PlainChoice), "Its choices.", REQUIRED, attr="options"),
    ],
    lambda **values: {"name": values["group"]} | values,
)


class _ChoiceOrGroup(Type):
    words = "a value, `{value, name}`, or `{group, name, choices}`"

    def inner(self) -> Iterable[Type]:
        return (_OptionChoice, _OptionGroup)

    def build(self, node: Node, b: Build, path: str) -> Any:
        return (_OptionGroup if node.get("group") else _PlainChoice).build(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"anyOf": [_PlainChoice.schema(defs), _OptionGroup.schema(defs)]}


class _Value(Type):
    """The value of an option, as text unless it is boolean."""

    words = "a text, or `true` or `false` for a boolean option"

    def build(self, node: Node, b: Build, path: str) -> Any:
        if node.kind == "text" and isinstance(node.value, bool):
            return node.value
        return Text(self.words).build(node, b, path)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        return {"type": ["string", "number", "boolean"]}


def _option_fits(values: dict[str, Any], node: Node, b: Build, path: str) -> None:
    kind, value, choices = values.get("type"), values.get("value"), values.get("choices")
    at = node.get("value") or node
    if kind == "boolean" and not isinstance(value, bool) and isinstance(value, str):
        values["value"] = b.wrong(at, "a boolean option has the value `true` or `false`", path)
    elif kind in ("select", "text", "secret") and isinstance(value, bool):
        values["value"] = at.text
    if kind == "select" and choices is None:
        values["choices"] = b.wrong(node, "a select option needs `choices`", path)
    elif kind != "select" and isinstance(kind, str) and choices is not None:
        values["choices"] = b.wrong(node.get("choices") or node, f"a {kind} option has no `choices`", path)
    if kind == "select" and isinstance(choices, tuple) and isinstance(values["value"], str):
        allowed = _choice_values(choices)
        if allowed is not None and values["value"] not in allowed and b.legality == "allowed":
            values["value"] = b.wrong(at, f"`{values['value']}` is none of the choices: {listed(allowed)}", path)


def _choice_values(choices: tuple[Any, ...]) -> list[str] | None:
    """The values, through all groups; None if some could not be built."""
    found: list[str] = []
    for choice in choices:
        if not isinstance(choice, dict):
            return None
        inner = _choice_values(choice["options"]) if "options" in choice else [choice["value"]]
        if inner is None:
            return None
        found += inner
    return found


def _distinct(kind: str, key: str) -> Any:
    """A check on lists of structs: no two with the same key."""

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


Options = _distinct("option", "id")(
    Record(
        "Option",
        [
            Field("id", Text(), "Its id (AAP: `name`).", REQUIRED, "model"),
            Field("name", Text(), "Its label (AAP: `title`).", "the id", "Model"),
            Field(
                "type",
                Choice("select", "boolean", "text", "secret"),
                "boolean: ACP only; text, secret: AAP only.",
                REQUIRED,
            ),
            Field("value", _Value(), "Its value in a new session.", REQUIRED, "fast"),
            Field("description", Text(), "What it does."),
            Field(
                "category",
                Text("a category such as `mode`, `model`, `model_config`, `thought_level`, or `_own`"),
                "What kind of setting it is.",
                example="model",
            ),
            Field(
                "choices",
                ListOf(_ChoiceOrGroup(), least=0),
                "The values of a select option, or groups of them.",
                example="[{value: fast, name: Fast}]",
            ),
            Field("when", SettingType, "The option is there only while this holds (ACP).", example="{mode: code}"),
        ],
        lambda **values: model.Option(**({"name": values["id"]} | values)),
        check=_option_fits,
    )
)
Modes = _distinct("mode", "id")(
    Record(
        "Mode",
        [
            Field("id", Text(), "Its id.", REQUIRED, "code"),
            Field("name", Text(), "Its label.", "the id", "Code"),
            Field("description", Text(), "What it does."),
        ],
        lambda **values: model.Mode(**({"name": values["id"]} | values)),
    )
)
Tools = _distinct("tool", "name")(
    Record(
        "ListedTool",
        [
            Field("name", Text(), "Its name.", REQUIRED, "web_search"),
            Field("title", Text(), "Its label.", example="Web Search"),
            Field("description", Text(), "What it does."),
            Field("parameters", JsonMap(), "JSON Schema of its input.", example="{type: object}"),
            Field("listed", Bool(), "Whether AAP's `/meta` has it.", "true", "false"),
        ],
        model.ListedTool,
    )
)


def _auth_method(**values: Any) -> dict[str, Any]:
    made = {"name": values["id"]} | values
    if made.get("type") == "terminal":
        made.setdefault("args", (f"--login={made['id']}",))
    return made


AuthType = Record(
    "Auth",
    [
        Field("required", Bool(), "Nothing but `initialize` and `authenticate` works before.", "false"),
        Field("logout", Bool(), "ACP's `logout`; there is none without methods.", "true"),
        Field(
            "methods",
            ListOf(
                Record(
                    "AuthMethod",
                    [
                        Field("id", Text(), "Its id.", REQUIRED, "login"),
                        Field("name", Text(), "Its label.", "the id", "Log in"),
                        Field("description", Text(), "What the user has to do."),
                        Field("type", Known("type of auth method", "agent", "terminal"), "Who does it.", "agent"),
                        Field("args", ListOf(Text()), "Arguments of a terminal method.", "`[--login=ID]`"),
                        Field("env", MapOf(Text(), Text(), "a mapping from name to text"), "Its variables.", "none"),
                        Field(
                            "exit",
                            Whole(0, 255),
                            "Exit status of `mockagent acp SCENARIO --login`: 0 is success.",
                            "0",
                            "1",
                        ),
                        Field("meta", JsonMap(), "`_meta` of the method.", attr="_meta"),
                    ],
                    _auth_method,
                )
            ),
            "ACP's ways to log in.",
            "none",
        ),
        Field("tokens", ListOf(Text(), single=True), "AAP's bearer tokens; with none, none is asked for.", "none"),
        Field("public_meta", Bool(), "AAP's `/meta` needs no token.", "true"),
    ],
    model.Auth,
)
_Versions = ListOf(Whole(0, 65535), single=True)


def _agent(protocols: dict[str, Any] | None = None, **values: Any) -> model.Agent:
    return model.Agent(**(protocols or {}), **values)


AgentType = Record(
    "Agent",
    [
        Field("name", Text(least=1), "Programmatic name.", "mock-agent", "mock-coder"),
        Field("title", Nullable(Text()), "Name for people.", "Mock Agent", "Mock Coder"),
        Field("version", Text(), "Its version.", "1.0.0"),
        Field("description", Text(), "What it is (AAP)."),
        Field(
            "protocols",
            Record(
                "Protocols",
                [
                    Field("acp", _Versions, "ACP versions that it plays.", "[1]"),
                    Field("aap", _Versions, "AAP versions that it plays.", "[3]"),
                ],
            ),
            "Versions of the protocols.",
            "{acp: [1], aap: [3]}",
        ),
        Field("capabilities", CapabilitiesType, "What it can do.", "all stable ones", "{load: false}"),
        Field("message_ids", Bool(), "Messages have ids (ACP).", "true"),
        Field(
            "auth", AuthType, "Who may use it.", "everybody", "{required: true, methods: [{id: login, name: Log in}]}"
        ),
        Field("modes", Modes, "Session modes; the first one is current.", "none", "[{id: ask, name: Ask}]"),
        Field("options", Options, "Options of a session.", "none"),
        Field(
            "mcp",
            Choice("check", "connect", "require"),
            "The client's MCP servers: `check` validates and notes them, `connect` starts and connects them, `require` "
            "too, and refuses the session if one cannot be reached.",
            "check",
        ),
        Field(
            "commands",
            ListOf(CommandRow),
            "Slash commands that every session starts with.",
            "none",
            "[{name: plan, description: Make a plan, hint: what to plan}]",
        ),
        Field("tools", Tools, "Tools that AAP's `/meta` lists.", "none", "[{name: web_search, title: Web Search}]"),
    ],
    lambda **values: _agent(
        **(
            values
            | ({"commands": tuple(model.Command(**row) for row in values["commands"])} if "commands" in values else {})
        )
    ),
)

# --- sessions

History = StepList("HistoryStep", HISTORY_VERBS, "a history holds what has happened")

StoredType = _distinct("session", "id")(
    Record(
        "Stored",
        [
            Field("id", Text(least=1), "Its id.", REQUIRED, "sess_auth"),
            Field("cwd", Text(), "Its folder.", "`sessions.cwd`", "/home/dev/api"),
            Field("additional_directories", ListOf(Text()), "More folders.", "none"),
            Field("title", Nullable(Text()), "Its title.", "untitled", "Debug authentication flow"),
            Field("updated_at", Nullable(Moment), "Last activity: an ISO time, `2h ago`, or null.", "now", "2h ago"),
            Field("meta", JsonMap(), "`_meta` of its row.", example="{messageCount: 12}"),
            Field(
                "history",
                History,
                "What was said.",
                "nothing",
                '[{user: "Why does login fail?"}, {say: The token has expired.}]',
            ),
        ],
        model.Stored,
    )
)
_REPLACING = ("queue", "replace", "parallel")

SessionsType = Record(
    "Sessions",
    [
        Field("cwd", Text(), "Folder of sessions that come without one.", "/home/dev/project"),
        Field(
            "auto_title",
            Nullable(
                Record(
                    "AutoTitle",
                    [Field("after", Span, "So long after the first turn.", "0s", "2s")],
                    model.AutoTitle,
                )
            ),
            "A title is made from the first prompt; null: never.",
            "{after: 0s}",
        ),
        Field(
            "title_limit",
            Record(
                "TitleLimit",
                [
                    Field("length", Whole(1), "Characters.", "500"),
                    Field("then", Choice("truncate", "refuse"), "What becomes of a longer one.", "truncate"),
                ],
                model.TitleLimit,
            ),
            "Longest title that the agent sends.",
            "{length: 500, then: truncate}",
        ),
        Field(
            "meta_limit",
            Record(
                "MetaLimit",
                [
                    Field("size", Whole(2), "Bytes of JSON.", "65536"),
                    Field("depth", Whole(1, 100), "Levels of objects and lists.", "16"),
                ],
                model.MetaLimit,
            ),
            "Largest `_meta` that a session may have; an `info` that would make it larger is skipped.",
            "{size: 65536, depth: 16}",
        ),
        Field(
            "update_rate",
            Nullable(PerSecond),
            "How often a session's `info` is sent; one that comes too soon waits.",
            "null",
            "10/s",
        ),
        Field("stored", StoredType, "Sessions that are there from the start.", "none"),
        Field(
            "synthetic",
            Record(
                "Synthetic",
                [
                    Field("count", Whole(0, 1_000_000), "How many.", REQUIRED, "250"),
                    Field("cwds", ListOf(Text(), single=True), "Their folders.", "`sessions.cwd`", "[/home/dev/api]"),
                    Field("turns", Couple(Whole(0, 100_000)), "Turns in each history.", "[1, 6]"),
                    Field("untitled", Number(0, 1), "Part of them without a title.", "0", "0.1"),
                    Field("span", Micros, "Their times reach back so far.", "30d"),
                    Field("locale", Text(), "Locale of their words.", "en_US", "de_DE"),
                ],
                model.Synthetic,
            ),
            "Invented sessions, the same for the same seed.",
            "none",
            "{count: 250, untitled: 0.1}",
        ),
        Field("page_size", Whole(1, 1_000_000), "Rows of a page.", "25"),
        Field(
            "cursor",
            Record(
                "CursorRules",
                [
                    Field("lifetime", Nullable(Micros), "How long a cursor is good for.", "null", "10m"),
                    Field("uses", Nullable(Whole(1)), "How often.", "null", "1"),
                    Field(
                        "scope",
                        Choice("connection", "session", "process", "any"),
                        "Where: `any` survives restarts.",
                        "process",
                    ),
                ],
                model.CursorRules,
            ),
            "Which cursors are valid.",
            "{lifetime: null, uses: null, scope: process}",
        ),
        Field(
            "compaction",
            Record("CompactionRule", [Field("keep", Whole(0), "Last messages that are kept.", "4")]),
            "AAP's compacted history.",
            "{keep: 4}",
        ),
        Field(
            "invalid_cursor",
            Choice("error", "empty", "first_page"),
            "What an invalid cursor gets. A shorthand for a fault.",
            "error",
        ),
        Field(
            "unknown",
            Either(text=Choice(*NAMED, "create", "empty"), map=ErrorValue, words="an error, `create` or `empty`"),
            "What a request for an unknown session gets. A shorthand for a fault.",
            "session_not_found",
        ),
        Field(
            "inactive",
            ErrorValue,
            "What a request for a session that is not open gets. A shorthand for a fault.",
            "session_inactive",
        ),
        Field(
            "busy",
            Either(text=Choice(*NAMED, *_REPLACING), map=ErrorValue, words=f"an error, {listed(_REPLACING)}"),
            "What a prompt gets while a turn runs.",
            "busy",
            "queue",
        ),
        Field(
            "replay",
            Record(
                "Replay",
                [
                    Field(
                        "send",
                        Choice("before", "after", "none"),
                        "The history comes before or after the reply.",
                        "before",
                    ),
                    Field(
                        "for", ListOf(Choice("load", "resume"), single=True), "What replays it.", "[load]", attr="for_"
                    ),
                    Field("pace", Span, "Wait between two updates.", "0s"),
                    Field("live", Choice("held", "mixed"), "What else happens meanwhile.", "held"),
                ],
                model.Replay,
            ),
            "How a loaded session's history is played.",
            "{send: before, for: [load], pace: 0s, live: held}",
        ),
    ],
    lambda **values: values,
)
