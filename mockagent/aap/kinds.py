"""Names of AAP messages as faults and rules use them, and which neutral kind each belongs to.

Requests are named by method and path below the base, with the path as it was sent (`POST /sessions/a%2Fb/turns`).
"""

from __future__ import annotations

LEAVING = {
    "event:text_delta": "say",
    "event:text": "say",
    "event:thinking_delta": "think",
    "event:thinking": "think",
    "event:tool_call": "tool",
    "event:tool_result": "tool",
    "event:turn_stop": "stop",
}
"""Outgoing event to neutral kind. The whole answer to a turn without a stream is a `stop` too."""

DELTAS = {"say": "text_delta", "think": "thinking_delta"}
"""What is said to the event that carries a piece of it."""

WHOLES = {"say": "text", "think": "thinking"}
"""What is said to the event, and its one member, that carries all of it."""


def reply(request: str) -> str:
    """Kind of the answer to a request."""
    return f"reply:{request}"


def event(name: str) -> str:
    """Kind of an event."""
    return f"event:{name}"
