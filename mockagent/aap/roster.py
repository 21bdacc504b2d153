"""The agents of one AAP server: their names, who may use them, and which of them a session belongs to.

Source: AAP endpoints page, `GET /meta`, `GET /sessions`, authentication.
"""

from __future__ import annotations

from collections.abc import Sequence

from mockagent.errors import Refusal
from mockagent.scenario import model
from mockagent.script.agent import Agent
from mockagent.world.sessions import Session

_NEXT = "~"
"""Parts the number of an agent from its own cursor, in a list that runs over several agents."""


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

    # --- finding

    def named(self, name: str) -> Served | None:
        """The agent of that name."""
        return next((served for served in self.members if served.name == name), None)

    def session(self, id: str, token: str | None) -> tuple[Served, Session]:
        """The session of that id, with its agent.

        Raises:
            Refusal: `session_not_found`, or `auth_required` if the token does not open its agent, or any.
        """
        self.open_to(token)
        for served in self.members:
            session = served.agent.world.sessions.get(id)
            if session is not None:
                if not served.admits(token):
                    raise unauthorized(token)
                return served, session
        raise Refusal("session_not_found", f"There is no session {id!r}")

    def create(self, served: Served) -> Session:
        """A new session, with an id that no other agent of the server has given out."""
        sessions = served.agent.world.sessions
        while True:
            session = served.agent.create(None)
            others = (other.agent.world.sessions for other in self.members if other is not served)
            if all(other.get(session.id) is None for other in others):
                return session
            sessions.delete(session)

    def page(self, visible: Sequence[Served], after: str | None) -> tuple[list[tuple[Served, Session]], str | None]:
        """One page of the list: the sessions of the first agent, then those of the next.

        Args:
            visible: whose sessions.
            after: what the page before gave as `next`.

        Returns:
            The rows, and the cursor of the next page or None.

        Raises:
            Refusal: `invalid_cursor`.
        """
        index, cursor = self._place(visible, after)
        while index < len(visible):
            served = visible[index]
            rows, further = served.agent.world.sessions.page(None, cursor)
            following = None if further is None else self._cursor(visible, index, further)
            if further is None and self._more(visible, index):
                following = f"{index + 1}{_NEXT}"
            if rows or following is None:
                return [(served, row) for row in rows], following
            index, cursor = index + 1, None
        return [], None

    def _place(self, visible: Sequence[Served], after: str | None) -> tuple[int, str | None]:
        if after is None or len(visible) <= 1:
            return 0, after
        number, parted, cursor = after.partition(_NEXT)
        if not (parted and number.isdecimal() and int(number) < len(visible)):
            raise Refusal("invalid_cursor", f"Invalid cursor: {after!r} was not given out by this list")
        return int(number), cursor or None

    def _cursor(self, visible: Sequence[Served], index: int, cursor: str) -> str:
        return f"{index}{_NEXT}{cursor}" if len(visible) > 1 else cursor

    def _more(self, visible: Sequence[Served], index: int) -> bool:
        return any(len(served.agent.world.sessions) for served in visible[index + 1 :])


def unauthorized(token: str | None) -> Refusal:
    """The refusal of a request without a token that fits."""
    if token is None:
        return Refusal("auth_required", "Authorization: Bearer TOKEN is required")
    return Refusal("auth_required", "The bearer token is not known here")
