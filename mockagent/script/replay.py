"""Plays a session's history again, to a client that loads it: whole messages, each under the id it had.

A replay is a run like any other: it pauses when there is no room, and takes the time that `sessions.replay.pace` gives
it. It records nothing, for all of it is recorded already.

Source: ACP v1, Session Setup, "Loading Sessions": the whole conversation, with a unique message id for each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockagent.script.output import Item, Role, Surface, Text, ToolCall, ToolUpdate
from mockagent.script.pace import draw
from mockagent.script.run import Run, Script, Signal
from mockagent.world.history import Called, Planned, Said

_ROLES: dict[str, Role] = {"user": "user", "say": "say", "think": "think"}


def replay(run: Run) -> Script:
    """Sends everything that was said and done, in order, and what comes to it meanwhile."""
    scenario = run.agent.scenario
    entries = run.session.history.entries
    done = 0
    while done < len(entries):
        entry = entries[done]
        done += 1
        for item in _ITEMS[type(entry)](entry, scenario.agent.message_ids):
            while run.room() <= 0:
                yield Signal.ROOM
            if run.out is not None:
                run.out.emit(item, "replay")
        if scenario.sessions.replay.pace and done < len(entries):
            yield draw(scenario.sessions.replay.pace, run.rng("pace"))


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
    rest = {key: value for key, value in entry.fields.items() if key in ("status", "content", "output")}
    call = ToolCall(id=entry.id, name=entry.name, fields=start | {"status": "pending"}, input=entry.input)
    items: list[Item] = [call]
    if rest.get("status") not in (None, "pending"):
        items.append(ToolUpdate(id=entry.id, fields=rest, final=entry.result is not msgspec.UNSET))
    return items


def _planned(entry: Planned, ids: bool) -> list[Item]:
    return [Surface(verb="plan", payload=entry.entries)]


_ITEMS: dict[type, Callable[[Any, bool], list[Item]]] = {Said: _said, Called: _called, Planned: _planned}
