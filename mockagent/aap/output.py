"""The script's `Output` over AAP: one for each stream mode, each the answer to one request.

A turn that has to ask ends its answer with `tool_use` and parks; the next request brings another output, and the turn
goes on there. Streamed text takes a fast path: pieces that come together leave as one burst.

Source: AAP endpoints page, response modes; page on tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mockagent.aap import kinds, render
from mockagent.aap.exchange import Exchange, delta
from mockagent.aap.transcript import Transcript, tool_content, tool_input
from mockagent.faults.interface import Drop
from mockagent.message import Message, Origin, Peer
from mockagent.script.output import (
    Admission,
    ClientTool,
    Fail,
    Info,
    Item,
    Need,
    Output,
    Permission,
    Raw,
    Stop,
    Surface,
    Text,
    Ticket,
    ToolCall,
    ToolUpdate,
    Wire,
)
from mockagent.world.sessions import Session

if TYPE_CHECKING:
    from mockagent.aap.roster import Served
    from mockagent.aap.turns import Turns
    from mockagent.script.prompt import Waiting
    from mockagent.script.run import Run

_PLENTY = 1024


class TurnOutput:
    """What all modes have in common.

    Args:
        turns: told when the turn parks.
        served: whose turn it is.
        session: where.
        exchange: the request that is answered.

    Attributes:
        ended: the answer is complete, or nobody takes it any more.
        turn: what plays here, or waits until it may.
    """

    def __init__(self, turns: Turns, served: Served, session: Session, exchange: Exchange) -> None:
        self.served = served
        self.session = session
        self.exchange = exchange
        self.ended = False
        self.turn: Run | Waiting | None = None
        self._turns = turns

    @property
    def room(self) -> int:
        """Room on the way to the client; none for the moment between its going and our noticing."""
        line = self.exchange.line
        return 0 if line.broken and not self.ended else line.room

    @property
    def peer(self) -> Peer:
        """The connection that the answer takes."""
        return self.exchange.peer

    def same_client(self, other: Output) -> bool:
        """Each answer is a client of its own: nothing but the answer leads to it."""
        mine: Output = self
        return other is mine

    def saw(self, event: str, session: str | None) -> None:
        """A point in the life of its turn, for faults."""
        if event in ("turn_started", "turn_ended") and session == self.session.id:
            self.exchange.point(event, session)

    # --- the answer

    def begin(self) -> None:
        """The turn has been accepted."""

    def emit(self, item: Item, origin: Origin) -> bool:
        """Sends an item as AAP has it. Behind the end only what a fault plays is sent."""
        if self.ended and origin != "fault":
            return False
        return _EMIT[type(item)](self, item, origin)

    def parked(self, open: Sequence[Ticket]) -> None:
        """The client has to do something before the turn goes on: the answer ends, the turn stays."""
        if not self.ended:
            self._turns.park(self, open)
            self._close(Stop("tool_use"))

    def end(self, how: Stop | Fail) -> None:
        """The turn has ended."""
        if not self.ended:
            self._close(how)

    def _close(self, how: Stop | Fail) -> None:
        self.ended = True
        if isinstance(how, Stop):
            self._stop(render.stop_reason(how.reason))
        else:
            self._fail(how.error)
        self.exchange.finish()

    def _stop(self, reason: str) -> None:
        raise NotImplementedError

    def _fail(self, error: Any) -> None:
        raise NotImplementedError

    def left(self) -> None:
        """The client has gone: its turn is cancelled, unless a fault makes the agent miss that."""
        if self.ended:
            return
        self.ended = True
        self._turns.left(self)

    def misses_cancel(self) -> bool:
        """Whether a fault keeps the agent from seeing that the client has gone."""
        peer, session = self.exchange.peer, self.session.id
        message = Message("cancel", None, peer, neutral="cancel", session=session, method="cancel")
        return any(isinstance(act, Drop) for act in self.exchange.backstage.faults.arriving(message))

    # --- items

    def _text(self, item: Text, origin: Origin) -> bool:
        raise NotImplementedError

    def _tool_call(self, item: ToolCall, origin: Origin) -> bool:
        raise NotImplementedError

    def _tool_result(self, id: str, content: Any, origin: Origin) -> None:
        raise NotImplementedError

    def _tool_update(self, item: ToolUpdate, origin: Origin) -> bool:
        """Only results are told: of server-side tools, if they ran."""
        if not item.final or item.denied is not None:
            return True
        call = self.session.history.find(item.id)
        if call is None or call.side == "server":
            self._tool_result(item.id, tool_content(item.result), origin)
        return True

    def _raw(self, item: Raw, origin: Origin) -> bool:
        return False

    def _wire(self, item: Wire, origin: Origin) -> bool:
        self.exchange.out.wire(item, self.session.id)
        return True

    def _unsayable(self, item: Item, origin: Origin) -> bool:
        return False

    # --- questions

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """Source: page on tools: what is not listed runs inline; what is listed only if the session enabled it."""
        if tool.side == "client":
            declared = tool.name in self.session.client_tools and self.served.capabilities.client_tools
            return Admission.INLINE if declared else Admission.SKIP
        if tool.listed is False or tool.name not in self.served.tools:
            return Admission.INLINE
        trust = self.session.tools.get(tool.name)
        if trust is None:
            return Admission.SKIP
        return Admission.INLINE if trust else Admission.ASK

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        """A permission needs a call that was shown; a client-side tool was shown by then. All else is ACP's."""
        if isinstance(need, Permission):
            return self.session.history.find(need.tool.id) is not None
        return isinstance(need, ClientTool)

    def withdraw(self, ticket: Ticket) -> None:
        """There is nothing to tell: what was called for is not pending any more."""


