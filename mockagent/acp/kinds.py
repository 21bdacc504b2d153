"""Names of ACP messages as faults and rules use them, and which neutral kind each belongs to."""

from __future__ import annotations

ARRIVING = {
    "session/list": "list",
    "session/new": "create",
    "session/load": "load",
    "session/resume": "load",
    "session/prompt": "turn",
    "session/cancel": "cancel",
}
"""Incoming method to neutral kind."""

LEAVING = {
    "reply:session/prompt": "stop",
    "update:agent_message_chunk": "say",
    "update:agent_thought_chunk": "think",
    "update:tool_call": "tool",
    "update:tool_call_update": "tool",
}
"""Outgoing kind to neutral kind."""


def reply(method: str) -> str:
    """Kind of the answer to a client's request."""
    return f"reply:{method}"


def update(kind: str) -> str:
    """Kind of a `session/update`."""
    return f"update:{kind}"
