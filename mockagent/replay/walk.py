"""Goes through a recording once, and says who said what: each message of the agent belongs to a request of the client.

That is the turn that runs in its session, else the request that is being answered there, else the last one that was.
Nothing is written here; `compose` makes a scenario of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from mockagent.replay.reading import Line, RecordingError, kind_of
from mockagent.replay.values import Values

PROMPT = "session/prompt"
OPENS_KNOWN = frozenset({"session/load", "session/resume"})
"""Requests for a session that was there before."""
MAKES = frozenset({"session/new", "session/fork"})
LIFE = ("stderr", "disconnect", "exit", "stall", "ignore")
"""Effects that leave no trace in the messages."""


class Piece(msgspec.Struct, eq=False):
    """Something that happened while, or after, a request was answered.

    Attributes:
        what: `said`: a message; `asked`: a request of the agent; `answered`: the answer to that one (`of`);
            `heard`: the client said something; `replied`: the request was answered.
        body: what is written for it: the template of the message, the method that was heard.
        kind: of the message, when it is played again.
        saves: what is kept of the answer.
        wire: what happens to its bytes, and behind it.
    """

    what: Literal["said", "asked", "answered", "heard", "replied"]
    at: float
    body: Any = None
    kind: str = ""
    saves: dict[str, str] = {}
    of: Piece | None = None
    wire: dict[str, Any] = {}


class Call(msgspec.Struct, eq=False):
    """A request of the client.

    Attributes:
        number: which of its method it is, from 1.
        turn: it starts a turn; a prompt while another one runs does not.
        reply: the template of what answered it; None: nothing did.
        count: which reply of its method that is, when it is played again.
        copies: how often it left, in all.
        life: what happened to the process or the connection as it came.
    """

    method: str
    number: int
    at: float
    session: str | None
    turn: bool = False
    reply: dict[str, Any] | None = None
    raw_reply: Any = None
    copies: int = 1
    pieces: list[Piece] = []
    life: dict[str, Any] = {}


class Recording(msgspec.Struct, eq=False):
    """What compose needs.

    Attributes:
        calls: in the order in which they came.
        replied: the calls in the order in which they were answered.
        notices: notifications of the client, method -> how many.
        stored: sessions that were there before -> the request that opened them.
        points: what happened at points in life.
        values: session ids and their names.
        left_out: what cannot be played again.
    """

    calls: list[Call] = []
    replied: list[Call] = []
    notices: dict[str, int] = {}
    stored: dict[str, dict[str, Any]] = {}
    points: list[tuple[str, int | None, dict[str, Any]]] = []
    values: Values = msgspec.field(default_factory=Values)
    left_out: list[str] = []


def walk(lines: Iterable[Line]) -> Recording:
    """Goes through the lines."""
    walker = _Walker()
    for line in lines:
        walker.take(line)
    return walker.recording


class _Walker:
    def __init__(self) -> None:
        self.recording = Recording()
        self._open: dict[tuple[str, str], Call] = {}
        self._answered: dict[tuple[str, str], Call] = {}
        self._asked: dict[tuple[str, str], Piece] = {}
        self._owner_of_ask: dict[int, Call] = {}
        self._running: dict[str | None, Call] = {}
        self._last: dict[str | None, Call] = {}
        self._latest: Call | None = None
        self._numbers: dict[str, int] = {}
        self._life: list[tuple[str, dict[str, Any]]] = []

    def take(self, line: Line) -> None:
        if line.event is not None:
            self._event(line)
        elif line.direction == "in":
            self._in(line)
        else:
            self._out(line)

    # --- what the client says

    def _in(self, line: Line) -> None:
        for member in line.message if isinstance(line.message, list) else [line.message]:
            if not isinstance(member, dict):
                continue
            if not isinstance(member.get("method"), str):
                self._answer(line, member)
            elif "id" in member:
                self._request(line, member)
            else:
                self._notice(line, member)

    def _request(self, line: Line, body: dict[str, Any]) -> None:
        method, session = body["method"], _session(body)
        number = self._numbers[method] = self._numbers.get(method, 0) + 1
        call = Call(method=method, number=number, at=line.at, session=session, pieces=[], life={})
        call.turn = method == PROMPT and session not in self._running
        self._heard(line, method, session)
        if call.turn:
            self._running[session] = self._last[session] = self._latest = call
        elif method in OPENS_KNOWN and session is not None and session not in self.recording.values.sessions:
            self.recording.stored.setdefault(session, body.get("params") or {})
        self._open[line.peer, _key(body["id"])] = call
        self.recording.calls.append(call)

    def _notice(self, line: Line, body: dict[str, Any]) -> None:
        method = body["method"]
        self.recording.notices[method] = self.recording.notices.get(method, 0) + 1
        self._heard(line, method, _session(body))

    def _heard(self, line: Line, method: str, session: str | None) -> None:
        owner = self._running.get(session) or self._last.get(session)
        if owner is not None and session is not None:
            owner.pieces.append(Piece("heard", line.at, method))

    def _answer(self, line: Line, body: dict[str, Any]) -> None:
        asked = self._asked.pop((line.peer, _key(body.get("id"))), None)
        if asked is None:
            return
        self._owner_of_ask.pop(id(asked)).pieces.append(Piece("answered", line.at, of=asked))
        self.recording.values.answered(body.get("result"), asked.saves)

    # --- what the agent says

    def _out(self, line: Line) -> None:
        body = line.body
        wire = line.wire | self._life_of(line.kind)
        if line.text is None and body and "method" not in body and "id" in body:
            call = self._open.pop((line.peer, _key(body["id"])), None)
            if call is not None:
                self._reply(line, call, wire)
                return
            twin = self._answered.get((line.peer, _key(body["id"])))
            if twin is not None and twin.raw_reply == body and twin.pieces[-1].what == "replied":
                twin.copies += 1
                return
        session = _session(body)
        owner = self._owner(session)
        if owner is None:
            self.recording.left_out.append(f"{kind_of(line)} came before any request that it could belong to")
            return
        self._said(line, owner, wire)

    def _owner(self, session: str | None) -> Call | None:
        """The request that a message of a session belongs to."""
        if session in self._running:
            return self._running[session]
        opening = [call for call in self._open.values() if not call.turn and call.method != "initialize"]
        fitting = [call for call in opening if session is not None and call.session in (session, None)]
        if fitting and fitting[-1].method.startswith("session/"):
            return fitting[-1]
        if session in self._last:
            return self._last[session]
        return next(reversed(self._running.values()), None) or self._latest

    def _said(self, line: Line, owner: Call, wire: dict[str, Any]) -> None:
        kind = kind_of(line)
        home = _home(owner)
        if line.text is not None:
            body: Any = self.recording.values.template(line.text, home)
        else:
            body = self.recording.values.template(line.message, home)
        piece = Piece("asked" if kind.startswith("request:") else "said", line.at, body, kind, {}, wire=wire)
        owner.pieces.append(piece)
        if piece.what == "asked":
            self._asked[line.peer, _key(line.body["id"])] = piece
            self._owner_of_ask[id(piece)] = owner

    def _reply(self, line: Line, call: Call, wire: dict[str, Any]) -> None:
        result = line.body.get("result")
        if call.method in MAKES and isinstance(result, dict) and isinstance(result.get("sessionId"), str):
            call.session = result["sessionId"]
            self.recording.values.session(call.session)
        call.raw_reply = line.body
        call.reply = self.recording.values.template(line.body, _home(call))
        call.pieces.append(Piece("replied", line.at, kind=f"reply:{call.method}", wire=wire))
        self.recording.replied.append(call)
        self._answered[line.peer, _key(line.body["id"])] = call
        if call.turn:
            self._running.pop(call.session, None)
        if call.method.startswith("session/") and call.session not in self._running and call.session is not None:
            self._last[call.session] = call
        self._latest = call

    # --- what else happened

    def _event(self, line: Line) -> None:
        does = line.detail.get("does")
        if line.event == "restart":
            raise RecordingError("the mock was started anew in the middle of it; cut the recording there")
        if line.event != "fault" or not isinstance(does, dict) or line.detail.get("what") != "fired":
            return
        effects = {name: does[name] for name in LIFE if name in does}
        on = str(line.detail.get("on", ""))
        if not effects or "cancel" in effects.get("ignore", ()):
            return
        if on.startswith(("reply:", "update:", "request:", "notify:", "raw")):
            self._life.append((on, effects))
        elif (call := next((call for call in reversed(self.recording.calls) if call.method == on), None)) is not None:
            call.life = call.life | effects
        else:
            self.recording.points.append((on, line.detail.get("nth"), effects))

    def _life_of(self, kind: str) -> dict[str, Any]:
        """What was said to happen behind the next message of this kind, which is this one."""
        for entry in self._life:
            if entry[0] == kind:
                self._life.remove(entry)
                return entry[1]
        return {}


def _home(call: Call) -> str | None:
    return call.session


def _session(body: dict[str, Any]) -> str | None:
    params = body.get("params")
    session = params.get("sessionId") if isinstance(params, dict) else None
    return session if isinstance(session, str) else None


def _key(id: Any) -> str:
    return msgspec.json.encode(id).decode()
