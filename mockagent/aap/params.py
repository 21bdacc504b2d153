"""What a client may send: the bodies of AAP version 3.

Unknown members pass, wrong types do not. What only an agent or a session can tell (is there such a tool, is that call
open) is looked at in `checks` and `turns`.

Source: AAP endpoints page, `POST /sessions` and `POST /sessions/:id/turns`; pages on messages and tools.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from mockagent.errors import Refusal


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all that comes in."""


# --- content


class TextBlock(Body, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class ThinkingBlock(Body, frozen=True, kw_only=True, tag_field="type", tag="thinking"):
    thinking: str


class ToolUseBlock(Body, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    tool_call_id: str
    name: str
    input: dict[str, Any]


class ImageBlock(Body, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """`url` is an `https://` or a `data:` URL, each only if the agent declares it."""

    url: str


AnyBlock = TextBlock | ThinkingBlock | ToolUseBlock | ImageBlock
"""The schema of AAP allows every block in every message."""


# --- messages


class SystemMessage(Body, frozen=True, kw_only=True, tag_field="role", tag="system"):
    content: str


class UserMessage(Body, frozen=True, kw_only=True, tag_field="role", tag="user"):
    content: str | list[AnyBlock]


class AssistantMessage(Body, frozen=True, kw_only=True, tag_field="role", tag="assistant"):
    content: str | list[AnyBlock]


class ToolMessage(Body, frozen=True, kw_only=True, tag_field="role", tag="tool"):
    """The result of a tool call."""

    tool_call_id: str
    content: str | list[AnyBlock]


class PermissionMessage(Body, frozen=True, kw_only=True, tag_field="role", tag="tool_permission"):
    """Whether a server-side tool may run. Never part of the history."""

    tool_call_id: str
    granted: bool
    reason: str | msgspec.UnsetType = msgspec.UNSET


HistoryMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage
TurnMessage = UserMessage | ToolMessage | PermissionMessage


# --- requests


class EnabledTool(Body, frozen=True, kw_only=True):
    """A server-side tool that the session enables."""

    name: str
    trust: bool = False


class ClientTool(Body, frozen=True, kw_only=True):
    """A tool that the client runs itself."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str
    parameters: dict[str, Any]
    title: str | msgspec.UnsetType = msgspec.UNSET


class AgentConfig(Body, frozen=True, kw_only=True):
    name: str
    tools: list[EnabledTool] = []
    options: dict[str, Any] = {}


class AgentOverride(Body, frozen=True, kw_only=True):
    """What a turn changes for good. `name` may be repeated, but not changed."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    tools: list[EnabledTool] | msgspec.UnsetType = msgspec.UNSET
    options: dict[str, Any] = {}


class CreateSession(Body, frozen=True, kw_only=True):
    """Body of `POST /sessions`."""

    agent: AgentConfig
    messages: list[HistoryMessage] = []
    tools: list[ClientTool] = []


class Turn(Body, frozen=True, kw_only=True):
    """Body of `POST /sessions/:id/turns`."""

    messages: Annotated[list[TurnMessage], msgspec.Meta(min_length=1)]
    agent: AgentOverride = AgentOverride()
    stream: Literal["delta", "message", "none"] = "none"
    tools: list[ClientTool] | msgspec.UnsetType = msgspec.UNSET


B = TypeVar("B", bound=Body)

_MISSING = "Object missing required field `"
_ALLOWED = {
    ("Turn", "role"): "one of user, tool, tool_permission",
    ("CreateSession", "role"): "one of system, user, assistant, tool",
    ("Turn", "type"): "one of text, thinking, tool_use, image",
    ("CreateSession", "type"): "one of text, thinking, tool_use, image",
    ("Turn", "stream"): "one of delta, message, none",
}


def read(kind: type[B], data: Any) -> B:
    """Reads a body.

    Args:
        kind: what it has to be.
        data: as decoded.

    Raises:
        Refusal: `invalid_params`, with the field and the rule in its message.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").lstrip(".")
        if problem.startswith(_MISSING):
            name = problem.removeprefix(_MISSING).rstrip("`")
            raise wrong(f"{field}.{name}" if field else name, "is required") from None
        allowed = _ALLOWED.get((kind.__name__, field.rpartition(".")[2]))
        if allowed is not None and problem.startswith("Invalid"):
            problem = f"{problem}: {allowed}"
        raise wrong(field or "the body", problem[:1].lower() + problem[1:]) from None


def wrong(field: str, rule: str) -> Refusal:
    """The refusal of a field's value.

    Args:
        field: its path: `messages[0].content`.
        rule: what is wrong with it, or what it has to be.
    """
    return Refusal("invalid_params", f"{field}: {rule}", field=field, rule=rule)
