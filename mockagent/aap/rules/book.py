"""The rulebook of AAP 3, and what its rules have in common: who is served, whose a session is, and what was declared.

Several connections of one client may share a session, so what is known here is known for the whole process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from mockagent.message import Message
from mockagent.watch.look import at, items
from mockagent.watch.rule import Check, Rulebook, Scope, Witness, got, sent
from mockagent.watch.shown import Shown

RULES: Final = Rulebook("aap", version=3)

CREATE: Final = "POST /sessions"
TURN: Final = "POST /sessions/*/turns"

REMEMBERED: Final = 5000
"""So many sessions (and other things of clients) are remembered; the oldest are forgotten, and not judged any more."""


def named(value: Any) -> Iterator[str]:
    """The names of tools, options or agents in a list."""
    for entry in items(value):
        if isinstance(name := at(entry, "name"), str):
            yield name


def blocks(message: Message) -> Iterator[tuple[str, Any]]:
    """All content blocks of the messages in a request, each with its place."""
    for index, said in enumerate(items(at(message.data, "messages"))):
        for place, block in enumerate(items(at(said, "content"))):
            yield f"messages[{index}].content[{place}]", block


def status(message: Message) -> int:
    """The status of a reply."""
    return message.http.status if message.http is not None else 0


class Roster(Witness):
    """Knows what `/meta` has told, and which session belongs to which agent.

    A client that has never asked for `/meta` may know the agents in another way: it is not judged by what they declare.
    """

    scope: ClassVar[Scope] = "process"

    def start(self) -> None:
        self.agents: dict[str, Any] | None = None
        self.told: list[Shown] = []
        self.creating: dict[tuple[str, Any], str] = {}
        self.owners: dict[str, str] = {}

    @sent("reply:GET /meta")
    def introduced(self, message: Message) -> None:
        agents = at(message.data, "agents")
        if isinstance(agents, list):
            self.agents = {name: entry for entry in agents for name in named([entry])}
            self.told = [self.keep(message)]

    @sent("reply:POST /sessions")
    def created(self, message: Message) -> None:
        self._owned(at(message.data, "sessionId"), self.creating.pop((message.peer.id, message.id), None))

    @sent("reply:GET /sessions", "reply:GET /sessions/*")
    def shown(self, message: Message) -> None:
        for row in items(at(message.data, "sessions")) or [message.data]:
            self._owned(at(row, "sessionId"), at(row, "agent", "name"))

    def _owned(self, session: Any, agent: Any) -> None:
        if isinstance(session, str) and isinstance(agent, str):
            if len(self.owners) >= REMEMBERED:
                del self.owners[next(iter(self.owners))]
            self.owners[session] = agent

    def damaged(self, message: Message) -> None:
        """What the client knows of the agents may be something else now; of sessions it only knows less."""
        if message.kind == "reply:GET /meta":
            self.blind = True

    @got(CREATE)
    def creates(self, message: Message) -> None:
        name = at(message.data, "agent", "name")
        if isinstance(name, str):
            if len(self.creating) >= REMEMBERED:
                self.creating.clear()
            self.creating[message.peer.id, message.id] = name


class OfAgents(Check):
    """Judges requests that make a session or begin a turn by what the agent has declared."""

    knows = (Roster,)

    @got(CREATE)
    def creates(self, message: Message) -> None:
        name = at(message.data, "agent", "name")
        if isinstance(name, str):
            self.judge(message, name)

    @got(TURN)
    def begins_turn(self, message: Message) -> None:
        self.judge(message, self.owner(message))

    def judge(self, message: Message, agent: str | None) -> None:
        """Looks at a request; `agent` is whose it is, None when that is not known."""

    @property
    def agents(self) -> dict[str, Any] | None:
        """What `/meta` said of each agent; None when it was not asked."""
        return self.consult(Roster).agents

    @property
    def told(self) -> list[Shown]:
        """The message in which that stands."""
        return self.consult(Roster).told

    def owner(self, message: Message) -> str | None:
        """Whose the session of a message is."""
        return self.consult(Roster).owners.get(message.session or "")

    def info(self, agent: str | None) -> Any:
        """What `/meta` said of an agent; None when it said nothing, or was not asked."""
        agents = self.agents
        return None if agent is None or agents is None else agents.get(agent)

    def declares(self, agent: str | None, *path: str) -> bool:
        """Whether an agent declared a capability."""
        return at(self.info(agent), "capabilities", *path) is not None
