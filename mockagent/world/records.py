"""Sessions and entries of histories as bytes and back, for a state file.

Values of secret options are left out: what comes back in their place is a mark.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mockagent.scenario import model
from mockagent.world.history import Called, Entry, Planned, Said
from mockagent.world.session import Session

HIDDEN = "***"
"""Stands for a secret that was there."""

_PLAIN = (
    "title",
    "updated",
    "stated",
    "meta",
    "turns",
    "messages",
    "calls",
    "saved",
    "mode",
    "config",
    "tools",
    "client_tools",
    "last_stop",
    "runs",
    "prompt",
    "parked",
)


class Record(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One session as it is kept; see `Session` for what the members mean."""

    cwd: str
    directories: tuple[str, ...] = ()
    title: str | None = None
    updated: int | None = None
    stated: str | None = None
    meta: dict[str, Any] | None = None
    turns: int = 0
    messages: int = 0
    calls: int = 0
    saved: dict[str, Any] = {}
    mode: str | None = None
    config: dict[str, Any] = {}
    tools: dict[str, bool] = {}
    client_tools: dict[str, dict[str, Any]] = {}
    last_stop: str | None = None
    runs: dict[str, int] = {}
    prompt: str = ""
    parked: bytes | None = None


def pack(session: Session, agent: model.Agent) -> bytes:
    """The bytes of a session."""
    record = Record(
        cwd=session.cwd, directories=session.directories, **{name: getattr(session, name) for name in _PLAIN}
    )
    secrets = [value for option in agent.options if option.type == "secret" if (value := record.config.get(option.id))]
    if secrets:
        hidden = {option.id: HIDDEN for option in agent.options if option.type == "secret"}
        record.config = record.config | {id: mark for id, mark in hidden.items() if record.config.get(id)}
        record.saved = _without(record.saved, secrets)
        if record.parked is not None:
            record.parked = msgspec.json.encode(_without(msgspec.json.decode(record.parked), secrets))
    return msgspec.msgpack.encode(record)


def _without(value: Any, secrets: list[Any]) -> Any:
    """A value in which no secret stands as it is."""
    if isinstance(value, dict):
        return {key: _without(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, secrets) for item in value]
    return HIDDEN if isinstance(value, str) and value in secrets else value


def unpack(data: bytes) -> Record:
    """The record of a session.

    Raises:
        msgspec.MsgspecError: the bytes are none.
    """
    return msgspec.msgpack.decode(data, type=Record)


def restore(session: Session, record: Record) -> None:
    """Makes a session what the record says. Secrets that are known stay."""
    known = session.config
    session.directories = record.directories
    for name in _PLAIN:
        setattr(session, name, getattr(record, name))
    session.config = known | {
        id: known.get(id) if value == HIDDEN and known.get(id) else value for id, value in record.config.items()
    }


def catch_up(session: Session, record: Record) -> None:
    """Takes over from the record only what must not fall back: another process has changed the session as well."""
    for name in ("turns", "messages", "calls"):
        setattr(session, name, max(getattr(session, name), getattr(record, name)))


_KINDS: dict[str, type[Said] | type[Called] | type[Planned]] = {"said": Said, "called": Called, "planned": Planned}
_NAMES: dict[type, str] = {kind: name for name, kind in _KINDS.items()}


def pack_entry(entry: Entry) -> bytes:
    """The bytes of an entry."""
    return msgspec.msgpack.encode([_NAMES[type(entry)], entry])


def unpack_entry(data: bytes) -> Entry:
    """The entry.

    Raises:
        msgspec.MsgspecError: the bytes are none.
    """
    name, fields = msgspec.msgpack.decode(data, type=tuple[str, msgspec.Raw])
    return msgspec.msgpack.decode(fields, type=_KINDS[name])