class StreamOutput(TurnOutput):
    """What both streams have in common."""

    def begin(self) -> None:
        """The head of the answer, and `turn_start`."""
        self.exchange.open_stream()
        self.exchange.event("turn_start", {}, "turn")

    def _stop(self, reason: str) -> None:
        self._flush("turn")
        self.exchange.event("turn_stop", {"stopReason": reason}, "turn")

    def _fail(self, error: Any) -> None:
        """Before the stream has begun an error is a reply; afterwards only `turn_stop` can tell."""
        if self.exchange.streaming:
            self.exchange.backstage.note("turn_failed", self.exchange.peer, self.session.id, error=error)
            self._stop("error")
        else:
            self.exchange.fail(error)

    def _flush(self, origin: Origin) -> None:
        """Sends what was still being said."""

    def _tool_call(self, item: ToolCall, origin: Origin) -> bool:
        self.exchange.event(
            "tool_call",
            {"toolCallId": item.id, "name": item.name or item.id, "input": tool_input(item.input)},
            origin,
        )
        return True

    def _tool_result(self, id: str, content: Any, origin: Origin) -> None:
        self.exchange.event("tool_result", {"toolCallId": id, "content": content}, origin)

    def _raw(self, item: Raw, origin: Origin) -> bool:
        if item.verb != "send":
            return False
        self.exchange.raw(item.payload, origin)
        return True


class DeltaOutput(StreamOutput):
    """`stream: delta`: text as it comes."""

    def _text(self, item: Text, origin: Origin) -> bool:
        name = kinds.DELTAS.get(item.role)
        if name is None:
            return False
        texts = [words for part in item.parts if (words := _words(part)) is not None]
        if len(texts) == 1:
            self.exchange.event(name, {"delta": texts[0]}, origin)
        elif texts:
            self.exchange.events(name, [delta(text) for text in texts], origin)
        return len(texts) == len(item.parts)


