"""Plays a session's history again, to a client that loads it: whole messages, each under the id it had.

A replay is a run like any other: it pauses when there is no room, and takes the time that `sessions.replay.pace` gives
it. It records nothing, for all of it is recorded already.

Source: ACP v1, Session Setup, "Loading Sessions": the whole conversation, with a unique message id for each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockagent.script.commands import Script, Signal
from mockagent.script.output import Item, Role, Surface, Text, ToolCall, ToolUpdate
from mockagent.script.pace import draw
from mockagent.script.run import Run
from mockagent.world.history import Called, Entry, Planned, Said

_ROLES: dict[str, Role] = {"user": "user", "say": "say", "think": "think"}


def replay(run: Run, *, follow: bool) -> Script:
    """Sends everything that was said and done, in order.

    Args:
        run: where to.
        follow: also send what comes to it meanwhile; without, it is the history as it stands at the start.
    """
    rules = run.agent.scenario.sessions.replay
    entries = run.session.history.entries
    if not follow:
        entries = [_as_it_stands(entry) for entry in entries]
    sent: list[Entry] = []
    while len(sent) < len(entries):
        entry = entries[len(sent)]
        sent.append(_as_it_stands(entry))
        yield from _send(run, entry)
        if rules.pace and len(sent) < len(entries):
            yield draw(rules.pace, run.rng("pace"))
    for before, entry in zip(sent, list(entries), strict=True):
        yield from _send_rest(run, before, entry)


def _as_it_stands(entry: Entry) -> Entry:
    """A copy of what may still grow; what it consists of is never changed in place."""
    if isinstance(entry, Said):
        return msgspec.structs.replace(entry, parts=list(entry.parts))
    return msgspec.structs.replace(entry, fields=dict(entry.fields)) if isinstance(entry, Called) else entry


def _send(run: Run, entry: Entry) -> Script:
    for item in _ITEMS[type(entry)](entry, run.agent.scenario.agent.message_ids):
        while run.room() <= 0:
            yield Signal.ROOM
        if run.out is not None:
            run.out.emit(item, "replay")


def _send_rest(run: Run, before: Entry, entry: Entry) -> Script:
    """What came to an entry after it had been sent."""
    if isinstance(entry, Said) and isinstance(before, Said) and len(entry.parts) > len(before.parts):
        yield from _send(run, msgspec.structs.replace(entry, parts=entry.parts[len(before.parts) :]))
    elif isinstance(entry, Called) and entry != before and run.out is not None:
        run.out.emit(_state(entry), "replay")


def _said(entry: Said, ids: bool) -> list[Item]:
    role = _ROLES.get(entry.role)
    if role is None:  # a system message is not part of the conversation
        return []
    return [Text(role=role, parts=[part], message_id=entry.message_id if ids else None) for part in joined(entry.parts)]


def joined(parts: list[Any]) -> list[Any]:
    """Neighbouring pieces of text as one: how it streamed once is not part of what was said."""
    whole: list[Any] = []
    texts: list[str] = []
    for part in [*parts, None]:
        if isinstance(part, str):
            texts.append(part)
            continue
        if texts:
            whole.append("".join(texts))
            texts = []
        if part is not None:
            whole.append(part)
    return whole


def _called(entry: Called, ids: bool) -> list[Item]:
    start = {key: value for key, value in entry.fields.items() if key in ("title", "kind", "locations")}
    call = ToolCall(id=entry.id, name=entry.name, fields=start | {"status": "pending"}, input=entry.input)
    items: list[Item] = [call]
    if entry.fields.get("status") not in (None, "pending"):
        items.append(_state(entry))
    return items


def _state(entry: Called) -> ToolUpdate:
    fields = {key: value for key, value in entry.fields.items() if key in ("status", "content", "output")}
    return ToolUpdate(id=entry.id, fields=fields, final=entry.result is not msgspec.UNSET)


def _planned(entry: Planned, ids: bool) -> list[Item]:
    return [Surface(verb="plan", payload=entry.entries)]


_ITEMS: dict[type, Callable[[Any, bool], list[Item]]] = {Said: _said, Called: _called, Planned: _planned}
