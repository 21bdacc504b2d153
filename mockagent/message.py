"""One message on its way in or out, in the form that faults and taps look at.

The lowest module of the project: everybody may import it and it imports nobody. It knows no protocol: the protocols
name the kinds, and say which neutral kind (if any) a message belongs to.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

Protocol = Literal["acp", "aap"]
Transport = Literal["stdio", "ws", "http", "memory"]

NETWORK = frozenset({"ws", "http"})
"""Transports whose clients connect, and can be sent away."""
Direction = Literal["in", "out"]
Origin = Literal["client", "handler", "turn", "replay", "schedule", "fault", "control"]


class Peer:
    """One connection with a client, as faults, taps and the journal name it.

    Args:
        id: unique in the process and given in the order of connecting: `c1`, `c2`, ...
        protocol: what is spoken on it.
        transport: what it is spoken over.

    Attributes:
        agent: position of the agent that answers on this connection; None: any of them, or it is not known.
    """

    __slots__ = ("agent", "id", "protocol", "saved", "transport")

    def __init__(self, id: str, protocol: Protocol, transport: Transport) -> None:
        self.id = id
        self.protocol: Protocol = protocol
        self.transport: Transport = transport
        self.agent: int | None = None
        #: what `save` has kept outside sessions; a session's own look-up falls back to it
        self.saved: dict[str, Any] = {}


class NoId(enum.Enum):
    """Marks a message without an id: `null` and `0` are ids in JSON-RPC."""

    NO_ID = enum.auto()


NO_ID: Final = NoId.NO_ID

_encode = msgspec.json.Encoder().encode


class Shape(msgspec.Struct, kw_only=True):
    """How a message departs from the usual framing; set by faults, obeyed by `Channel.encode`.

    Only what has to be known while encoding stands here; what is done to finished bytes are `net.channel` operations.
    """

    escape_ascii: bool = False
    binary: bool = False
    newline: bytes | None = None
    comment: str | None = None
    no_blank: bool = False
    event_name: str | None = None
    fragments: Sequence[int] | None = None
    """Offsets (in bytes) at which the text is cut into several frames of one WebSocket message."""
    pieces: Sequence[int] | None = None
    """Offsets (in bytes) at which the text is cut into several messages, each framed by itself (lines, events, ...)."""


class HttpHead(msgspec.Struct, kw_only=True):
    """Status line and headers of an HTTP reply, or method, path and headers of a request."""

    status: int = 200
    headers: dict[str, str] = {}
    method: str = ""
    path: str = ""
    query: dict[str, str] = {}


class Message:
    """A message of either protocol, in either direction.

    Attributes:
        kind: the protocol's name for it, as `at` writes it. In: the method (`session/list`, `GET /sessions`), or
            `answer:METHOD` for the client's answer to one of our requests. Out: `reply:METHOD`, `update:KIND`,
            `request:METHOD`, `notify:METHOD`, `event:NAME`, `raw`.
        neutral: the protocol-neutral kind (`list`, `turn`, `say`, ...) or None.
        data: the decoded JSON: the whole JSON-RPC message, the data of an SSE event, the body of an HTTP message.
        raw: the JSON text as it was read, or as it was encoded beforehand; None when `data` has to be encoded.
        session: the session it belongs to, or None.
        id: the JSON-RPC id of a request or reply (None and 0 are ids), else NO_ID.
        method: the bare method of a request, reply or answer.
        origin: who caused it.
        http: the head, for HTTP requests and replies.
        shape: set by a fault that changes the encoding.
        damaged: names of the effects that have changed what leaves; the taps take it as fate.
        plan: what faults do to the bytes, once they are there; for `Faults.framing`, asked only if there is any.
        agent: position of the agent that it names, where neither its session nor its peer tells.
        follow: called once, as soon as the first copy of it is on its way; what has to come behind it is sent there.
    """

    __slots__ = (
        "agent", "damaged", "data", "follow", "http", "id", "kind", "method", "neutral", "origin", "peer", "plan",
        "raw", "session", "shape",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        data: Any,
        peer: Peer,
        *,
        neutral: str | None = None,
        raw: bytes | None = None,
        session: str | None = None,
        id: Any = NO_ID,
        method: str = "",
        origin: Origin = "client",
        http: HttpHead | None = None,
        shape: Shape | None = None,
        damaged: tuple[str, ...] = (),
        plan: tuple[tuple[str, Any], ...] = (),
    ) -> None:
        self.kind = kind
        self.data = data
        self.peer = peer
        self.neutral = neutral
        self.raw = raw
        self.session = session
        self.id = id
        self.method = method
        self.origin: Origin = origin
        self.http = http
        self.shape = shape
        self.damaged = damaged
        self.plan = plan
        self.agent: int | None = None
        self.follow: Callable[[], None] | None = None

    @property
    def faultable(self) -> bool:
        """Whether faults may act on it: what faults themselves have sent is left alone."""
        return self.origin != "fault"

    @property
    def text(self) -> bytes:
        """The JSON text of the message, without any framing."""
        return self.raw if self.raw is not None else _encode(self.data)

    def copy(self) -> Message:
        """A second message with the same content; `data` is shared until somebody replaces it."""
        made = Message(
            self.kind, self.data, self.peer, neutral=self.neutral, raw=self.raw, session=self.session, id=self.id,
            method=self.method, origin=self.origin, http=self.http, shape=self.shape, damaged=self.damaged,
            plan=self.plan,
        )  # fmt: skip
        made.agent = self.agent
        return made

    def __repr__(self) -> str:
        return f"<Message {self.kind} {self.peer.id} {self.data!r:.80}>"


class Burst:
    """Many messages of one kind that follow each other without a pause, encoded beforehand.

    The fast path of streamed text. It is used only while no fault watches the kind; a tap that needs the single
    messages takes them from `texts`.

    Attributes:
        texts: the JSON text of each message, without framing.
    """

    __slots__ = ("kind", "neutral", "origin", "peer", "session", "texts")

    def __init__(self, kind: str, neutral: str, peer: Peer, session: str, origin: Origin, texts: list[bytes]) -> None:
        self.kind = kind
        self.neutral = neutral
        self.peer = peer
        self.session = session
        self.origin: Origin = origin
        self.texts = texts

    def messages(self) -> Iterator[Message]:
        """The same as single messages."""
        for text in self.texts:
            yield Message(
                self.kind, msgspec.json.decode(text), self.peer, neutral=self.neutral, raw=text, session=self.session,
                origin=self.origin,
            )  # fmt: skip


class Fate(enum.Enum):
    """What became of an outgoing message; incoming ones are always intact."""

    INTACT = "intact"
    DAMAGED = "damaged"
    UNSENT = "unsent"


Json = Any
JsonObject = Mapping[str, Any]
