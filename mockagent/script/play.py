"""What each verb does: generators of commands, one a verb.

A player sends items and asks through its run, and yields when it has to wait; it never waits itself and never knows a
protocol. The table at the end has a row for every verb that the format has; those that ask are in `questions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mockagent.scenario import model
from mockagent.scenario.model import Step
from mockagent.script.commands import Ended, Gather, Idle, Listen, Script, Signal
from mockagent.script.output import (
    Admission,
    Answer,
    ClientTool,
    Fail,
    Info,
    Permission,
    Raw,
    Stop,
    Surface,
    Text,
    ToolCall,
    ToolUpdate,
    Wire,
)
from mockagent.script.pace import draw, gap, pieces
from mockagent.script.placeholders import Unset, fill, fill_meta, fill_step
from mockagent.script.questions import ask, cannot, client_request, keep, mcp, put, terminal, then, words_of
from mockagent.script.run import Run
from mockagent.world.clock import ACTIVITY
from mockagent.world.metadata import Refused

_FRAGILE = frozenset({"stop", "fail"})


def play(run: Run, steps: Sequence[Step]) -> Script:
    """Plays a list of steps, one after the other.

    Raises:
        Ended: a step ended the turn; it carries the steps that are left.
    """
    rng = run.rng("waits")
    for index, step in enumerate(steps):
        while run.room() <= 0:  # before anything is drawn or sent: nobody overtakes those who wait for room
            yield Signal.ROOM
        if run.stage.tired():
            yield Signal.BREATH
        if step.after:
            yield draw(step.after, rng)
        try:
            if step.when is not None and not run.agent.conditions.holds(step.when, run):
                continue
            if step.verb in _FRAGILE:
                raise Ended(_end(step, run), steps[index + 1 :] if step.verb == "stop" else ())
            run.goes_on = _goes_on(steps, index)
            yield from PLAYERS[step.verb](run, step)
        except Unset as unset:
            run.agent.note("skipped", run.session.id, step=str(step.place), verb=step.verb, why=str(unset))


def _goes_on(steps: Sequence[Step], index: int) -> bool:
    """Whether the step behind belongs to the same message for certain; what is said is complete only with that."""
    following = steps[index + 1] if index + 1 < len(steps) else None
    return following is not None and following.join and following.when is None and following.verb == steps[index].verb


def _end(step: Step, run: Run) -> Stop | Fail:
    payload = fill_step(step, run.scope)
    return Stop(payload, fill_meta(step, run.scope)) if step.verb == "stop" else Fail(payload)


# --- text


def _text(run: Run, step: Step) -> Script:
    payload = fill_step(step, run.scope)
    pace = step.pace or run.agent.scenario.pace
    parts = [piece for part in payload for piece in _pieces(part, pace)]
    if not parts:
        return
    message_id, complete = _message_id(run, step), not run.goes_on
    rng = run.rng("pace")
    if pace is not None and pace.first:
        yield draw(pace.first, rng)
    last = len(parts)
    done = 0
    while done < last:
        if (room := run.room()) <= 0:
            yield Signal.ROOM
            continue
        take = 1 if pace is not None and pace.rate is not None else min(room, last - done)
        done += take
        run.emit(
            Text(
                role=step.verb,  # type: ignore[arg-type]
                parts=parts[done - take : done],
                message_id=message_id,
                starts=done == take,
                ends=done == last and complete,
                meta=fill_meta(step, run.scope),
            )
        )
        if done < last:
            yield gap(pace, rng) if pace is not None and pace.rate is not None else Signal.ROOM


def _pieces(part: Any, pace: model.Pace | None) -> list[Any]:
    if isinstance(part, dict):
        return [part]
    return pieces(part if isinstance(part, str) else msgspec.json.encode(part).decode(), pace)


def _message_id(run: Run, step: Step) -> str | None:
    """A message of its own for each step, unless the scenario names it or joins it to the one before."""
    if step.message_id is not msgspec.UNSET:
        given: str | None = fill(step.message_id, run.scope)
        return given
    if not run.agent.scenario.agent.message_ids:
        return None
    if step.join and (before := run.last_message.get(step.verb)) is not None:
        return before
    run.last_message[step.verb] = run.session.next_message_id()
    return run.last_message[step.verb]


# --- tools


def _tool(run: Run, step: Step) -> Script:
    payload: model.Tool = fill_step(step, run.scope)
    call = _call(run, payload, fill_meta(step, run.scope))
    admission = run.admit(call, bool(payload.ask))
    if admission is Admission.SKIP:
        yield from cannot(run, step, "not enabled by the client")
        return
    run.emit(call)
    run.open_calls[call.id] = call
    if payload.side == "client":
        yield from _client_tool(run, step, call, payload)
        return
    answer = None
    if admission is Admission.ASK:
        asked = payload.ask if isinstance(payload.ask, model.Ask) else model.Ask()
        content = None if asked.content is msgspec.UNSET else asked.content
        answer = yield from put(run, step, Permission(tool=call, options=asked.options, content=content))
        if answer is not None:
            keep(run, step, answer)
        if answer is None or answer.outcome != "granted":
            yield from _not_granted(run, step, call, answer)
            return
    if run.branched:
        yield Signal.ROOM  # tools that are called together are all called before the first gives its result
    yield from _work(run, step, call, payload)
    if answer is not None:
        yield from then(run, step, answer, words_of(payload.output))


def _call(run: Run, payload: model.Tool, meta: dict[str, Any] | None) -> ToolCall:
    given = {"kind": payload.kind, "title": payload.title}
    fields = {key: value for key, value in given.items() if value is not None}
    fields["status"] = "pending"
    if payload.locations is not msgspec.UNSET:
        fields["locations"] = payload.locations
    name, arguments = payload.name, None if payload.input is msgspec.UNSET else payload.input
    if payload.side == "client" and name == "any" and run.session.client_tools:
        name, arguments = _any_client_tool(run, arguments)
    return ToolCall(
        id=payload.id or run.session.next_call_id(),
        name=name,
        fields=fields,
        input=arguments,
        side=payload.side,
        listed=payload.listed,
        meta=meta,
    )


def _any_client_tool(run: Run, given: Any) -> tuple[str, Any]:
    """One of the tools that the client offers, with an input made up from its schema unless the scenario has one."""
    from mockagent.script.invent import invent

    rng = run.rng("client tools")
    name = rng.choice(list(run.session.client_tools))
    return name, invent(run.session.client_tools[name].get("parameters"), rng) if given is None else given


def _work(run: Run, step: Step, call: ToolCall, payload: model.Tool) -> Script:
    """The tool runs: progress while it takes time, then its result."""
    rng = run.rng("waits")
    output = None if payload.output is msgspec.UNSET else payload.output
    if payload.takes or payload.ask or step.pace is not None:
        run.emit(ToolUpdate(id=call.id, fields={"status": "in_progress"}))
    if payload.takes:
        yield draw(payload.takes, rng)
    if step.pace is not None and isinstance(output, str):
        yield from _stream(run, call, output, step.pace)
    fields: dict[str, Any] = {"status": payload.status}
    if payload.content is not msgspec.UNSET:
        fields["content"] = payload.content
    elif isinstance(output, str):
        fields["content"] = [output]
    if payload.output is not msgspec.UNSET:
        fields["output"] = payload.output
    run.emit(ToolUpdate(id=call.id, fields=fields, final=True, result=_result(payload)))


def _stream(run: Run, call: ToolCall, output: str, pace: model.Pace) -> Script:
    """Each update carries all output so far, as terminals in editors show it."""
    rng = run.rng("pace")
    chunks = pieces(output, pace)
    for count in range(1, len(chunks)):
        yield gap(pace, rng)
        while run.room() <= 0:
            yield Signal.ROOM
        run.emit(ToolUpdate(id=call.id, fields={"content": ["".join(chunks[:count])]}))
    yield gap(pace, rng)


def _result(payload: model.Tool) -> Any:
    if payload.output is not msgspec.UNSET:
        return payload.output
    return "" if payload.content is msgspec.UNSET else payload.content


def _client_tool(run: Run, step: Step, call: ToolCall, payload: model.Tool) -> Script:
    answer = yield from put(run, step, ClientTool(tool=call))
    if answer is None:
        run.emit(ToolUpdate(id=call.id, fields={"status": "failed"}, final=True))
        yield from cannot(run, step)
        return
    status = "completed" if answer.outcome == "result" else "failed"
    run.emit(ToolUpdate(id=call.id, fields={"status": status, "output": answer.value}, final=True, result=answer.value))
    keep(run, step, answer)
    yield from then(run, step, answer, words_of(answer.value))


def _not_granted(run: Run, step: Step, call: ToolCall, answer: Answer | None) -> Script:
    denied = None if answer is None or answer.outcome == "cancelled" else (answer.reason or "")
    run.emit(ToolUpdate(id=call.id, fields={"status": "failed"}, final=True, denied=denied))
    if answer is None:
        yield from cannot(run, step)
    else:
        yield from then(run, step, answer, answer.reason or "")


# --- the rest


def _tool_start(run: Run, step: Step) -> Script:
    payload: model.ToolFields = fill_step(step, run.scope)
    fields = dict(payload.fields)
    name, input = fields.pop("name", None), fields.get("input")
    run.emit(ToolCall(id=payload.id, name=name, fields=fields, input=input, meta=fill_meta(step, run.scope)))
    return
    yield


def _tool_update(run: Run, step: Step) -> Script:
    payload: model.ToolFields = fill_step(step, run.scope)
    fields = dict(payload.fields)
    final = fields.get("status") in ("completed", "failed")
    result = fields.get("output", fields.get("content", "")) if final else None
    run.emit(ToolUpdate(id=payload.id, fields=fields, final=final, result=result, meta=fill_meta(step, run.scope)))
    return
    yield


def _surface(run: Run, step: Step) -> Script:
    payload = fill_step(step, run.scope)
    if not run.silent:
        run.agent.changed(run.session, step.verb, payload)
    run.emit(Surface(verb=step.verb, payload=payload, meta=fill_meta(step, run.scope)))
    return
    yield


def _info(run: Run, step: Step) -> Script:
    payload: model.InfoFields = fill_step(step, run.scope)
    sessions = run.agent.world.sessions
    wait = sessions.slot(run.session, run.stage.moment)
    if wait:
        yield wait
    if run.silent:
        return
    try:
        applied = sessions.apply(run.session, payload)
    except Refused as refused:
        run.agent.note("skipped", run.session.id, step=str(step.place), verb="info", why=str(refused))
        return
    given = {name: getattr(applied, name) for name in ("title", "updated_at", "meta")}
    run.emit(Info(fields={name: value for name, value in given.items() if value is not msgspec.UNSET}))


def _raw(run: Run, step: Step) -> Script:
    run.emit(Raw(verb=step.verb, payload=fill_step(step, run.scope)))  # type: ignore[arg-type]
    return
    yield


def _wire(run: Run, step: Step) -> Script:
    payload = fill_step(step, run.scope)
    said = run.out is not None and run.out.emit(Wire(verb=step.verb, payload=payload), run.origin)
    if not said and step.verb in _OF_THE_PROCESS:
        run.agent.process(step.verb, payload)
    elif not said:
        run.agent.note("skipped", run.session.id, step=str(step.place), verb=step.verb, why="nobody is connected")
    return
    yield


_OF_THE_PROCESS = frozenset({"exit", "stderr"})


def _wait(run: Run, step: Step) -> Script:
    yield draw(step.payload, run.rng("waits"))


def _wait_for(run: Run, step: Step) -> Script:
    payload: model.WaitFor = fill_step(step, run.scope)
    timeout = None if payload.timeout is None else draw(payload.timeout, run.rng("waits"))
    heard = yield Listen(payload.method, timeout)
    outcome: Any = "timeout" if heard is None else "result"
    answer = Answer(outcome=outcome, value=heard, message=heard)
    if heard is not None:
        keep(run, step, answer)
    yield from then(run, step, answer, words_of(heard))


def _repeat(run: Run, step: Step) -> Script:
    payload: model.Repeat = step.payload
    rng = run.rng("waits")
    done = 0
    began = 0
    while payload.times is None or done < payload.times:
        if payload.times is None:
            # Time has to pass in each round, or nothing else would ever be due.
            shortest = ACTIVITY if run.stage.moment == began else 0
            yield Idle(max(draw(payload.every, rng), shortest) if done else 0)
        elif done and payload.every:
            yield draw(payload.every, rng)
        done += 1
        began = run.stage.moment
        yield from play(run, payload.steps)


def _together(run: Run, step: Step) -> Script:
    payload: model.Together = step.payload
    yield Gather([play(run, steps) for steps in payload.branches])


def _hang(run: Run, step: Step) -> Script:
    yield Signal.FOREVER


PLAYERS: dict[str, Callable[[Run, Step], Script]] = {
    "say": _text,
    "think": _text,
    "user": _text,
    "tool": _tool,
    "tool_start": _tool_start,
    "tool_update": _tool_update,
    "ask": ask,
    "plan": _surface,
    "usage": _surface,
    "commands": _surface,
    "mode": _surface,
    "option": _surface,
    "notice": _surface,
    "compaction": _surface,
    "info": _info,
    "read": client_request,
    "write": client_request,
    "terminal": terminal,
    "elicit": client_request,
    "mcp": mcp,
    "request": client_request,
    "notify": _raw,
    "update": _raw,
    "send": _raw,
    "wait": _wait,
    "wait_for": _wait_for,
    "repeat": _repeat,
    "together": _together,
    "hang": _hang,
    "stderr": _wire,
    "disconnect": _wire,
    "exit": _wire,
    "stall": _wire,
}
"""Verb to player. `stop` and `fail` are not here: they end the list itself (`play`)."""
