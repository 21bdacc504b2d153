"""Makes a scenario, as plain values, of what `walk` has found out about a recording.

Each turn of the recording is a turn that plays once; every other answer is a fault at its reply, with what was said
before and after it. What happened to bytes, connections and the process are faults at the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mockagent.replay.plain import GAP, ONCE, Kinds, Plain, after, effects_of, nth, span, stop, whole_scenario
from mockagent.replay.reading import is_call
from mockagent.replay.walk import MAKES, PROMPT, Call, Piece, Recording

PATIENCE = 5.0
"""Seconds for which something from the client is waited for, at least."""


def composed(recording: Recording, name: str) -> Plain:
    """The scenario."""
    kinds = Kinds()
    turns = [_turn(call, kinds) for call in recording.calls if call.turn]
    faults = _cancels(recording) + _replies(recording) + _arrivals(recording) + kinds.faults + _points(recording)
    return whole_scenario(name, sessions=_sessions(recording), turns=turns, faults=faults)


def _sessions(recording: Recording) -> Plain:
    stored = [
        {"id": id} | ({"cwd": params["cwd"]} if isinstance(params.get("cwd"), str) else {})
        for id, params in recording.stored.items()
    ]
    rules: Plain = {"auto_title": None, "replay": {"send": "none"}}
    return rules | ({"stored": stored} if stored else {})


# --- turns


def _turn(call: Call, kinds: Kinds) -> Plain:
    steps = _steps(call.pieces, call.at, call, kinds)
    if call.place is None:
        steps.append({"hang": True})
    return {"when": dict(ONCE), "steps": steps}


def _steps(pieces: Sequence[Piece], start: float, call: Call, kinds: Kinds | None) -> list[Plain]:
    """What is played for pieces.

    Args:
        start: the time at which they begin, in seconds.
        kinds: counts what can have faults; None: nothing can, for a fault plays it.
    """
    steps: list[Plain] = []
    now = start
    last = max((at for at, piece in enumerate(pieces) if piece.what not in ("heard", "answered")), default=-1)
    at = 0
    while at <= last:
        piece = pieces[at]
        gap, now = piece.at - now, max(now, piece.at)
        end = at + 1
        if piece.what == "heard":
            steps.append({"wait_for": {"method": piece.body, "timeout": span(max(PATIENCE, 3 * gap))}})
        elif piece.what == "replied":
            steps.append(after(gap, _end(call)))
        elif piece.what == "asked" and (end := _answered(pieces, at)) > at:
            steps.append(_asking(piece, pieces[at + 1 : end], gap, call, kinds))
            steps += _life(piece, kinds)
            now = max(now, pieces[end - 1].at)
        elif piece.what != "answered":
            end = at + 1
            steps.append(after(gap, _message(piece, call, kinds)))
            steps += _life(piece, kinds)
        at = max(end, at + 1)
    return steps


def _life(piece: Piece, kinds: Kinds | None) -> list[Plain]:
    """What happens behind a message that a fault plays: no other fault looks at it."""
    return [{name: piece.wire[name]} for name in STEPS if name in piece.wire] if kinds is None else []


STEPS = ("stderr", "stall", "disconnect", "exit")
"""Effects that are steps as well."""


def _answered(pieces: Sequence[Piece], at: int) -> int:
    """Where a question, and all that were asked before its answer came, have been answered: the place behind that. The
    place itself if the answer never came."""
    end = _place_of_answer(pieces, at)
    inner = at + 1
    while inner < end:
        if pieces[inner].what == "asked":
            end = max(end, _place_of_answer(pieces, inner))
        inner += 1
    return end


def _place_of_answer(pieces: Sequence[Piece], at: int) -> int:
    return next((end + 1 for end, piece in enumerate(pieces) if piece.of is pieces[at]), at)


def _asking(piece: Piece, meanwhile: Sequence[Piece], gap: float, call: Call, kinds: Kinds | None) -> Plain:
    """A question; what the agent said before all was answered plays beside it."""
    question = _message(piece, call, kinds, waits=True)
    beside = _steps([other for other in meanwhile if other.of is not piece], piece.at, call, kinds)
    return after(gap, question if not beside else {"together": [question, beside]})


def _message(piece: Piece, call: Call, kinds: Kinds | None, *, waits: bool = False) -> Plain:
    """The step that says one message."""
    step = _verb(piece, call, waits)
    if kinds is not None:
        called = step.get("notify", {}).get("method")
        kinds.pass_("raw" if "send" in step else "update:?" if called == "session/update" else piece.kind, piece.wire)
    return step


def _verb(piece: Piece, call: Call, waits: bool) -> Plain:
    body = piece.body
    if not is_call(body) or (piece.kind.startswith("request:") and not waits):
        return {"send": body}  # a question that nobody answered is nothing to wait for
    params = body["params"]
    if piece.kind.startswith("update:") and _own(params) and _is_update(params):
        return {"update": params["update"]}
    rest = {key: value for key, value in params.items() if key != "sessionId"} if _own(params) else params
    called = {"method": body["method"], "params": rest}
    if piece.kind.startswith("request:"):
        return {"request": called} | ({"save": piece.saves} if piece.saves else {})
    return {"notify": called} if piece.kind.startswith("notify:") or _addressed(params) else {"send": body}


def _is_update(params: Plain) -> bool:
    update = params.get("update")
    named = isinstance(update, dict) and isinstance(update.get("sessionUpdate"), str)
    return named and params.keys() == {"sessionId", "update"}


def _own(params: Plain) -> bool:
    return params.get("sessionId") == "${session.id}"


def _addressed(params: Plain) -> bool:
    return isinstance(params.get("sessionId"), str)


def _end(call: Call) -> Plain:
    """How a turn ends."""
    reply = call.reply or {}
    if _is_error(reply.get("error")) and call.pieces[-1].what == "replied":  # nothing is played behind `fail`
        return {"fail": reply["error"]}
    return stop(reply.get("result"))


def _is_error(error: Any) -> bool:
    return (
        isinstance(error, dict)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
        and error.keys() <= {"code", "message", "data"}
    )


# --- all other answers


def _replies(recording: Recording) -> list[Plain]:
    """The faults at replies. Those of prompts are counted as they end, all others as they are asked for."""
    faults: list[Plain] = []
    counts: dict[str, int] = {}
    unended = [call for call in recording.ended if call.arrived == "dropped"]
    others = [call for call in recording.calls if call.method != PROMPT and call.arrived != "dropped"]
    for call in [*others, *(call for call in recording.ended if call not in unended)]:
        number = counts[call.method] = counts.get(call.method, 0) + 1
        effects = _effects(call, recording)
        if effects:
            faults.append({"at": f"reply:{call.method}", "when": nth(number), **effects})
        if "drop" in effects:  # the faults behind this one do not see it
            counts[call.method] -= 1
    return faults


def _effects(call: Call, recording: Recording) -> Plain:
    reply = call.reply or {}
    effects: Plain = {}
    if call.method in MAKES and call.session in recording.values.used:
        effects["save"] = {recording.values.sessions[call.session]: "/result/sessionId"}
    effects |= _content(call, reply)
    if not call.turn:
        effects |= _around(call, recording)
    wire = {"drop": True} if call.place is None else call.pieces[call.place].wire
    if call.copies > 1 and "drop" not in wire:
        effects["copies"] = call.copies
    return effects | effects_of(wire)


def _content(call: Call, reply: Plain) -> Plain:
    if call.reply is None or any("drop" in piece.wire for piece in call.pieces):
        return {}
    if call.arrived is not None and ("result" in reply or _is_error(reply.get("error"))):
        return {}  # that is said as it comes in
    if "error" in reply:
        if _is_error(reply["error"]):
            return {} if call.turn and "fail" in _end(call) else {"error": reply["error"]}
        return {"edit": [{"set": "/error", "to": reply["error"]}, {"remove": "/result"}]}
    if "result" not in reply:
        return {"edit": [{"remove": "/result"}, {"remove": "/error"}]}
    if call.turn and reply["result"] == {"stopReason": _end(call).get("stop")}:
        return {}
    return {"result": reply["result"]}


def _around(call: Call, recording: Recording) -> Plain:
    """What was said before a reply and behind it."""
    place = call.place
    before = _steps(call.pieces[:place], call.at, call, None)
    reply = None
    behind: list[Plain] = []
    hold: Plain = {}
    if place is not None:
        reply = call.pieces[place]
        begun = max([call.at, *(piece.at for piece in call.pieces[:place])])
        if reply.at - begun >= GAP and before:
            before.append({"wait": span(reply.at - begun)})
        elif reply.at - begun >= GAP and "drop" not in reply.wire:
            hold = {"hold": {"until": span(reply.at - begun)}}
        behind = _steps(call.pieces[place + 1 :], reply.at, call, None)
    for piece in call.pieces:
        lost = [name for name in piece.wire if name not in STEPS]
        if piece is not reply and lost:
            recording.left_out.append(f"{', '.join(lost)} of {piece.kind}, beside the reply to {call.method}")
    return hold | ({"play_before": before} if before else {}) | ({"play_after": behind} if behind else {})


def _arrivals(recording: Recording) -> list[Plain]:
    """What happened to requests before they were handled."""
    faults: list[Plain] = []
    dropped: dict[str, int] = {}
    for call in recording.calls:
        effects = _ARRIVED[call.arrived](call) | call.life
        before = dropped.get(call.method, 0)
        if effects:
            faults.append({"at": call.method, "when": nth(call.number - before), **effects})
        if "drop" in effects:  # the faults behind this one do not see it
            dropped[call.method] = before + 1
    return faults


def _refused(call: Call) -> Plain:
    reply = call.reply or {}
    if "error" in reply:
        return {"error": reply["error"] if _is_error(reply["error"]) else "internal_error"}
    return {"result": reply.get("result")}


_ARRIVED: dict[str | None, Callable[[Call], Plain]] = {
    None: lambda call: {},
    "dropped": lambda call: {"drop": True},
    "refused": _refused,
}


def _cancels(recording: Recording) -> list[Plain]:
    """The turns say for themselves how they end when they are cancelled; the mock's own way would come between."""
    cancels = ("session/cancel", "$/cancel_request")
    return [{"at": method, "drop": True} for method in cancels if method in recording.notices]


def _points(recording: Recording) -> list[Plain]:
    faults = []
    for point, number, effects in recording.points:
        when = {} if number is None else {"when": nth(number)}
        faults.append({"at": point, **when, **effects})
    return faults
