"""What ACP v1 makes of the script's items: bodies of `session/update`, params of requests to the client.

Pure functions over neutral values; nothing here knows a connection. The tables at the end say for each item whether
ACP has a word for it at all.

Source: ACP v1 JSON Schema, `SessionUpdate` and the client's methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mockagent.acp.params import ClientCapabilities
from mockagent.acp.paths import absolute
from mockagent.scenario import model
from mockagent.script.output import Info, Permission, Surface, Text, ToolCall, ToolUpdate
from mockagent.script.settings import mode_option, offered, values
from mockagent.world.sessions import Session

CHUNKS = {"say": "agent_message_chunk", "think": "agent_thought_chunk", "user": "user_message_chunk"}

Update = dict[str, Any]


def _with_meta(body: Update, meta: dict[str, Any] | None) -> Update:
    if meta is not None:
        body["_meta"] = meta
    return body


# --- content


def block(part: Any) -> dict[str, Any]:
    """A content block of ACP from a part in the scenario's form: text, `{image: ...}`, `{link: ...}`, ..."""
    if not isinstance(part, dict):  # a placeholder may have brought any JSON value
        return {"type": "text", "text": part if isinstance(part, str) else msgspec.json.encode(part).decode()}
    if "type" in part:  # written, or received, as ACP writes it
        return dict(part)
    for key, make in _BLOCKS.items():
        if key in part:
            return make(part)
    return {"type": "text", "text": msgspec.json.encode(part).decode()}


def _binary(key: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def make(part: Mapping[str, Any]) -> dict[str, Any]:
        source = part[key]
        if "data" in part:
            data, mime = part["data"], part.get("mime")
        elif source.startswith("data:"):
            data, mime = _data_address(source)
        elif source.startswith(
            ("http://", "https://")
        ):  # ACP's blocks hold the data itself, and nobody fetches it here
            return _link({"link": source, **part})
        else:
            data, mime = _read_file(source)
        made = {"type": key, "data": data, "mimeType": part.get("mime") or mime or _DEFAULT_MIME[key]}
        return _beside(made, part, {"uri": "uri"} if key == "image" else {})

    return make


_DEFAULT_MIME = {"image": "image/png", "audio": "audio/wav"}


def _data_address(address: str) -> tuple[str, str | None]:
    """What a `data:` address holds, as base64, with its media type."""
    import base64
    from urllib.parse import unquote_to_bytes

    head, _, body = address[len("data:") :].partition(",")
    mime = head.partition(";")[0] or None
    if head.endswith(";base64"):
        return body, mime
    return base64.b64encode(unquote_to_bytes(body)).decode("ascii"), mime


def _read_file(path: str) -> tuple[str, str | None]:
    """A local file as base64, with its type by name. The path was made absolute when the scenario was loaded."""
    import base64
    import mimetypes
    from pathlib import Path

    return base64.b64encode(Path(path).read_bytes()).decode("ascii"), mimetypes.guess_type(path)[0]


def _link(part: Mapping[str, Any]) -> dict[str, Any]:
    uri = part["link"]
    made = {"type": "resource_link", "uri": uri, "name": part.get("name") or uri.rstrip("/").rsplit("/", 1)[-1] or uri}
    return _beside(made, part, {"title": "title", "description": "description", "mime": "mimeType", "size": "size"})


def _resource(part: Mapping[str, Any]) -> dict[str, Any]:
    inner = {_RESOURCE.get(key, key): value for key, value in part["resource"].items()}
    return _beside({"type": "resource", "resource": inner}, part, {})


_RESOURCE = {"mime": "mimeType", "meta": "_meta"}


def _text(part: Mapping[str, Any]) -> dict[str, Any]:
    return _beside({"type": "text", "text": part["text"]}, part, {})


def _beside(made: dict[str, Any], part: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    for name, theirs in {**names, "annotations": "annotations", "meta": "_meta"}.items():
        if name in part and theirs not in made:
            made[theirs] = part[name]
    return made


_BLOCKS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "text": _text,
    "image": _binary("image"),
    "audio": _binary("audio"),
    "link": _link,
    "resource": _resource,
}


def tool_content(content: Any, cwd: str) -> Any:
    """`content` of a tool call: text, `{diff: ...}`, `{terminal: ID}`, blocks; None stays null."""
    if content is None:
        return None
    return [_tool_part(part, cwd) for part in (content if isinstance(content, list | tuple) else [content])]


def _tool_part(part: Any, cwd: str) -> dict[str, Any]:
    if isinstance(part, dict):
        if "diff" in part:
            diff = part["diff"]
            made = {"type": "diff", "path": absolute(diff["path"], cwd), "newText": diff["new"]}
            return _beside(made | ({"oldText": diff["old"]} if "old" in diff else {}), part, {})
        if "terminal" in part:
            return _beside({"type": "terminal", "terminalId": part["terminal"]}, part, {})
        if part.get("type") in ("content", "diff", "terminal"):
            return part
    return {"type": "content", "content": block(part)}


def _locations(locations: Any, cwd: str) -> Any:
    if locations is None:
        return None
    places = [{"path": place} if isinstance(place, str) else dict(place) for place in locations]
    return [place | {"path": absolute(place["path"], cwd)} for place in places]


def _as_it_is(value: Any, cwd: str) -> Any:
    return value


_TOOL_FIELDS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "content": ("content", tool_content),
    "locations": ("locations", _locations),
    "input": ("rawInput", _as_it_is),
    "output": ("rawOutput", _as_it_is),
}


