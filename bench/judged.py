"""How a run of a client is judged: one of four outcomes, and whether a right client would have done the same.

Works on what was written down alone, and runs nothing: what the client said of itself (`bench/drivers`), the journal of
mockagent, its verdict, and how the client's process ended.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

from mockagent.watch.audit import HARMLESS

Line = dict[str, Any]

HANDLED, SHOWN, HANGS, CRASHES, UNMET = "handled", "error shown", "hangs", "crashes", "not met"
SPOILS = frozenset({"newline", "truncate", "bytes"})
"""Damage that may reach the message behind."""
AT_ONCE = 1.0
"""Seconds in which a client has to give up what is pending once the connection is gone."""

STAGES = {"set-up": ("initialize",), "lists": ("session/list", "session/prompt"), "sessions": (), "http": ("AAP",)}
"""folder -> what the client has to ask before the trouble of a scenario without faults is met; else a prompt."""
GIVES_UP = frozenset({"websocket/ws-invalid-utf8"})
"""Where a right client has to fail the connection, whatever was answered on it."""
_OLD = ("session/load", "session/resume", "session/close", "session/delete", "session/list")


class Run(NamedTuple):
    """What was seen of one client in one scenario.

    Attributes:
        scenario: its name.
        faulty: whether it has faults (else its steps are the trouble).
        events: what the client said of itself, in order.
        journal: of the mock.
        verdict: of the mock; None when it wrote none.
        status: of the client's process; None when it had to be killed.
    """

    scenario: str
    faulty: bool
    events: list[Line]
    journal: list[Line]
    verdict: Line | None
    status: int | None


class Outcome(NamedTuple):
    """What became of it.

    Attributes:
        word: one of the words above.
        right: whether a right client would have done the same.
        why: what was wrong, or the first error shown.
    """

    word: str
    right: bool
    why: str


def judge(run: Run) -> Outcome:
    """The outcome of a run."""
    if not _met(run):
        return Outcome(UNMET, True, "")
    if run.status is None:
        return Outcome(HANGS, False, "had to be killed")
    if not any(event.get("end") is True for event in run.events):
        return Outcome(CRASHES, False, f"ended with {run.status}")
    hung, wrong, errors = _calls(run)
    if hung:
        return Outcome(HANGS, False, hung[0])
    wrong += _verdict(run) + ([] if run.scenario in GIVES_UP else _text(run))
    word = SHOWN if errors else HANDLED
    return Outcome(word, not wrong, wrong[0] if wrong else errors[0] if errors else "")


def _met(run: Run) -> bool:
    """Whether the trouble came about; a run in which it did not tells nothing."""
    if run.faulty:
        return any(line.get("event") == "fault" for line in run.journal)
    folder = run.scenario.partition("/")[0]
    stages = STAGES.get(folder, ("session/prompt",)) or _OLD
    return any(line.get("direction") == "in" and line.get("kind") in stages for line in run.journal)


# --- calls


class _Answer(NamedTuple):
    """What the mock said to a request."""

    whole: bool
    """It left, undamaged."""
    error: bool
    at: float
    """Seconds since the epoch."""
    broken: bool
    """Its bytes left, and are no message any more."""


def _calls(run: Run) -> tuple[list[str], list[str], list[str]]:
    """What hung, which errors were wrong, and which errors there were."""
    hung: list[str] = []
    wrong: list[str] = []
    errors: list[str] = []
    gone = _gone(run)
    answers = _answers(run.journal)
    seen: Counter[str] = Counter()
    excused = (
        gone is not None
        or any(line.get("event") == "fault" for line in run.journal)
        or any(answer is None or answer.error or not answer.whole for given in answers.values() for answer in given)
    )
    for event in run.events:
        if "refused" in event:
            errors.append(event["refused"])
        if "call" not in event:
            continue
        name, end, why = event["call"], event["end"], event.get("why", "")
        place = seen[name]
        seen[name] += 1
        if name == "session/cancel":  # a notification: nothing answers it
            continue
        given = answers.get(name, [])
        answer = given[place] if place < len(given) else None
        usable = answer is not None and answer.whole
        if end == "pending" and usable and answer is not None and answer.at < event["at"] - AT_ONCE / 2:
            hung.append(f"{name} was answered, and stayed open")
        elif end == "pending" and answer is not None and answer.broken:
            hung.append(f"{name} stayed open when its answer could not be read")
        elif end == "pending" and gone is not None and event["at"] > gone + AT_ONCE:
            hung.append(f"{name} stayed open when the connection was gone")
        elif end == "error":
            errors.append(f"{name}: {why}")
            refused = answer is not None and answer.error
            if run.scenario not in GIVES_UP and ((usable and not refused) or not (given or excused)):
                wrong.append(f"{name} failed though it was answered: {why}")
    return hung, wrong, errors


def _answers(journal: list[Line]) -> dict[str, list[_Answer | None]]:
    """method -> what each request of it was answered, in their order; None for nothing."""
    asked: dict[str, list[tuple[Any, Any]]] = {}
    replies: dict[tuple[Any, Any], _Answer] = {}
    for line in journal:
        message = line.get("message")
        if not isinstance(message, dict) or "id" not in message:
            continue
        key = (line.get("peer"), message["id"])
        if line["direction"] == "in" and "method" in message:
            asked.setdefault(message["method"], []).append(key)
        elif line["direction"] == "out" and "method" not in message:
            replies.setdefault(key, _Answer(whole(line), "error" in message, seconds(line), _broken(line)))
    return {method: [replies.get(key) for key in keys] for method, keys in asked.items()}


def whole(line: Line) -> bool:
    """Whether a message left as it should have, or so that a right client reads it all the same."""
    damage = set(line.get("damaged", ())) - HARMLESS
    wire = mapping(line.get("wire"))
    if "newline" in damage and wire.get("newline") != "none":
        damage.remove("newline")
    around = mapping(wire.get("bytes"))
    if "bytes" in damage and all(str(around.get(place, "\n")).endswith("\n") for place in ("before", "after")):
        damage.remove("bytes")  # lines of their own
    return line.get("fate", "intact") == "intact" or (line["fate"] == "damaged" and "damaged" in line and not damage)


def _broken(line: Line) -> bool:
    return line.get("fate") == "damaged" and not whole(line) and not SPOILS.isdisjoint(line.get("damaged", ()))


def readable(journal: list[Line]) -> list[Line]:
    """What left whole and has a line of its own: not what stands behind a message whose line does not end."""
    found: list[Line] = []
    spoilt = False
    for line in journal:
        if line.get("direction") == "out":
            if whole(line) and not spoilt:
                found.append(line)
            spoilt = _broken(line)
    return found


def _gone(run: Run) -> float | None:
    """When the agent was gone, in seconds since the epoch; None if the client left first."""
    over = seconds(run.journal[-1]) if run.journal else None
    calls = [event["at"] for event in run.events if "call" in event]
    for event in run.events:
        if event.get("left") is not None:
            return over if over is not None else event["at"] - AT_ONCE
    for line in run.journal:
        if line.get("event") in ("eof", "signal"):
            return None
        if line.get("event") == "fault" and {"exit", "disconnect"} & set(line["detail"].get("effects", ())):
            return seconds(line)
        if line.get("event") == "closed":
            return seconds(line) if calls and seconds(line) < calls[-1] else None
    return None


def seconds(line: Line) -> float:
    """The time of a line of a journal, since the epoch."""
    return datetime.fromisoformat(line["time"]).timestamp()


# --- text


def _text(run: Run) -> list[str]:
    """Text that left whole and was not shown, or not before its turn settled."""
    ours = _sessions(run.journal)
    left = next((event["at"] for event in reversed(run.events) if "at" in event), 0.0)
    left = min([left, *(seconds(line) for line in run.journal if line.get("event") in ("eof", "signal", "closed"))])
    sent: dict[str, list[str]] = {}
    for line in readable(run.journal):
        text = chunk(line)
        if text is not None and line.get("session") in ours and seconds(line) < left - 0.1:
            sent.setdefault(line["session"], []).append(text)
    for session, texts in sent.items():
        said = iter([event["said"] for event in run.events if event.get("session") == session and "said" in event])
        for number, text in enumerate(texts, 1):
            if not any(text == other for other in said):
                return [f"text was lost, or came out of order: {text[:40]!r}, {number} of {len(texts)}"]
    return _late(run)


def _late(run: Run) -> list[str]:
    """Text that was sent before the reply of its prompt, and shown behind it."""
    settled = [place for place, event in enumerate(run.events) if event.get("call") == "session/prompt"]
    replies = [place for place, line in enumerate(run.journal) if line.get("kind") == "reply:session/prompt"]
    if not settled or not replies or run.events[settled[0]]["end"] != "ok":
        return []
    ours = _sessions(run.journal)
    before = [line for line in readable(run.journal[: replies[0]]) if line.get("session") in ours]
    wanted = Counter(text for text in map(chunk, before) if text is not None)
    shown = Counter(event["said"] for event in run.events[: settled[0]] if "said" in event)
    late = sum((wanted - shown).values())
    return [f"{late} pieces of text came when the turn had settled"] if late else []


def _sessions(journal: list[Line]) -> set[str]:
    """The sessions that the client has made or asked for."""
    found = set()
    for line in journal:
        message = line.get("message")
        if isinstance(message, dict) and line["direction"] == "in" and isinstance(message.get("params"), dict):
            found.add(message["params"].get("sessionId"))
    return found - {None}


def chunk(line: Line) -> str | None:
    """The text of a piece of the agent's message; None for anything else."""
    if line.get("direction") != "out" or line.get("kind") != "update:agent_message_chunk":
        return None
    try:
        content = line["message"]["params"]["update"]["content"]
        return content["text"] if content["type"] == "text" else None
    except (KeyError, TypeError):
        return None