class MessageOutput(StreamOutput):
    """`stream: message`: each message when it is complete."""

    def __init__(self, turns: Turns, served: Served, session: Session, exchange: Exchange) -> None:
        super().__init__(turns, served, session, exchange)
        self._begun: dict[tuple[str, str | None], list[str]] = {}

    def _text(self, item: Text, origin: Origin) -> bool:
        name = kinds.WHOLES.get(item.role)
        if name is None:
            return False
        key = (item.role, item.message_id)
        texts = [words for part in item.parts if (words := _words(part)) is not None]
        said = self._begun.setdefault(key, [])
        said += texts
        if item.ends:
            del self._begun[key]
            self._say(name, said, origin)
        return len(texts) == len(item.parts)

    def _say(self, name: str, said: list[str], origin: Origin) -> None:
        if said:
            self.exchange.event(name, {name: "".join(said)}, origin)

    def _flush(self, origin: Origin) -> None:
        begun, self._begun = self._begun, {}
        for (role, _), said in begun.items():
            self._say(kinds.WHOLES[role], said, origin)


class WholeOutput(TurnOutput):
    """`stream: none`: one JSON at the end."""

    def __init__(self, turns: Turns, served: Served, session: Session, exchange: Exchange) -> None:
        super().__init__(turns, served, session, exchange)
        self._made = Transcript()

    @property
    def room(self) -> int:
        """Nothing is sent before the end."""
        return _PLENTY

    def _stop(self, reason: str) -> None:
        self.exchange.answer_turn({"stopReason": reason, "messages": self._made.messages()})

    def _fail(self, error: Any) -> None:
        self.exchange.fail(error)

    def _text(self, item: Text, origin: Origin) -> bool:
        if item.role not in kinds.WHOLES:
            return False
        self._made.say(item.role, item.parts, item.message_id, starts=item.starts)
        return True

    def _tool_call(self, item: ToolCall, origin: Origin) -> bool:
        self._made.call(item.id, item.name, item.input)
        return True

    def _tool_result(self, id: str, content: Any, origin: Origin) -> None:
        self._made.result(id, content)


class Bystander:
    """An answer as a member of the session's audience: it carries what others play there, but never their turns."""

    def __init__(self, output: TurnOutput) -> None:
        self._output = output

    @property
    def room(self) -> int:
        """The answer's."""
        return self._output.room

    @property
    def peer(self) -> Peer:
        """The answer's."""
        return self._output.peer

    def same_client(self, other: Output) -> bool:
        """Whether it stands for that answer."""
        return other is self._output or (isinstance(other, Bystander) and other._output is self._output)

    def emit(self, item: Item, origin: Origin) -> bool:
        """Hands on what belongs to no turn."""
        return origin != "turn" and self._output.emit(item, origin)

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """See `TurnOutput`."""
        return self._output.admit(tool, ask)

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        """Only a turn can wait for a client."""
        return False

    def withdraw(self, ticket: Ticket) -> None:
        """Nothing was asked."""

    def parked(self, open: Sequence[Ticket]) -> None:
        """Concerns turns."""

    def end(self, how: Stop | Fail) -> None:
        """Concerns turns."""


OUTPUTS: dict[str, type[TurnOutput]] = {"delta": DeltaOutput, "message": MessageOutput, "none": WholeOutput}
"""Stream mode to output."""


def _words(part: Any) -> str | None:
    """What a stream can say of a part: its text."""
    words = part if isinstance(part, str) else part.get("text")
    return words if isinstance(words, str) else None


_EMIT: dict[type, Callable[[TurnOutput, Any, Origin], bool]] = {
    Text: lambda out, item, origin: out._text(item, origin),
    ToolCall: lambda out, item, origin: out._tool_call(item, origin),
    ToolUpdate: TurnOutput._tool_update,
    Raw: lambda out, item, origin: out._raw(item, origin),
    Wire: TurnOutput._wire,
    Info: TurnOutput._unsayable,
    Surface: TurnOutput._unsayable,
}
