"""What an AAP server answers, as types: for the OpenAPI document, and for tests that judge real answers by it.

Answers are made in `render` and `transcript`; nothing there depends on this module.

Source: AAP endpoints page; pages on responses, messages and tools.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mockagent.aap.params import AssistantMessage, ClientTool, HistoryMessage, ToolMessage


class Reply(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all that goes out."""


class Empty(Reply, kw_only=True):
    """Declares something by being there."""


class Option(Reply, kw_only=True):
    """An option that a client may set."""

    name: str
    type: Literal["text", "select", "secret"]
    default: str
    title: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    options: list[str] | msgspec.UnsetType = msgspec.UNSET


class ServerTool(Reply, kw_only=True):
    """A server-side tool that a client may enable."""

    name: str
    description: str
    parameters: dict[str, Any]
    title: str | msgspec.UnsetType = msgspec.UNSET


class Histories(Reply, kw_only=True):
    full: Empty | msgspec.UnsetType = msgspec.UNSET
    compacted: Empty | msgspec.UnsetType = msgspec.UNSET


class Streams(Reply, kw_only=True):
    delta: Empty | msgspec.UnsetType = msgspec.UNSET
    message: Empty | msgspec.UnsetType = msgspec.UNSET
    none: Empty | msgspec.UnsetType = msgspec.UNSET


class Application(Reply, kw_only=True):
    tools: Empty | msgspec.UnsetType = msgspec.UNSET


class Images(Reply, kw_only=True):
    http: Empty | msgspec.UnsetType = msgspec.UNSET
    data: Empty | msgspec.UnsetType = msgspec.UNSET


class Capabilities(Reply, kw_only=True):
    """What an agent can do; what is absent it cannot."""

    history: Histories | msgspec.UnsetType = msgspec.UNSET
    stream: Streams | msgspec.UnsetType = msgspec.UNSET
    application: Application | msgspec.UnsetType = msgspec.UNSET
    image: Images | msgspec.UnsetType = msgspec.UNSET


class Agent(Reply, kw_only=True):
    """One agent of the server."""

    name: str
    version: str
    title: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    tools: list[ServerTool] | msgspec.UnsetType = msgspec.UNSET
    options: list[Option] | msgspec.UnsetType = msgspec.UNSET
    capabilities: Capabilities | msgspec.UnsetType = msgspec.UNSET


class Meta(Reply, kw_only=True):
    """Body of `GET /meta`."""

    version: int
    agents: list[Agent]


class Trusted(Reply, kw_only=True):
    """A server-side tool that a session has enabled."""

    name: str
    trust: bool


class SessionAgent(Reply, kw_only=True):
    """The agent of a session. Secret options are shown as `***`."""

    name: str
    tools: list[Trusted] | msgspec.UnsetType = msgspec.UNSET
    options: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class Session(Reply, kw_only=True):
    """One session."""

    session_id: str
    agent: SessionAgent
    tools: list[ClientTool] | msgspec.UnsetType = msgspec.UNSET


class SessionList(Reply, kw_only=True):
    """One page of sessions; without `next` it is the last."""

    sessions: list[Session]
    next: str | msgspec.UnsetType = msgspec.UNSET


class SessionCreated(Reply, kw_only=True):
    session_id: str


class HistoryBody(Reply, kw_only=True):
    full: list[HistoryMessage] | msgspec.UnsetType = msgspec.UNSET
    compacted: list[HistoryMessage] | msgspec.UnsetType = msgspec.UNSET


class History(Reply, kw_only=True):
    """Body of `GET /sessions/:id/history`: the type that was asked for."""

    history: HistoryBody


StopReason = Literal["end_turn", "tool_use", "max_tokens", "refusal", "error"]


class TurnAnswer(Reply, kw_only=True):
    """Answer to a turn without a stream."""

    stop_reason: StopReason
    messages: list[AssistantMessage | ToolMessage]


class ErrorBody(Reply, kw_only=True):
    code: str
    message: str


class Error(Reply, kw_only=True):
    """Body of every error."""

    error: ErrorBody


# --- events of a stream, by name


class TurnStart(Reply, kw_only=True):
    """Data of `turn_start`."""


class Delta(Reply, kw_only=True):
    """Data of `text_delta` and `thinking_delta`."""

    delta: str


class WholeText(Reply, kw_only=True):
    """Data of `text`."""

    text: str


class WholeThinking(Reply, kw_only=True):
    """Data of `thinking`."""

    thinking: str


class ToolCallEvent(Reply, kw_only=True):
    """Data of `tool_call`."""

    tool_call_id: str
    name: str
    input: dict[str, Any]


class ToolResultEvent(Reply, kw_only=True):
    """Data of `tool_result`."""

    tool_call_id: str
    content: str | list[dict[str, Any]]


class TurnStop(Reply, kw_only=True):
    """Data of `turn_stop`."""

    stop_reason: StopReason


EVENTS: dict[str, type[Reply]] = {
    "turn_start": TurnStart,
    "text_delta": Delta,
    "thinking_delta": Delta,
    "text": WholeText,
    "thinking": WholeThinking,
    "tool_call": ToolCallEvent,
    "tool_result": ToolResultEvent,
    "turn_stop": TurnStop,
}
"""Name of an event to its data."""
