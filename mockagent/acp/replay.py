"""Replays a session's history to a client that loads it, message by message, before the reply.

Source: ACP v1, Session Setup, "Loading Sessions": the whole conversation, with a unique message id for each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockagent.acp.output import SessionOutput
from mockagent.script.output import Item, Role, Surface, Text, ToolCall, ToolUpdate
from mockagent.world.history import Called, Planned, Said
from mockagent.world.sessions import Session

_ROLES: dict[str, Role] = {"user": "user", "say": "say", "think": "think"}


def replay(output: SessionOutput, session: Session) -> None:
    """Sends everything that was said and done, in order."""
    ids = output.connection.agent.scenario.agent.message_ids
    for entry in session.history.entries:
        for item in _ITEMS[type(entry)](entry, session, ids):
            output.emit(item, "replay")


def _said(entry: Said, session: Session, ids: bool) -> list[Item]:
    role = _ROLES.get(entry.role)
    if role is None:  # a system message is not part of the conversation
        return []
    message_id = (entry.message_id or session.next_message_id()) if ids else None
    parts = _joined(entry.parts)
    return [Text(role=role, parts=[part], message_id=message_id) for part in parts]


def _joined(parts: list[Any]) -> list[Any]:
    """Neighbouring pieces of text as one: how it streamed once is not part of what was said."""
    joined: list[Any] = []
    texts: list[str] = []
    for part in [*parts, None]:
        if isinstance(part, str):
            texts.append(part)
            continue
        if texts:
            joined.append("".join(texts))
            texts = []
        if part is not None:
            joined.append(part)
    return joined


def _called(entry: Called, session: Session, ids: bool) -> list[Item]:
    start = {key: value for key, value in entry.fields.items() if key in ("title", "kind", "locations")}
    rest = {key: value for key, value in entry.fields.items() if key in ("status", "content", "output")}
    call = ToolCall(id=entry.id, name=entry.name, fields=start | {"status": "pending"}, input=entry.input)
    items: list[Item] = [call]
    if rest.get("status") not in (None, "pending"):
        items.append(ToolUpdate(id=entry.id, fields=rest, final=entry.result is not msgspec.UNSET))
    return items


def _planned(entry: Planned, session: Session, ids: bool) -> list[Item]:
    return [Surface(verb="plan", payload=entry.entries)]


_ITEMS: dict[type, Callable[[Any, Session, bool], list[Item]]] = {Said: _said, Called: _called, Planned: _planned}
