"""Rules about tool calls of AAP: behind `tool_use`, a client answers all calls that wait, all in one request."""

from __future__ import annotations

from typing import Any, Final

from mockagent.aap.rules.book import CREATE, REMEMBERED, RULES, TURN, named, status
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import Check, got, sent
from mockagent.watch.shown import Shown

RESOLVING: Final = "tool-call#client"


class Session:
    """What is known of the calls of one session.

    Attributes:
        whole: all of its calls are known, because it was made here.
        mine: names of the client's own tools, None when they are not known.
        called: calls of the turn that plays, by id: the event, and the name of the tool.
        waiting: those that wait since the last `tool_use`.
        ever: ids of all calls that there were and that no result has closed on the server.
    """

    def __init__(self, mine: set[str] | None) -> None:
        self.whole = mine is not None
        self.mine = mine
        self.called: dict[str, tuple[Shown, str]] = {}
        self.waiting: dict[str, tuple[Shown, str]] = {}
        self.ever: set[str] = set()


class Calls(Check):
    """Knows which calls wait. A client may leave a stream before it has read what waits, so only requests that answer
    something are judged. A session of which something left damaged is not judged any more."""

    def start(self) -> None:
        self.sessions: dict[str, Session | None] = {}
        self.creating: dict[tuple[str, Any], Any] = {}
        self.overriding: dict[tuple[str, Any], set[str]] = {}

    def state_of(self, id: str | None) -> Session | None:
        """A session's state; None: it is not judged."""
        if id is None:
            return None
        if id not in self.sessions:
            self._put(id, Session(None))
        return self.sessions[id]

    def _put(self, id: str, session: Session | None) -> None:
        if len(self.sessions) >= REMEMBERED:
            del self.sessions[next(iter(self.sessions))]
        self.sessions[id] = session

    def damaged(self, message: Message) -> None:
        if message.session is not None:
            self._put(message.session, None)

    # --- what was said

    @got(CREATE)
    def creates(self, message: Message) -> None:
        if len(self.creating) >= REMEMBERED:
            self.creating.clear()
        self.creating[message.peer.id, message.id] = message.data

    @sent("reply:POST /sessions")
    def created(self, message: Message) -> None:
        body = self.creating.pop((message.peer.id, message.id), None)
        id = at(message.data, "sessionId")
        if isinstance(id, str) and isinstance(body, dict):
            session = Session(set(named(body.get("tools"))))
            for said in items(body.get("messages")):
                session.ever |= {at(block, "toolCallId") for block in items(at(said, "content"))}
            self._put(id, session)

    @sent("event:tool_call")
    def call(self, message: Message) -> None:
        self._called(message, message.data)

    @sent("event:tool_result")
    def inline(self, message: Message) -> None:
        self._resulted(message, message.data)

    @sent("event:turn_stop")
    def stopped(self, message: Message) -> None:
        self._stopped(message, message.data)

    @sent("reply:POST /sessions/*/turns")
    def answered(self, message: Message) -> None:
        mine = self.overriding.pop((message.peer.id, message.id), None)
        session = self.state_of(message.session)
        if session is None or status(message) != 200:
            return
        if mine is not None:
            session.mine = mine
        for said in items(at(message.data, "messages")):
            for block in items(at(said, "content")):
                if at(block, "type") == "tool_use":
                    self._called(message, block)
            if at(said, "role") == "tool":
                self._resulted(message, said)
        if isinstance(message.data, dict):
            self._stopped(message, message.data)

    def _called(self, message: Message, call: Any) -> None:
        session, id = self.state_of(message.session), at(call, "toolCallId")
        if session is not None and isinstance(id, str):
            session.called[id] = (self.keep(message), str(at(call, "name")))
            session.ever.add(id)

    def _resulted(self, message: Message, result: Any) -> None:
        session, id = self.state_of(message.session), at(result, "toolCallId")
        if session is not None and session.called.pop(id, None) is not None:
            session.ever.discard(
                id
            )  # run inline; the result of a call of an earlier turn comes from the client's leave

    def _stopped(self, message: Message, end: Any) -> None:
        session = self.state_of(message.session)
        if session is not None:
            session.waiting = session.called if at(end, "stopReason") == "tool_use" else {}
            session.called = {}

    # --- what is answered

    @got(TURN)
    def answers(self, message: Message) -> None:
        if isinstance(at(message.data, "tools"), list):
            if len(self.overriding) >= REMEMBERED:
                self.overriding.clear()
            self.overriding[message.peer.id, message.id] = set(named(message.data["tools"]))
        session = self.state_of(message.session)
        given = {
            one["toolCallId"]: one
            for one in items(at(message.data, "messages"))
            if isinstance(at(one, "toolCallId"), str)
        }
        if session is not None and given:
            self.judge(message, session, given)

    def judge(self, message: Message, session: Session, given: dict[str, Any]) -> None:
        """Looks at a request that answers calls."""
        raise NotImplementedError


@RULES.rule(
    "AAP-TOOLS-01",
    "MUST",
    "A client that answers calls behind tool_use answers all that wait, in one request.",
    source=f"{RESOLVING}; response#tool_call",
    scope="process",
)
class AnswersAllCalls(Calls):
    def judge(self, message: Message, session: Session, given: dict[str, Any]) -> None:
        if not session.waiting:
            return
        missing = [id for id in session.waiting if id not in given]
        if missing:
            self.broken(f"nothing was said about {', '.join(missing)}", session.waiting[missing[0]][0], message)
        else:
            self.met()
            session.waiting = {}


@RULES.rule(
    "AAP-TOOLS-02",
    "MUST",
    "Only calls are answered that the agent has made, and that have no result from the server.",
    source=RESOLVING,
    scope="process",
)
class AnswersOnlyCalls(Calls):
    """Judged in sessions that were made here: of others, a history may hold more calls."""

    def judge(self, message: Message, session: Session, given: dict[str, Any]) -> None:
        if not session.whole:
            return
        others = [id for id in given if id not in session.ever]
        if others:
            self.broken(f"{word(others[0])} does not wait for anything", message)
        else:
            self.met()


@RULES.rule(
    "AAP-TOOLS-03",
    "MUST",
    "A call of a client-side tool gets its result, a call of a server-side tool gets a permission.",
    source=f"{RESOLVING}; response#tool_call",
    scope="process",
)
class AnswersInKind(Calls):
    def judge(self, message: Message, session: Session, given: dict[str, Any]) -> None:
        if session.mine is None:
            return
        for id, (call, name) in session.waiting.items():
            if id not in given:
                continue
            right = "tool" if name in session.mine else "tool_permission"
            if given[id].get("role") == right:
                self.met()
            else:
                self.broken(f"{word(id)} got a message of role {word(given[id].get('role'))}", call, message)
        session.waiting = {}


@RULES.rule(
    "AAP-TOOLS-04",
    "MUST",
    "A request answers each call once.",
    source=RESOLVING,
)
class AnswersEachOnce(Check):
    @got(TURN)
    def posted(self, message: Message) -> None:
        ids = [id for one in items(at(message.data, "messages")) if isinstance(id := at(one, "toolCallId"), str)]
        twice = [id for id in ids if ids.count(id) > 1]
        if twice:
            self.broken(f"{word(twice[0])} is answered twice", message)
        elif ids:
            self.met()
