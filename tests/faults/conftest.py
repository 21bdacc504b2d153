"""An engine with a host that is as small as can be, and messages of both protocols made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec
import pytest

from mockagent.faults.engine import Engine
from mockagent.faults.interface import Act, Pass
from mockagent.faults.outside import Spot
from mockagent.message import NO_ID, HttpHead, Message, Peer
from mockagent.scenario.model import Fault, When
from mockagent.script.placeholders import Unset


class Host:
    """What the engine is given, and what it said."""

    def __init__(self) -> None:
        self.peer = Peer("c1", "acp", "stdio")
        self.ws = Peer("c2", "acp", "ws")
        self.web = Peer("c3", "aap", "http")
        self.sessions: dict[str | None, dict[str, Any]] = {}
        self.reports: list[tuple[str, tuple[str, ...], str]] = []
        self.saved: dict[str, Any] = {}
        self._rngs: dict[tuple[str, str | None], Random] = {}

    def facts(self, session: str | None, message: Message | None) -> Mapping[str, Any]:
        return self.sessions.get(session, {})

    def rng(self, purpose: str, session: str | None) -> Random:
        return self._rngs.setdefault((purpose, session), Random(f"{purpose}/{session}"))

    def fill(self, value: Any, spot: Spot) -> Any:
        if isinstance(value, dict):
            return {key: self.fill(item, spot) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.fill(item, spot) for item in value)
        if isinstance(value, str) and value.startswith("${"):
            return self._look_up(value[2:-1], spot)
        return value

    def _look_up(self, name: str, spot: Spot) -> Any:
        known = {"value": spot.old, "request.id": spot.message.id if spot.message else msgspec.UNSET}
        known |= {f"match.{key}": group for key, group in spot.groups.items()}
        known |= {f"saved.{key}": value for key, value in self.saved.items()}
        if known.get(name, msgspec.UNSET) is msgspec.UNSET:
            raise Unset(name)
        return known[name]

    def report(self, fault: Fault, subject: Message | str, effects: tuple[str, ...], what: str, spot: Spot) -> None:
        self.reports.append((subject if isinstance(subject, str) else subject.kind, effects, what))

    def save(self, peer: Peer | None, session: str | None, name: str, value: Any) -> None:
        self.saved[name] = value

    def engine(self, *faults: Fault) -> Engine:
        return Engine(faults, facts=self.facts, rng=self.rng, fill=self.fill, report=self.report, save=self.save)

    # --- messages

    def request(
        self, method: str, id: Any = 1, *, session: str | None = None, neutral: str | None = None, **params: Any
    ) -> Message:
        data = {"jsonrpc": "2.0", "method": method, "params": params}
        if id is not NO_ID:
            data["id"] = id
        return Message(method, data, self.peer, id=id, method=method, session=session, neutral=neutral)

    def reply(self, method: str, id: Any = 1, *, session: str | None = None, result: Any = None) -> Message:
        return Message(
            f"reply:{method}",
            {"jsonrpc": "2.0", "id": id, "result": {} if result is None else result},
            self.peer,
            id=id,
            method=method,
            session=session,
            origin="handler",
            neutral="stop" if method == "session/prompt" else None,
        )

    def chunk(self, text: str, session: str = "s1", **more: Any) -> Message:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        data = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}
        more = {"origin": "turn", "neutral": "say", **more}
        return Message("update:agent_message_chunk", data, self.peer, session=session, **more)

    def http(
        self, kind: str, id: Any = 1, *, body: Any = None, query: dict[str, str] | None = None, **more: Any
    ) -> Message:
        method, path = kind.split(" ")
        head = HttpHead(method=method, path=path, query=query or {})
        return Message(kind, body, self.web, id=id, method=kind, http=head, **more)

    def http_reply(
        self, kind: str, id: Any = 1, *, body: Any = None, type: str = "application/json", **more: Any
    ) -> Message:
        head = HttpHead(status=200, headers={"Content-Type": type})
        return Message(f"reply:{kind}", body, self.web, id=id, method=kind, http=head, origin="handler", **more)

    def event(self, name: str, data: Any, session: str = "s1", neutral: str | None = None) -> Message:
        return Message(f"event:{name}", data, self.web, session=session, neutral=neutral, origin="turn")


@pytest.fixture
def host() -> Host:
    return Host()


def _fault(at: str, when: When | None = None, save: dict[str, str] | None = None, **effects: Any) -> Fault:
    return Fault(at=at, when=when, save=save, effects=effects)


def _passed(acts: list[Act]) -> Message:
    [only] = [act for act in acts if isinstance(act, Pass)]
    return only.message


@pytest.fixture
def fault() -> Callable[..., Fault]:
    """Makes a fault: `fault("list", when, error="busy")`."""
    return _fault


@pytest.fixture
def passed() -> Callable[..., Message]:
    """The one message that acts let pass."""
    return _passed
