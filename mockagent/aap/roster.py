"""The agents of one AAP server: their names, who may use them, and which of them a session belongs to.

Source: AAP endpoints page, `GET /meta`, `GET /sessions`, authentication.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockagent.errors import Refusal
from mockagent.scenario import model
from mockagent.script.agent import Agent
from mockagent.world.cursors import Cursors, Holder, Share, refused
from mockagent.world.sessions import Session

_NEXT = "~"
"""Parts the number of an agent from the cursor in its part, in a list that runs over several agents."""


class Served:
    """One agent as AAP shows it.

    Attributes:
        name: unique on the server.
        agent: who plays.
        tools: those that clients may enable, by name.
        options: those that AAP knows, by id.
    """

    def __init__(self, name: str, agent: Agent) -> None:
        self.name = name
        self.agent = agent
        self.about = agent.scenario.agent
        self.tools = {tool.name: tool for tool in self.about.tools if tool.listed}
        self.options = {option.id: option for option in self.about.options if option.type != "boolean"}

    @property
    def capabilities(self) -> model.Capabilities:
        """What the agent declares."""
        return self.about.capabilities

    @property
    def guarded(self) -> bool:
        """Whether a token is needed: the scenario says so, or names tokens."""
        return self.about.auth.required or bool(self.about.auth.tokens)

    def admits(self, token: str | None) -> bool:
        """Whether this token opens the agent; if the scenario names none, every token does."""
        tokens = self.about.auth.tokens
        return not self.guarded or (token is not None and (not tokens or token in tokens))


class Roster:
    """All agents that speak AAP, in the order of their scenarios.

    Args:
        agents: of the whole process; those that do not speak AAP are left out.
    """

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.members: list[Served] = []
        for agent in agents:
            if agent.scenario.agent.aap:
                self.members.append(Served(self._free_name(agent.scenario.agent.name), agent))
        self._numbers = [str(number) for number in range(len(self.members))]
        if len(self.members) > 1:
            first = agents[0]
            self._page_size = first.scenario.sessions.page_size
            self._cursors = [
                Cursors(first.scenario.sessions.cursor, first.world.sessions.cursors.process + number)
                for number in range(len(self.members))
            ]

    def _free_name(self, name: str) -> str:
        """Names have to be unique on a server; scenarios do not know of each other."""
        taken = {served.name for served in self.members}
        number = 1
        free = name
        while free in taken:
            number += 1
            free = f"{name}-{number}"
        return free

    @property
    def version(self) -> int:
        """The protocol version, as the first agent has it."""
        return max(self.members[0].about.aap) if self.members else 3

    # --- who may

    def open_to(self, token: str | None) -> list[Served]:
        """The agents that this token opens.

        Raises:
            Refusal: `auth_required`, if there is none.
        """
        found = [served for served in self.members if served.admits(token)]
        if self.members and not found:
            raise unauthorized(token)
        return found

    def shown_to(self, token: str | None) -> list[Served]:
        """The agents that `/meta` shows: also those whose description is public.

        Raises:
            Refusal: `auth_required`, if there is none.
        """
        found = [served for served in self.members if served.about.auth.public_meta or served.admits(token)]
        if self.members and not found:
            raise unauthorized(token)
        return found

    def hidden(self) -> Iterator[tuple[Served, list[str]]]:
        """The agents with sessions whose ids lead elsewhere, and these ids: scenarios do not know of each other."""
        for served in self.members:
            stored = served.agent.scenario.sessions.stored
            ids = [session.id for session in stored if self._first(session.id) is not served]
            if ids:
                yield served, ids

    # --- finding

    def named(self, name: object) -> Served | None:
        """The agent of that name."""
        return next((served for served in self.members if served.name == name), None)

    def session(self, id: str, token: str | None) -> tuple[Served, Session]:
        """The session of that id, with its agent.

        Raises:
            Refusal: `session_not_found`, or `auth_required` if the token does not open its agent, or any.
        """
        self.open_to(token)
        served = self._first(id)
        session = served.agent.world.sessions.get(id) if served is not None else None
        if served is None or session is None:
            raise Refusal("session_not_found", f"There is no session {id!r}")
        if not served.admits(token):
            raise unauthorized(token)
        return served, session

    def create(self, served: Served) -> Session:
        """A new session, with an id that no other agent of the server has given out."""
        sessions = served.agent.world.sessions
        while True:
            session = served.agent.create(None)
            others = (other.agent.world.sessions for other in self.members if other is not served)
            if all(other.get(session.id) is None for other in others):
                return session
            sessions.delete(session)

    def page(
        self, visible: Sequence[Served], after: str | None, holder: Holder
    ) -> tuple[list[tuple[Served, Session]], str | None]:
        """One page of the list: the sessions of the first agent, then those of the next, as the first one's scenario
        wants pages and cursors.

        Args:
            visible: whose sessions.
            after: what the page before gave as `next`.
            holder: who asks.

        Returns:
            The rows, and the cursor of the next page or None.

        Raises:
            Refusal: `invalid_cursor`.
        """
        if len(self.members) == 1:
            rows, following = self.members[0].agent.page(None, after, holder)
            return [(self.members[0], row) for row in rows], following
        index, cursor = self._place(after)
        found: list[tuple[Served, Session]] = []
        for at in range(index, len(self.members)):
            served = self.members[at]
            if served in visible:
                share = Share(self._page_size - len(found), self._cursors[at])
                rows, further = served.agent.page(None, cursor, holder, share)
                found += [(served, row) for row in rows]
                if further is not None:
                    return self._reachable(found), f"{at}{_NEXT}{further}"
            cursor = None
        return self._reachable(found), None

    def _place(self, after: str | None) -> tuple[int, str | None]:
        if after is None:
            return 0, None
        number, parted, cursor = after.partition(_NEXT)
        if not (parted and number in self._numbers):
            raise refused("garbage")
        return self._numbers.index(number), cursor

    def _reachable(self, found: list[tuple[Served, Session]]) -> list[tuple[Served, Session]]:
        """Without those whose id leads to a session of an agent before theirs."""
        return [(served, row) for served, row in found if self._first(row.id) is served]

    def _first(self, id: str) -> Served | None:
        """The agent that a session's id leads to."""
        return next((served for served in self.members if served.agent.world.sessions.get(id) is not None), None)


def unauthorized(token: str | None) -> Refusal:
    """The refusal of a request without a token that fits."""
    if token is None:
        return Refusal("auth_required", "Authorization: Bearer TOKEN is required")
    return Refusal("auth_required", "The bearer token is not known here")
