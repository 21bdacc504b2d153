"""The verbs that ask the client something: how a question is put, and what an answer leads to.

Like all players they only yield; whether there is somebody to ask, and how a protocol says it, is the output's
business.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from mockagent.scenario import model
from mockagent.scenario.model import Step
from mockagent.script.commands import Ended, Script
from mockagent.script.output import Answer, ClientRequest, Need, Permission, Stop, Ticket, ToolCall, ToolUpdate
from mockagent.script.pace import draw
from mockagent.script.placeholders import fill_meta, fill_step
from mockagent.script.run import Run


def put(run: Run, step: Step, need: Need) -> Any:
    """Asks and waits for the answer; None if it cannot be asked. (A generator that returns an Answer.)"""
    ticket = _ticket(run, step, need)
    if ticket is None:
        return None
    answer: Answer = yield ticket
    return answer


def _ticket(run: Run, step: Step, need: Need) -> Ticket | None:
    """Asks; None if it cannot be asked."""
    return run.ask(need, None if step.timeout is None else draw(step.timeout, run.rng("waits")))


def cannot(run: Run, step: Step, why: str = "the client cannot be asked") -> Script:
    """Plays `otherwise`, for there is nobody to answer; `why` goes into the journal."""
    run.agent.note("skipped", run.session.id, step=str(step.place), verb=step.verb, why=why)
    if step.otherwise is not None:
        yield from run.agent.script(run, step.otherwise)


def keep(run: Run, step: Step, answer: Answer) -> None:
    """Does the step's `save` with an answer."""
    if step.save:
        run.agent.save(step.save, answer.message, run.scope)


def then(run: Run, step: Step, answer: Answer, text: str) -> Script:
    """Plays the first branch of `then` that fits; without one, a cancelled permission ends the turn.

    Source: ACP, Prompt Turn, cancellation: only a client that has cancelled the turn answers like this.
    """
    for way in step.then or ():
        if way.when is None or run.agent.conditions.holds(way.when, run, answer=answer, text=text):
            yield from run.agent.script(run, way.steps)
            return
    if answer.outcome == "cancelled" and step.verb in _PERMISSIONS:
        raise Ended(Stop("cancelled"))


_PERMISSIONS = frozenset({"ask", "tool"})


def words_of(value: Any) -> str:
    """A value as conditions on text see it: JSON unless it is text."""
    if value is msgspec.UNSET or value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def ask(run: Run, step: Step) -> Script:
    """A permission, for a tool call that is there or one made for it."""
    payload: model.Ask = fill_step(step, run.scope)
    content = None if payload.content is msgspec.UNSET else payload.content
    known = run.session.history.find(payload.tool) if payload.tool is not None else None
    fields = {"title": payload.title} if payload.title is not None else {}
    call = ToolCall(
        id=payload.tool or run.session.next_call_id(),
        name=known.name if known is not None else None,
        fields=fields,
        input=known.input if known is not None else None,
    )
    answer = yield from put(run, step, Permission(tool=call, options=payload.options, content=content))
    if answer is None:
        yield from cannot(run, step)
        return
    keep(run, step, answer)
    yield from then(run, step, answer, answer.reason or "")


def client_request(run: Run, step: Step) -> Script:
    """A request that takes one answer: a file, a form, whatever the scenario names."""
    need = ClientRequest(verb=step.verb, payload=fill_step(step, run.scope), step=str(step.place))
    yield from _request(run, step, need)


def _request(run: Run, step: Step, need: ClientRequest) -> Script:
    answer = yield from put(run, step, need)
    if answer is None:
        yield from cannot(run, step)
    else:
        yield from _answered(run, step, answer)


def _answered(run: Run, step: Step, answer: Answer) -> Script:
    keep(run, step, answer)
    yield from then(run, step, answer, words_of(answer.value) if answer.words is None else answer.words)


def terminal(run: Run, step: Step) -> Script:
    """The client's terminal, from its creation to its release; a tool call shows it as long as it is there."""
    payload: model.Terminal = fill_step(step, run.scope)
    if payload.kill_after is not None:
        payload = msgspec.structs.replace(payload, kill_after=draw(payload.kill_after, run.rng("waits")))
    begun = None if payload.tool is None else partial(_show_terminal, run, payload.tool)
    need = ClientRequest(verb="terminal", payload=payload, step=str(step.place), begun=begun)
    yield from _request(run, step, need)


def _show_terminal(run: Run, tool: str, terminal: str) -> None:
    run.emit(ToolUpdate(id=tool, fields={"status": "in_progress", "content": [{"terminal": terminal}]}))


def mcp(run: Run, step: Step) -> Script:
    """A tool of one of the client's MCP servers, shown like any other tool call."""
    payload: model.McpCall = fill_step(step, run.scope)
    ticket = _ticket(run, step, ClientRequest(verb="mcp", payload=payload, step=str(step.place)))
    if ticket is None:
        yield from cannot(run, step)
        return
    fields = {"title": f"{payload.server}: {payload.tool}", "kind": "other", "status": "in_progress"}
    call = ToolCall(
        id=run.session.next_call_id(),
        name=payload.tool,
        fields=fields,
        input=payload.arguments,
        meta=fill_meta(step, run.scope),
    )
    run.emit(call)
    run.open_calls[call.id] = call
    answer: Answer = yield ticket
    done = {"status": "completed" if answer.outcome == "result" else "failed"}
    run.emit(ToolUpdate(id=call.id, fields=done | _mcp_result(answer), final=True, result=answer.words or ""))
    yield from _answered(run, step, answer)


def _mcp_result(answer: Answer) -> dict[str, Any]:
    """What the tool gave back: MCP's blocks are ACP's, and its structured content is the raw output."""
    value = answer.value if isinstance(answer.value, dict) else {}
    content = value.get("content") or ([answer.words] if answer.words else [])
    made = {"content": content, "output": value.get("structuredContent")}
    return {key: part for key, part in made.items() if part}
