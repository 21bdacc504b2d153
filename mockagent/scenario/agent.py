"""The agent: what a scenario file says under `agent`.

What happens is said elsewhere: steps in `verbs`, its sessions in `sessions`, the other keys of a file in `top`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mockagent.scenario import model
from mockagent.scenario.conditions import SettingType
from mockagent.scenario.nodes import Node
from mockagent.scenario.payloads import CommandRow
from mockagent.scenario.problems import listed
from mockagent.scenario.shapes import Either, Field, ListOf, MapOf, Nullable, Record, distinct
from mockagent.scenario.types import (
    REQUIRED,
    Bool,
    Build,
    Choice,
    JsonMap,
    Known,
    Schema,
    Text,
    Type,
    Whole,
)

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


Options = distinct("option", "id")(
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
Modes = distinct("mode", "id")(
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
Tools = distinct("tool", "name")(
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
        Field(
            "tokens",
            ListOf(Text(), single=True),
            "Bearer tokens of clients over the network; with none, none is asked for.",
            "none",
        ),
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