def tool_fields(fields: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """The scenario's keys of a tool call under ACP's names: null is sent, absent is not, unknown keys stay.

    Args:
        fields: as the scenario has them.
        cwd: where relative paths start.
    """
    made: dict[str, Any] = {}
    for key, value in fields.items():
        name, change = _TOOL_FIELDS.get(key, (key, _as_it_is))
        made[name] = change(value, cwd)
    return made


# --- updates


def text(item: Text, part: Any) -> Update:
    """One chunk of a message."""
    body: Update = {"sessionUpdate": CHUNKS[item.role]}
    if item.message_id is not None:
        body["messageId"] = item.message_id
    body["content"] = block(part)
    return _with_meta(body, item.meta)


def tool_call(item: ToolCall, cwd: str) -> Update:
    """The start of a tool call. The schema wants a title: without one the tool's name stands in."""
    fields = tool_fields(item.fields, cwd)
    body: Update = {"sessionUpdate": "tool_call", "toolCallId": item.id}
    if "title" not in fields:
        body["title"] = item.name or item.id
    if item.name is not None:
        body["name"] = item.name
    body |= fields
    if item.input is not None and "rawInput" not in body:
        body["rawInput"] = item.input
    return _with_meta(body, item.meta)


def tool_update(item: ToolUpdate, cwd: str) -> Update:
    """A change to a tool call."""
    body = {"sessionUpdate": "tool_call_update", "toolCallId": item.id} | tool_fields(item.fields, cwd)
    return _with_meta(body, item.meta)


_INFO = {"title": "title", "updated_at": "updatedAt", "meta": "_meta"}


def info(item: Info) -> Update:
    """New session metadata: only what was given, null to clear."""
    return {"sessionUpdate": "session_info_update"} | {_INFO[key]: value for key, value in item.fields.items()}


def surface(item: Surface, session: Session, agent: model.Agent, client: ClientCapabilities) -> list[Update]:
    """Everything else that a session shows; nothing if this client did not advertise that it can take it."""
    gate = _GATES.get(item.verb)
    if gate is not None and not gate(client):
        return []
    body = _SURFACE[item.verb](item.payload, session, agent, client)
    return [_with_meta(body, item.meta), *_also(item, session, agent, client)]


def _also(item: Surface, session: Session, agent: model.Agent, client: ClientCapabilities) -> list[Update]:
    """A mode is told in both ways where the agent has both: clients look at one of them only.

    Source: Session Config Options, relationship to session modes.
    """
    option = mode_option(agent)
    if option is None or not agent.modes:
        return []
    if item.verb == "mode" and item.payload in values(option):
        return [_option(None, session, agent, client)]
    if item.verb == "option" and item.payload["id"] == option.id and session.mode == item.payload["value"]:
        return [_mode(session.mode, session, agent, client)]
    return []


def _plan(payload: Any, session: Session, agent: model.Agent, client: ClientCapabilities) -> Update:
    return {"sessionUpdate": "plan", "entries": list(payload)}


def _usage(payload: Any, session: Session, agent: model.Agent, client: ClientCapabilities) -> Update:
    return {"sessionUpdate": "usage_update", **payload}


def _commands(payload: Any, session: Session, agent: model.Agent, client: ClientCapabilities) -> Update:
    return {"sessionUpdate": "available_commands_update", "availableCommands": [command(entry) for entry in payload]}


def _mode(payload: Any, session: Session, agent: model.Agent, client: ClientCapabilities) -> Update:
    return {"sessionUpdate": "current_mode_update", "currentModeId": payload}


def _option(payload: Any, session: Session, agent: model.Agent, client: ClientCapabilities) -> Update:
    return {"sessionUpdate": "config_option_update", "configOptions": config_options(session, agent, client) or []}


def _notice(payload: Any, session: Session, agent: model.Agent, client: ClientCapabilities) -> Update:
    return {"sessionUpdate": "notice", **payload}


def _compaction(payload: Any, session: Session, agent: model.Agent, client: ClientCapabilities) -> Update:
    body = dict(payload)
    id = body.pop("id")
    if "chunk" in body:
        made = {"sessionUpdate": "compaction_summary_chunk", "compactionId": id, "content": block(body.pop("chunk"))}
        return made | body
    if body.get("summary") is not None:
        summary = body["summary"]
        body["summary"] = [block(part) for part in (summary if isinstance(summary, list | tuple) else [summary])]
    return {"sessionUpdate": "compaction_update", "compactionId": id} | body


_GATES: dict[str, Callable[[ClientCapabilities], bool]] = {
    "notice": lambda client: client.notices,
    "compaction": lambda client: client.compaction,
}

_SURFACE: dict[str, Callable[[Any, Session, model.Agent, ClientCapabilities], Update]] = {
    "plan": _plan,
    "usage": _usage,
    "commands": _commands,
    "mode": _mode,
    "option": _option,
    "notice": _notice,
    "compaction": _compaction,
}


# --- parts of replies


def command(entry: model.Command | Mapping[str, Any]) -> dict[str, Any]:
    """A slash command."""
    given = msgspec.to_builtins(entry) if isinstance(entry, model.Command) else dict(entry)
    hint = given.pop("hint", None)
    return given | ({"input": {"hint": hint}} if hint is not None else {})


def modes(session: Session, agent: model.Agent) -> dict[str, Any] | None:
    """`SessionModeState`, or None when the agent has no modes."""
    if not agent.modes:
        return None
    return {
        "currentModeId": session.mode,
        "availableModes": [
            {"id": mode.id, "name": mode.name} | ({"description": mode.description} if mode.description else {})
            for mode in agent.modes
        ],
    }


def config_options(session: Session, agent: model.Agent, client: ClientCapabilities) -> list[dict[str, Any]] | None:
    """All options that this client may be shown, with their values; None when the agent has none."""
    shown = shown_options(session, agent, client)
    if not shown:
        return None
    return [_option_state(option, session.config.get(option.id, option.value)) for option in shown]


def shown_options(session: Session, agent: model.Agent, client: ClientCapabilities) -> list[model.Option]:
    """The options that there are for this client: boolean ones only if it has said that it knows them."""
    return [
        option
        for option in offered(agent, session)
        if option.type == "select" or (option.type == "boolean" and client.boolean_options)
    ]


def _option_state(option: model.Option, value: Any) -> dict[str, Any]:
    state: dict[str, Any] = {"id": option.id, "name": option.name, "type": option.type, "currentValue": value}
    for key in ("description", "category"):
        if getattr(option, key) is not None:
            state[key] = getattr(option, key)
    if option.type == "select":
        state["options"] = [dict(choice) for choice in option.choices]
    return state


def permission(session: Session, need: Permission) -> dict[str, Any]:
    """Params of `session/request_permission`."""
    call: dict[str, Any] = {"toolCallId": need.tool.id}
    if need.tool.name is not None:
        call["name"] = need.tool.name
    call |= tool_fields(need.tool.fields, session.cwd)
    if need.tool.input is not None:
        call.setdefault("rawInput", need.tool.input)
    if need.content is not None:
        call["content"] = tool_content(need.content, session.cwd)
    options = [
        {"optionId": option["id"], "name": option["name"], "kind": option["kind"]}
        | ({"_meta": option["meta"]} if "meta" in option else {})
        for option in need.options
    ]
    return {"sessionId": session.id, "toolCall": call, "options": options}


def session_info(session: Session, agent: model.Agent) -> dict[str, Any]:
    """A row of `session/list`."""
    row: dict[str, Any] = {"sessionId": session.id, "cwd": session.cwd}
    if session.directories and agent.capabilities.additional_directories:
        row["additionalDirectories"] = list(session.directories)
    for key, value in (("title", session.title), ("updatedAt", session.updated_at), ("_meta", session.meta)):
        if value is not None:
            row[key] = value
    return row


def capabilities(agent: model.Agent) -> dict[str, Any]:
    """`AgentCapabilities`: what is off is left out."""
    can = agent.capabilities
    session: dict[str, Any] = {
        name: {}
        for name, on in (
            ("list", can.list),
            ("resume", can.resume),
            ("close", can.close),
            ("delete", can.delete),
            ("fork", can.fork),
            ("additionalDirectories", can.additional_directories),
        )
        if on
    }
    return {
        "loadSession": can.load,
        "promptCapabilities": {"image": can.image, "audio": can.audio, "embeddedContext": can.embedded_context},
        "mcpCapabilities": {"http": can.mcp_http, "sse": can.mcp_sse},
        "sessionCapabilities": session,
        "auth": {"logout": {}} if agent.auth.methods and agent.auth.logout else {},
    }