# --- rules


def _verdict(run: Run) -> list[str]:
    """What the mock itself has to say."""
    if run.verdict is None:
        return []
    broken = [f"broke {breach['rule']}: {breach['why']}" for breach in run.verdict["breaches"]]
    missed = [entry for entry in run.verdict["expectations"] if not entry["met"]]
    return broken + [f"expected {entry['expectation']}: {entry['why']}" for entry in missed]


# --- acpx

ASKS = ("initialize", "authenticate", *(f"session/{what}" for what in ("new", "load", "resume", "list", "prompt")))
DENIED = 5
"""Exit status of acpx when a permission was not granted; no error of its own."""


def from_acpx(printed: list[Line], status: int | None, complaint: str, at: float) -> list[Line]:
    """The events of a run of acpx, which prints every message in both directions.

    Args:
        printed: the messages.
        status: of the process.
        complaint: the last words on stderr.
        at: when it was over, in seconds since the epoch.
    """
    events: list[Line] = []
    ours: dict[Any, str] = {}
    theirs: set[Any] = set()
    for message in printed:
        params = mapping(message.get("params"))
        update = mapping(params.get("update"))
        text = mapping(update.get("content")).get("text")
        if "method" in message and "id" in message:
            if message["method"] in ASKS:
                ours[message["id"]] = message["method"]
            else:
                theirs.add(message["id"])
        elif "method" not in message and message.get("id") in theirs:  # the ids of both sides may be the same
            theirs.remove(message["id"])
        elif "method" not in message and message.get("id") in ours:
            end = "error" if "error" in message else "ok"
            why = str(mapping(message.get("error")).get("message", ""))
            events.append({"call": ours.pop(message["id"]), "end": end, "why": why, "at": at})
        elif update.get("sessionUpdate") == "agent_message_chunk" and text is not None:
            events.append({"said": text, "session": params.get("sessionId")})
    for method in ours.values():
        events.append({"call": method, "end": "error" if status else "ok", "why": complaint, "at": at})
    if status not in (None, 0, DENIED) and not any(event.get("end") == "error" for event in events):
        events.append({"call": "acpx", "end": "error", "why": f"exit status {status}. {complaint}".strip(), "at": at})
    crashed = status is None or status < 0 or (status > 0 and "Node.js v" in complaint)  # how an uncaught error ends
    return events if crashed else [*events, {"end": True, "at": at}]


def mapping(value: Any) -> Line:
    """A value that should be an object; an empty one if it is none."""
    return value if isinstance(value, dict) else {}
