"""The interface between the script and the protocols: items that go out, needs that want an answer.

`acp` and `aap` implement `Output`; the runner knows nothing else of them. Everything here is protocol-neutral, and
nothing here waits.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from mockagent.message import Origin, Peer

Role = Literal["say", "think", "user"]
Side = Literal["server", "client"]


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """Part of one message of the agent (or, in a replay, of the user).

    Attributes:
        role: which verb said it.
        parts: each one chunk: plain text, or a content block in the scenario's form (`{image: ...}`).
        message_id: id shared by all chunks of the message; None when the scenario turns ids off.
        starts, ends: whether the first, the last part of the message is among them.
        meta: `_meta` of the chunk.
    """

    role: Role
    parts: Sequence[str | dict[str, Any]]
    message_id: str | None = None
    starts: bool = True
    ends: bool = True
    meta: dict[str, Any] | None = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as it is announced. `fields` holds only what the scenario gave, `null` included."""

    id: str
    name: str | None = None
    fields: dict[str, Any] = {}
    input: Any = None
    side: Side = "server"
    listed: bool | None = None
    meta: dict[str, Any] | None = None


class ToolUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """A change to a tool call. `final` says that no other follows; `result` is the output in words."""

    id: str
    fields: dict[str, Any]
    final: bool = False
    result: Any = None
    denied: str | None = None
    meta: dict[str, Any] | None = None


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """New session metadata. `fields` holds `title`, `updated_at`, `meta` as far as given; null clears."""

    fields: dict[str, Any]


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """`plan`, `usage`, `commands`, `mode`, `option`, `notice`, `compaction`: verb and payload as in the scenario."""

    verb: str
    payload: Any
    meta: dict[str, Any] | None = None


class Raw(msgspec.Struct, frozen=True, kw_only=True):
    """`update`, `notify` or `send`: what the scenario wrote, sent as it is."""

    verb: Literal["update", "notify", "send"]
    payload: Any


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """`disconnect`, `exit`, `stall`, `stderr` as steps: done to the channel behind what was sent before."""

    verb: str
    payload: Any


Item = Text | ToolCall | ToolUpdate | Info | Surface | Raw | Wire


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """Asks whether a tool may run. `tool` is the call as announced (or to be announced by the request itself)."""

    tool: ToolCall
    options: Sequence[dict[str, Any]]
    content: Sequence[Any] | None = None


class ClientTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the client itself runs (AAP)."""

    tool: ToolCall


class ClientRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the client: `read`, `write`, `terminal`, `elicit`, `mcp` by verb, or any by `request`.

    `begun` is called with the id of what the client has set up for it (a terminal), as soon as that is known.
    """

    verb: str
    payload: Any
    step: str = ""
    begun: Callable[[str], None] | None = None


Need = Permission | ClientTool | ClientRequest


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back for a ticket.

    Attributes:
        outcome: `granted`, `denied`, `cancelled`, `result`, `error`, `timeout`.
        option: the permission option that was chosen, or another word for the outcome (`decline`).
        value: the result or the error, as JSON.
        words: the result in words, for `text`; None: the value itself.
        reason: why the client denied, if it said so.
        message: the whole message that brought the answer, for `save`.
    """

    outcome: Literal["granted", "denied", "cancelled", "result", "error", "timeout"]
    option: str | None = None
    value: Any = None
    words: str | None = None
    reason: str | None = None
    message: Any = None


class Ticket:
    """One open question to the client; compared by identity.

    Args:
        need: what is wanted.
        settle: takes the answer; one that comes too late, or twice, changes nothing.
    """

    __slots__ = ("need", "settle")

    def __init__(self, need: Need, settle: Callable[[Answer], None]) -> None:
        self.need = need
        self.settle = settle


class Admission(enum.Enum):
    """How a protocol treats a tool call that the scenario wants to make."""

    INLINE = enum.auto()
    ASK = enum.auto()
    SKIP = enum.auto()


class Stop(msgspec.Struct, frozen=True):
    """The turn ends with a stop reason; `meta` is the `_meta` of the reply."""

    reason: str
    meta: dict[str, Any] | None = None


class Fail(msgspec.Struct, frozen=True):
    """The turn ends with an error: the name of one in the table, or `{code, message, data}`."""

    error: str | dict[str, Any]


class Output(Protocol):
    """Where a run sends to. Implementations only append to an outbox, and never wait."""

    @property
    def room(self) -> int:
        """How many more items may be emitted now without more being held in memory than is good."""

    @property
    def peer(self) -> Peer | None:
        """The connection it leads to."""

    def same_client(self, other: Output) -> bool:
        """Whether both lead to the same connection."""

    def emit(self, item: Item, origin: Origin) -> bool:
        """Sends an item. False: the protocol cannot say it; the runner notes that in the journal."""

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """Says how to treat a tool call; `ask` is what the scenario wants of ACP."""

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        """Puts a question to the client. False: it cannot be asked (capability missing, or nobody there)."""

    def withdraw(self, ticket: Ticket) -> None:
        """The answer is not wanted any more (ACP `$/cancel_request`; AAP nothing)."""

    def parked(self, open: Sequence[Ticket]) -> None:
        """All branches wait for the client: AAP ends its response with `tool_use`, ACP does nothing."""

    def end(self, how: Stop | Fail) -> None:
        """Ends the turn: the reply to the prompt, or the last event of the response."""
