"""Turns of AAP: what begins one, what goes on with one that waits for the client, and what happens when a client goes.

A turn that asked something is parked under its session until a request brings everything it asked for. Calls that a
history left open without a turn (stored, or seeded by a client) are answered in the same way, and a new turn begins.

Source: AAP endpoints page, `POST /sessions/:id/turns`; pages on tools and on history.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from mockagent.aap import checks, prompts, render
from mockagent.aap import params as p
from mockagent.aap.exchange import Exchange
from mockagent.aap.output import OUTPUTS, Bystander, TurnOutput
from mockagent.aap.params import wrong
from mockagent.aap.roster import Served
from mockagent.aap.transcript import denial, open_calls, result, tool_content
from mockagent.script.output import Answer, Permission, Stop, Ticket, ToolUpdate
from mockagent.script.prompt import Prompt
from mockagent.script.run import Run
from mockagent.world.history import Called
from mockagent.world.sessions import Session

Reply = p.ToolMessage | p.PermissionMessage

_WAITING = ("queue", "replace", "parallel")
"""Values of `sessions.busy` with which a second turn is accepted."""


class Parked:
    """A turn that waits for the client.

    Attributes:
        run: the turn.
        calls: what it waits for, by the id of the call.
    """

    __slots__ = ("calls", "run")

    def __init__(self, run: Run, open: Sequence[Ticket]) -> None:
        self.run = run
        self.calls = {_call_id(ticket): ticket for ticket in open}

    @property
    def waiting(self) -> bool:
        """Whether it still waits: it may have been cancelled by somebody else."""
        return self.run.running and all(ticket in self.run.tickets for ticket in self.calls.values())


def _call_id(ticket: Ticket) -> str:
    need = ticket.need
    return need.tool.id if hasattr(need, "tool") else ""


class Turns:
    """All turns of one AAP server."""

    def __init__(self) -> None:
        self._parked: dict[str, Parked] = {}
        self._open: set[TurnOutput] = set()

    # --- a request

    def take(self, exchange: Exchange, served: Served, session: Session, body: p.Turn) -> None:
        """Begins a turn, or goes on with one.

        Args:
            exchange: the request.
            served: whose session it is.
            session: where.
            body: what the client sent.

        Raises:
            Refusal: the request is answered with an error, and nothing has changed.
        """
        said, replies = _shape(body)
        self._check(served, session, body)
        parked = self._waiting(served, session)
        policy = served.agent.scenario.sessions.busy
        if served.agent.running(session) and parked is None and (policy not in _WAITING or replies):
            exchange.fail(policy if policy not in _WAITING else "busy")
            return
        if said is not None and not (parked is not None and policy == "replace"):
            _nothing_open(parked.calls if parked is not None else [call.id for call in open_calls(session)])
        elif replies:
            known = _known(parked, session)
            _complete(replies, known)
        for out in exchange.backstage.connections.values():
            out.release("next_prompt", session.id)
        _override(session, body)
        output = OUTPUTS[body.stream](self, served, session, exchange)
        exchange.on_left = output.left
        exchange.on_over = partial(self._answered, output)
        self._open.add(output)
        served.agent.on_event.append(output.saw)
        served.agent.presence.join(session, Bystander(output))
        if said is not None:
            self._begin(output, prompts.read(exchange.message, said))
        elif parked is not None:
            self._go_on(output, parked, replies)
        else:
            self._begin_with_results(output, replies)

    def _check(self, served: Served, session: Session, body: p.Turn) -> None:
        config = body.agent
        if config.name is not msgspec.UNSET and config.name != served.name:
            raise wrong("agent.name", f"the session belongs to {served.name!r}, and that cannot be changed")
        modes = render.streams(served.capabilities)
        if body.stream not in modes:
            raise wrong("stream", f"the agent does not declare {body.stream!r}: one of {', '.join(modes)}")
        enabled = config.tools if config.tools is not msgspec.UNSET else []
        declared = body.tools if body.tools is not msgspec.UNSET else []
        checks.tools(served, enabled, declared)
        server = session.tools if config.tools is msgspec.UNSET else [tool.name for tool in enabled]
        client = session.client_tools if body.tools is msgspec.UNSET else [tool.name for tool in declared]
        checks.together(server, client)
        checks.options(served, config.options)
        checks.messages(served, body.messages)

    def _begin(self, output: TurnOutput, prompt: Prompt) -> None:
        agent, session = output.served.agent, output.session
        if session.state != "active":
            agent.world.sessions.activate(session)
            output.exchange.point("session_opened", session.id)
            agent.opened(session)
        output.turn = agent.prompt(session, prompt, output)
        if not output.ended:
            output.begin()

    def _go_on(self, output: TurnOutput, parked: Parked, replies: Sequence[Reply]) -> None:
        session = output.session
        del self._parked[session.id]
        output.served.agent.unparked(parked.run)
        output.turn = parked.run
        parked.run.attach(output)
        output.begin()
        for reply in replies:
            parked.calls[reply.tool_call_id].settle(_answer(reply))

    def _begin_with_results(self, output: TurnOutput, replies: Sequence[Reply]) -> None:
        """Results for calls that no turn waits for: they are stored, and the turn plays that answers them."""
        history = output.session.history
        texts: list[str] = []
        ran: list[str] = []
        for reply in replies:
            if isinstance(reply, p.ToolMessage):
                value = result(reply.content)
                history.update(reply.tool_call_id, {"status": "completed"}, value)
                texts.append(_in_words(value))
            elif reply.granted:
                history.update(reply.tool_call_id, {"status": "completed"}, "")
                ran.append(reply.tool_call_id)
            else:
                reason = _reason(reply)
                history.update(reply.tool_call_id, {"status": "failed"}, None, reason)
                texts.append(denial(reason))
        first = history.find(replies[0].tool_call_id)
        tool = first.name if first is not None else None
        self._begin(output, prompts.resumed(output.exchange.message, "\n".join(texts), tool))
        for id in ran:  # no step says what they give
            output.emit(ToolUpdate(id=id, fields={}, final=True, result=""), "turn")

    def _answered(self, output: TurnOutput) -> None:
        self._open.discard(output)
        output.served.agent.on_event.remove(output.saw)
        output.served.agent.leave(output, output.session.id)

    def stop(self) -> None:
        """Nothing plays any more: all answers end."""
        for output in list(self._open):
            output.end(Stop("error"))

    # --- parking, leaving

    def park(self, output: TurnOutput, open: Sequence[Ticket]) -> None:
        """A turn waits for the client; the answer that it spoke through ends."""
        run = output.served.agent.run_of(output.session, output)
        if run is not None:
            self._keep(output.session, run, open)
            output.served.agent.parked(run)
            run.attach(None)

    def _keep(self, session: Session, run: Run, open: Sequence[Ticket]) -> None:
        self._parked[session.id] = Parked(run, open)
        run.on_done = partial(self._over, session.id, run)

    def _over(self, session: str, run: Run) -> None:
        """A turn that was parked has ended, whoever ended it."""
        parked = self._parked.get(session)
        if parked is not None and parked.run is run:
            del self._parked[session]

    def _waiting(self, served: Served, session: Session) -> Parked | None:
        """The turn that waits in the session. It may have begun in another process, or gone on there."""
        parked = self._parked.get(session.id)
        if parked is not None and not parked.waiting:
            del self._parked[session.id]
            parked = None
        if not served.agent.world.sessions.keeps:
            return parked
        if parked is not None and parked.run.past is not None and session.parked != parked.run.past.write():
            parked.run.drop()
            parked = None
        if parked is None and session.parked is not None:
            from mockagent.script.past import revive

            if (run := revive(served.agent, session)) is not None:
                self._keep(session, run, list(run.tickets))
        return self._parked.get(session.id)

    def left(self, output: TurnOutput) -> None:
        """A client has gone in the middle of an answer."""
        output.exchange.backstage.note("left", output.peer, output.session.id)
        if output.turn is None or output.misses_cancel():
            return
        output.turn.cancel()
        if isinstance(output.turn, Run):
            for ticket in list(output.turn.tickets):
                ticket.settle(Answer(outcome="cancelled"))


# --- what came in


def _shape(body: p.Turn) -> tuple[p.UserMessage | None, list[Reply]]:
    """One user message, or results and permissions; nothing else makes a turn."""
    users = [message for message in body.messages if isinstance(message, p.UserMessage)]
    replies = [message for message in body.messages if not isinstance(message, p.UserMessage)]
    if len(users) > 1:
        raise wrong("messages", "one user message makes a turn, not several")
    if users and replies:
        raise wrong("messages", "either one user message, or results and permissions, not both")
    return (users[0] if users else None), replies


def _nothing_open(calls: Any) -> None:
    """Source: page on tools: all results and permissions come back together, in one request."""
    if calls:
        raise wrong("messages", f"results or permissions are missing for {', '.join(calls)}")


def _known(parked: Parked | None, session: Session) -> dict[str, type[Reply]]:
    """The calls that wait, and what each of them waits for."""
    if parked is not None:
        return {id: _wanted(isinstance(ticket.need, Permission)) for id, ticket in parked.calls.items()}
    return {call.id: _wanted(_asks(call, session)) for call in open_calls(session)}


def _wanted(permission: bool) -> type[Reply]:
    return p.PermissionMessage if permission else p.ToolMessage


def _asks(call: Called, session: Session) -> bool:
    """A call left open in a history waits for a permission if it is of a server-side tool that is not trusted."""
    return call.side == "server" and call.name in session.tools and not session.tools[call.name]


def _complete(replies: Sequence[Reply], known: dict[str, type[Reply]]) -> None:
    seen: set[str] = set()
    for index, reply in enumerate(replies):
        field, id = f"messages[{index}]", reply.tool_call_id
        if id not in known:
            waiting = f"open are {', '.join(known)}" if known else "no call is open"
            raise wrong(f"{field}.toolCallId", f"the call {id!r} is not open: {waiting}")
        if id in seen:
            raise wrong(f"{field}.toolCallId", f"the call {id!r} is answered twice")
        if not isinstance(reply, known[id]):
            role = "tool_permission" if known[id] is p.PermissionMessage else "tool"
            raise wrong(f"{field}.role", f"the call {id!r} waits for a message with role {role}")
        seen.add(id)
    _nothing_open([id for id in known if id not in seen])


def _override(session: Session, body: p.Turn) -> None:
    """What a turn changes lasts."""
    if body.agent.tools is not msgspec.UNSET:
        session.tools = {tool.name: tool.trust for tool in body.agent.tools}
    if body.tools is not msgspec.UNSET:
        session.client_tools = {tool.name: msgspec.to_builtins(tool) for tool in body.tools}
    session.config.update(body.agent.options)


def _answer(reply: Reply) -> Answer:
    told = msgspec.to_builtins(reply)
    if isinstance(reply, p.ToolMessage):
        return Answer(outcome="result", value=result(reply.content), message=told)
    outcome: Any = "granted" if reply.granted else "denied"
    return Answer(outcome=outcome, reason=_reason(reply), value=told, message=told)


def _reason(reply: p.PermissionMessage) -> str:
    return reply.reason if reply.reason is not msgspec.UNSET else ""


def _in_words(value: Any) -> str:
    content = tool_content(value)
    if isinstance(content, str):
        return content
    return "\n".join(piece["text"] for piece in content if piece["type"] == "text")
