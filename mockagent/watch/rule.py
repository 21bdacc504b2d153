"""How a rule about the client is written, and what is kept of it: the sentence, the check, the tally, the breaches.

Rules are written beside their protocol (`acp.rules`, `aap.rules`) as small classes that see the messages of the kinds
they name; nothing here knows a protocol, and nothing here looks at messages by itself: that is the engine (`audit`).
Rules that differ in a method and a few values only share a class: see `Rulebook.add`.

A rule in full::

    RULES = Rulebook("acp", version=1)


    @RULES.rule(
        "ACP-CANCEL-01",
        "MUST",
        "A client that cancels a turn answers its open permission requests with cancelled.",
        source="protocol/v1/prompt-turn#cancellation",
        scope="session",
    )
    class CancelsPermissions(Check):
        def start(self) -> None:
            self.open: dict[Any, Shown] = {}
            self.due: dict[Any, Shown] = {}

        @sent("request:session/request_permission")
        def asked(self, message: Message) -> None:
            self.open[message.id] = self.keep(message)

        @got("session/cancel")
        def cancelled(self, message: Message) -> None:
            self.due, self.open = self.open, {}

        @got("answer:session/request_permission")
        def answered(self, message: Message) -> None:
            asked = self.due.pop(message.id, None)
            if asked is None:
                return
            outcome = message.data["result"]["outcome"]["outcome"]
            if outcome == "cancelled":
                self.met()
            else:
                self.broken(f"it answered {outcome}", asked, message)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar

import msgspec

from mockagent.message import Message, Peer, Protocol, Transport
from mockagent.watch.shown import Shown

if TYPE_CHECKING:
    from mockagent.watch.audit import Audit

Level = Literal["MUST", "SHOULD"]
Scope = Literal["peer", "session", "shared_session", "process"]
State = Literal["met", "broken", "allowed", "not exercised"]


class Breach(msgspec.Struct):
    """One place at which a rule was broken: the messages that show it, and the one before and after the last."""

    rule: str
    level: Level
    sentence: str
    source: str
    why: str
    peer: str
    session: str | None
    shown: list[Shown]
    before: Shown | None = None
    after: Shown | None = None
    allowed: bool = False


class Tally:
    """How often one rule was kept and broken."""

    __slots__ = ("allowed", "breaches", "broken", "met", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.met = 0
        self.broken = 0
        self.allowed = 0
        self.breaches: list[Breach] = []

    @property
    def state(self) -> State:
        """Broken counts more than allowed, allowed more than met."""
        if self.broken:
            return "broken"
        if self.allowed:
            return "allowed"
        return "met" if self.met else "not exercised"


# --- writing rules

ON: Final = "@"
"""Stands for the kinds that the rule itself names (`Rule.on`), where several rules share a class."""

Sense = Literal["got", "sent", "noted", "unreadable"]
_Watch = tuple[Sense, str]
F = TypeVar("F", bound=Callable[..., None])


def _watching(what: Sense, kinds: tuple[str, ...]) -> Callable[[F], F]:
    def mark(function: F) -> F:
        already: tuple[_Watch, ...] = getattr(function, "watches", ())
        function.watches = already + tuple((what, kind) for kind in kinds)  # type: ignore[attr-defined]
        return function

    return mark


def got(*kinds: str) -> Callable[[F], F]:
    """The method sees messages of the client of these kinds (globs allowed)."""
    return _watching("got", kinds)


def sent(*kinds: str) -> Callable[[F], F]:
    """The method sees messages that left for the client undamaged, of these kinds (globs allowed)."""
    return _watching("sent", kinds)


def noted(*events: str) -> Callable[[F], F]:
    """The method is told of these events of the connection or session, with their details as a dict."""
    return _watching("noted", events)


def unreadable(function: F) -> F:
    """The method sees input that is no message: kind `malformed`, data `{why, bytes}`."""
    return _watching("unreadable", ("*",))(function)


class Witness:
    """Watches a connection or a session for all rules that want to know the same: they name its class in `knows`, and
    `consult` it.

    Subclasses set their state up in `start`, and mark methods with `got`, `sent`, `noted`, `unreadable`. Such a method
    may raise on data of an unexpected shape: that ends this instance unjudged, and is named in the report.

    Attributes:
        tolerant: a damaged message of a kind that is watched is passed over; see `damaged`.
        scope: what one instance stands for; of a check, its rule says so.
        blind: nothing more is seen, and nothing judged by it.
        peer: the connection of the message that is looked at.
        session: the session, in the two scopes of sessions.
    """

    tolerant: ClassVar[bool] = False
    scope: ClassVar[Scope] = "peer"

    __slots__ = ("__dict__", "_audit", "blind", "peer", "session")

    def __init__(self, audit: Audit, peer: Peer, session: str | None) -> None:
        self._audit = audit
        self.peer = peer
        self.session = session
        self.blind = False
        self.start()

    def start(self) -> None:
        """Sets up the state."""

    def damaged(self, message: Message) -> None:
        """A message of a kind that is watched left damaged. Unless a subclass knows better, the instance sees nothing
        any more, because client and rule no longer know the same."""
        if not self.tolerant:
            self.blind = True

    def ended(self) -> None:
        """The connection has ended, or the process is about to. What is open then is seldom a breach."""

    def keep(self, message: Message) -> Shown:
        """The message that is looked at, in the small form in which a breach may show it later."""
        return self._audit.shown(message)


W = TypeVar("W", bound=Witness)


class Unknown(Exception):
    """What a check wanted to know cannot be known; whatever it was about to judge stays unjudged."""


class Check(Witness):
    """A rule at work: one instance for each connection, or each session, as the rule's scope says.

    A class without `start` has no state. If it also looks at nothing but what comes in, one instance serves everybody.

    Attributes:
        knows: the witnesses that it consults. They see a message before it does.
        about: what the rule says of itself (`Rule.about`).
    """

    knows: ClassVar[tuple[type[Witness], ...]] = ()

    __slots__ = ("_tally",)

    def __init__(self, audit: Audit, tally: Tally, peer: Peer, session: str | None) -> None:
        self._tally = tally
        super().__init__(audit, peer, session)

    @property
    def about(self) -> Any:
        """What tells this rule from others of the same class."""
        return self._tally.rule.about

    def consult(self, witness: type[W]) -> W:
        """The witness for the message that is looked at.

        Raises:
            Unknown: it sees nothing any more. The engine takes that as "not judged", so nobody has to catch it.
        """
        return self._audit.witness(witness, self.peer, self.session)

    def met(self) -> None:
        """The client kept the rule where it could have broken it."""
        self._tally.met += 1

    def broken(self, why: str, *shown: Message | Shown) -> None:
        """The client broke the rule.

        Args:
            why: what the client did, with the values that matter.
            shown: the messages that show it, in their order; without any, the one that is looked at.
        """
        self._audit.breach(self, self._tally, why, shown)


def watches(kind_of: type[Witness], on: tuple[str, ...] = ()) -> Iterator[tuple[Sense, str, str]]:
    """What a class looks at: in which way, the kind (or event, or a glob), and the name of the method that is told.

    Args:
        kind_of: the class.
        on: the kinds that `ON` stands for.
    """
    members: dict[str, Any] = {}
    for base in reversed(kind_of.__mro__):  # what a subclass defines anew counts
        members.update(vars(base))
    for name, member in members.items():
        for what, kind in getattr(member, "watches", ()):
            for one in on if kind == ON else (kind,):
                yield what, one, name


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule says, and what checks it.

    Attributes:
        id: `ACP-CANCEL-01`: protocol, subject, number.
        level: as in the spec.
        protocol, version: what it is a rule of.
        transports: where it can be judged; empty: everywhere.
        sentence: the rule in our own words.
        source: page and section of the spec.
        scope: what one instance of the check stands for. `session` is a session on one connection; `shared_session`
            and `process` reach over connections.
        check: the class.
        on: the kinds that `ON` stands for in the class.
        about: more that the class wants to know, if several rules share it.
    """

    id: str
    level: Level
    protocol: Protocol
    version: int
    sentence: str
    source: str
    check: type[Check]
    scope: Scope = "peer"
    transports: tuple[Transport, ...] = ()
    on: tuple[str, ...] = ()
    about: Any = None

    def watches(self) -> Iterator[tuple[Sense, str, str]]:
        """What decides it: what its check looks at, and before that the witnesses of it; see `watches`."""
        for witness in self.check.knows:
            yield from watches(witness)
        yield from watches(self.check, self.on)


