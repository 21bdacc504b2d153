"""What AAP version 3 makes of an agent, a session and its options: bodies of answers.

Pure functions; nothing here knows a request.

Source: AAP endpoints page, `GET /meta`, `GET /sessions/:id`.
"""

from __future__ import annotations

from typing import Any

from mockagent.aap.checks import choices
from mockagent.aap.roster import Served
from mockagent.scenario import model
from mockagent.world.sessions import Session

HIDDEN = "***"
"""What stands for a secret in every answer."""

STOP_REASONS = {"cancelled": "error", "max_turn_requests": "max_tokens"}
"""ACP's stop reasons that AAP has no word for; all others are sent as the scenario says them."""


def meta(version: int, agents: list[Served]) -> dict[str, Any]:
    """Body of `GET /meta`."""
    return {"version": version, "agents": [_agent(served) for served in agents]}


def _agent(served: Served) -> dict[str, Any]:
    about = served.about
    body: dict[str, Any] = {"name": served.name}
    body |= _given(title=about.title)
    body["version"] = about.version
    body |= _given(description=about.description)
    if served.tools:
        body["tools"] = [_tool(tool) for tool in served.tools.values()]
    if served.options:
        body["options"] = [_option(option) for option in served.options.values()]
    body["capabilities"] = _capabilities(served.capabilities)
    return body


def _tool(tool: model.ListedTool) -> dict[str, Any]:
    body = {"name": tool.name} | _given(title=tool.title) | {"description": tool.description or ""}
    return body | {"parameters": tool.parameters if tool.parameters is not None else {"type": "object"}}


def _option(option: model.Option) -> dict[str, Any]:
    body: dict[str, Any] = {"name": option.id} | _given(title=option.name, description=option.description)
    body["type"] = option.type
    if option.type == "select":
        body["options"] = choices(option)
    body["default"] = _shown(option, option.value)
    return body


def _shown(option: model.Option, value: Any) -> Any:
    """A value as it may be told; an empty secret hides nothing."""
    return HIDDEN if option.type == "secret" and value else value


_CAPABILITIES: tuple[tuple[str, str, str], ...] = (
    ("history", "compacted", "history_compacted"),
    ("history", "full", "history_full"),
    ("stream", "delta", "stream_delta"),
    ("stream", "message", "stream_message"),
    ("stream", "none", "stream_none"),
    ("application", "tools", "client_tools"),
    ("image", "http", "images_http"),
    ("image", "data", "images_data"),
)


def _capabilities(can: model.Capabilities) -> dict[str, Any]:
    """What is off is left out, whole groups too."""
    body: dict[str, Any] = {}
    for group, name, attribute in _CAPABILITIES:
        if getattr(can, attribute):
            body.setdefault(group, {})[name] = {}
    return body


def streams(can: model.Capabilities) -> list[str]:
    """The stream modes that may be asked for; without any declared, only `none` is left."""
    declared = [name for group, name, attribute in _CAPABILITIES if group == "stream" and getattr(can, attribute)]
    return declared or ["none"]


def session(served: Served, session: Session) -> dict[str, Any]:
    """Body of `GET /sessions/:id`, and a row of the list: what holds in the session now, secrets hidden."""
    agent: dict[str, Any] = {"name": served.name}
    if session.tools:
        agent["tools"] = [{"name": name, "trust": trust} for name, trust in session.tools.items()]
    options = {id: _shown(option, session.config.get(id, option.value)) for id, option in served.options.items()}
    if options:
        agent["options"] = options
    body: dict[str, Any] = {"sessionId": session.id, "agent": agent}
    if session.client_tools:
        body["tools"] = [dict(tool) for tool in session.client_tools.values()]
    return body


def stop_reason(reason: str) -> str:
    """A stop reason in AAP's words."""
    return STOP_REASONS.get(reason, reason)


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
