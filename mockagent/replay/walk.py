"""Goes through a recording once, and says who said what: each message of the agent belongs to a request of the client.

That is the turn that runs in its session, else the request that is being answered there, else the last one that was.
Nothing is written here; `compose` makes a scenario of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from mockagent.replay.plain import LIFE, picked
from mockagent.replay.reading import Line, RecordingError, is_call, kind_of
from mockagent.replay.values import Values

PROMPT = "session/prompt"
OPENS_KNOWN = frozenset({"session/load", "session/resume"})
"""Requests for a session that was there before."""
MAKES = frozenset({"session/new", "session/fork"})
LATE = ("hold", "delay")
"""Effects that let an answer leave later than it was made."""


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
        arrived: `dropped` or `refused` before the mock has looked at it, as the journal says; None: it was handled.
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
    arrived: Literal["dropped", "refused"] | None = None
    copies: int = 1
    pieces: list[Piece] = []
    life: dict[str, Any] = {}

    @property
    def place(self) -> int | None:
        """Where in the pieces it was answered; None: it was not, or not yet."""
        return next((at for at, piece in enumerate(self.pieces) if piece.what == "replied"), None)


class Recording(msgspec.Struct, eq=False):
    """What compose needs.

    Attributes:
        calls: in the order in which they came.
        ended: the prompts in the order in which they were answered.
        notices: notifications of the client, method -> how many.
        stored: sessions that were there before -> the request that opened them.
        points: what happened at points in life.
        values: session ids and their names.
        left_out: what cannot be played again.
    """

    calls: list[Call] = []
    ended: list[Call] = []
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
    walker.settle()
    return walker.recording


class _Walker:
    def __init__(self) -> None:
        self.recording = Recording()
        self._open: dict[tuple[str, str], Call] = {}
        self._answered: dict[tuple[str, str], Call] = {}
        self._asked: dict[tuple[str, str], Piece] = {}
        self._owner_of_ask: dict[int, Call] = {}
        self._asks: list[Piece] = []
        self._running: dict[str | None, Call] = {}
        self._last: dict[str | None, Call] = {}
        self._latest: Call | None = None
        self._asking: Call | None = None
        self._numbers: dict[str, int] = {}
        self._known: set[str | None] = set()
        self._life: list[tuple[str, dict[str, Any]]] = []

    def take(self, line: Line) -> None:
        if line.event is not None:
            self._event(line)
            return
        self._asking = None
        if line.direction == "in":
            self._in(line)
        else:
            self._out(line)

    def settle(self) -> None:
        """What can be said only at the end."""
        for call in self.recording.calls:
            if call.method != PROMPT or call.arrived is not None:
                continue
            error = call.reply is not None and "error" in call.reply
            if not call.turn or (error and [piece.what for piece in call.pieces] == ["replied"]):
                call.turn = False  # nothing was played: it needs no turn, whoever refused it
                call.arrived = "dropped" if call.reply is None else "refused"
        self._number()

    def _number(self) -> None:
        """The mock counts its requests, and names their session; what the recording has in place of that is set."""
        answered = {id(piece.of) for call in self.recording.calls for piece in call.pieces if piece.of is not None}
        asked = [piece for piece in self._asks if id(piece) in answered]
        for number, piece in enumerate(asked):
            edit: list[dict[str, Any]] = []
            if piece.body["id"] != number:
                edit.append({"set": "/id", "to": piece.body["id"]})
            if "sessionId" not in piece.body["params"]:  # the mock adds it
                edit.append({"remove": "/params/sessionId"})
            if edit:
                piece.wire = {"edit": edit, **piece.wire}

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
        call.turn = method == PROMPT and session not in self._running and session in self._known
        self._heard(line, method, session)
        if call.turn:
            self._running[session] = self._last[session] = self._latest = call
        elif method in OPENS_KNOWN and session is not None and session not in self.recording.values.sessions:
            self.recording.stored.setdefault(session, body.get("params") or {})
            self.recording.values.stored.add(session)
        elif method == PROMPT:  # the mock refuses it at once, whatever the recording has
            self.recording.ended.append(call)
        self._open[line.peer, _key(body["id"])] = self._asking = call
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
        if line.unsent and ("method" in body or "id" not in body):
            return
        wire = line.wire | self._life_of(line.kind) | ({"drop": True} if line.unsent else {})
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
        """The request that a message of a session belongs to; without a session, the one that is nearest."""
        if session in self._running:
            return self._running[session]
        owning = (*OPENS_KNOWN, *MAKES, PROMPT)
        opening = [call for call in self._open.values() if call.method in owning and not (call.turn or call.arrived)]
        known = session is None or session in self._last
        fitting = [call for call in opening if call.session == session or (call.session is None and not known)]
        if session is None:
            fitting = opening
        if fitting and (session is not None or not self._running):
            return fitting[-1]
        if session in self._last:
            return self._last[session]
        return next(reversed(self._running.values()), None) or self._latest

    def _said(self, line: Line, owner: Call, wire: dict[str, Any]) -> None:
        kind = kind_of(line)
        body = self.recording.values.template(line.message if line.text is None else line.text, owner.session)
        asks = kind.startswith("request:") and is_call(line.message)
        piece = Piece("asked" if asks else "said", line.at, body, kind, {}, None, wire)
        owner.pieces.append(piece)
        if piece.what == "asked":
            self._asked[line.peer, _key(line.body["id"])] = piece
            self._owner_of_ask[id(piece)] = owner
            self._asks.append(piece)

    def _reply(self, line: Line, call: Call, wire: dict[str, Any]) -> None:
        result = line.body.get("result")
        if call.method in MAKES and isinstance(result, dict) and isinstance(result.get("sessionId"), str):
            call.session = result["sessionId"]
            self.recording.values.session(call.session)
            self._known.add(call.session)
        if call.method in OPENS_KNOWN and not call.arrived:
            self._known.add(call.session)
        call.raw_reply = line.body
        call.reply = self.recording.values.template(line.body, call.session)
        self._answered[line.peer, _key(line.body["id"])] = call
        if call.place is None:
            self._made(call, line.at, wire)
        else:  # it was kept back
            made = call.pieces[call.place]
            made.wire = {**wire, **made.wire}

    def _made(self, call: Call, at: float, wire: dict[str, Any]) -> None:
        """A request is answered, even if the answer leaves later."""
        call.pieces.append(Piece("replied", at, kind=f"reply:{call.method}", wire=wire))
        if call.turn:
            self._running.pop(call.session, None)
            self.recording.ended.append(call)
        elif call.method == PROMPT and call not in self.recording.ended:
            self.recording.ended.append(call)
        if call.method.startswith("session/") and call.session not in self._running and call.session is not None:
            self._last[call.session] = call
        self._latest = call

    # --- what else happened

    def _event(self, line: Line) -> None:
        if line.event == "restart":
            raise RecordingError("the mock was started anew in the middle of it; cut the recording there")
        does = line.does
        if not does:
            return
        on = str(line.detail.get("on", ""))
        if on.startswith(("reply:", "update:", "request:", "notify:", "raw")):
            if effects := picked(does, LIFE):
                self._life.append((on, effects))
            if on.startswith("reply:"):
                self._late(on[6:], line.at, does)
        elif (call := next((call for call in reversed(self.recording.calls) if call.method == on), None)) is not None:
            self._arrived(call, line.at, does)
        elif on not in self.recording.notices and (effects := picked(does, LIFE)):
            # a cancel that is ignored is dropped in any case
            self.recording.points.append((on, line.detail.get("nth"), effects))

    def _late(self, method: str, at: float, does: dict[str, Any]) -> None:
        """An answer was made, and kept back."""
        waiting = [call for call in self._open.values() if call.method == method and call.place is None]
        if waiting:
            self._keep_back(self._asking if self._asking in waiting else waiting[0], at, does)  # refused at once

    def _keep_back(self, call: Call, at: float, does: dict[str, Any]) -> None:
        late = picked(does, LATE)
        if "delay" in late and (call.pieces or call.method in OPENS_KNOWN):
            return  # what is said before it is late as well: the time tells
        if late and call.place is None:
            self._made(call, at, late)

    def _arrived(self, call: Call, at: float, does: dict[str, Any]) -> None:
        """What happened to a request before it was handled."""
        call.life = call.life | picked(does, LIFE)
        arrived: Literal["dropped", "refused"] | None = "dropped" if "drop" in does else None
        if "error" in does or "result" in does:
            arrived = "refused"
        if not call.turn:
            self._keep_back(call, at, does)
        if arrived is None or call.reply is not None:
            return
        call.arrived = arrived
        if call.turn:  # it starts none
            call.turn = False
            del self._running[call.session]

    def _life_of(self, kind: str) -> dict[str, Any]:
        """What was said to happen behind the next message of this kind, which is this one."""
        for entry in self._life:
            if entry[0] == kind:
                self._life.remove(entry)
                return entry[1]
        return {}


def _session(body: dict[str, Any]) -> str | None:
    params = body.get("params")
    session = params.get("sessionId") if isinstance(params, dict) else None
    return session if isinstance(session, str) else None


def _key(id: Any) -> str:
    return msgspec.json.encode(id).decode()