class Rulebook:
    """The rules of one protocol version, in the order in which they are written."""

    def __init__(self, protocol: Protocol, version: int) -> None:
        self._protocol: Protocol = protocol
        self._version = version
        self._rules: dict[str, Rule] = {}

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def __getitem__(self, id: str) -> Rule:
        return self._rules[id]

    def rule(
        self,
        id: str,
        level: Level,
        sentence: str,
        *,
        source: str,
        scope: Scope = "peer",
        transports: tuple[Transport, ...] = (),
    ) -> Callable[[type[Check]], type[Check]]:
        """Registers the class below as a rule. See `Rule` for the arguments.

        Raises:
            ValueError: the id is taken.
        """
        self._free(id)

        def register(check: type[Check]) -> type[Check]:
            self.add(id, level, sentence, check, source=source, scope=scope, transports=transports)
            return check

        return register

    def add(
        self,
        id: str,
        level: Level,
        sentence: str,
        check: type[Check],
        *,
        source: str,
        on: tuple[str, ...] = (),
        about: Any = None,
        scope: Scope = "peer",
        transports: tuple[Transport, ...] = (),
    ) -> None:
        """Registers a rule whose class it may share with others. See `Rule` for the arguments.

        Raises:
            ValueError: the id is taken.
        """
        self._free(id)
        self._rules[id] = Rule(
            id=id, level=level, protocol=self._protocol, version=self._version, sentence=sentence, source=source,
            check=check, scope=scope, transports=transports, on=on, about=about,
        )  # fmt: skip

    def _free(self, id: str) -> None:
        if id in self._rules:
            raise ValueError(f"there is a rule {id} already")
