"""The rulebook of ACP v1, and what its rules have in common: looking into messages, knowing what the agent advertised.

Every client sends what it likes, so nothing here trusts the shape of a message.
"""

from __future__ import annotations

from typing import Any, Final

from mockagent.message import Message, Transport
from mockagent.watch.look import at
from mockagent.watch.rule import Check, Rulebook, Unknown, Witness, got, sent
from mockagent.watch.shown import Shown

RULES: Final = Rulebook("acp", version=1)

ORDERED: Final[tuple[Transport, ...]] = ("stdio", "ws", "memory")
"""Transports on which messages arrive in the order in which the client sent them; over HTTP each has its own POST."""

HANDSHAKE: Final = "protocol/v1/initialization"
SETUP: Final = "protocol/v1/session-setup"


def params(message: Message) -> dict[str, Any]:
    """The params of a request or notification; empty if they are no object."""
    found = at(message.data, "params")
    return found if isinstance(found, dict) else {}


def error_code(message: Message) -> Any:
    """The code of an answer that is an error, else None."""
    return at(message.data, "error", "code")


def is_result(message: Message) -> bool:
    """Whether a reply or an answer is no error."""
    return isinstance(message.data, dict) and message.data.get("error") is None


def advertises(told: Any, *path: str) -> bool:
    """Whether a side has what it told of: true stands there, or an object."""
    value = at(told, *path)
    return value is not None and value is not False


class Agent(Witness):
    """What the agent has told of itself. A connection that speaks another version is not judged by it."""

    def start(self) -> None:
        self.result: dict[str, Any] | None = None
        self.told: list[Shown] = []

    @sent("reply:initialize")
    def introduced(self, message: Message) -> None:
        result = at(message.data, "result")
        if isinstance(result, dict):
            self.result = result
            self.told = [self.keep(message)]
            if result.get("protocolVersion") != 1:
                self.blind = True


class Client(Witness):
    """What the client has told of itself."""

    def start(self) -> None:
        self.capabilities: Any = None

    @got("initialize")
    def introduced(self, message: Message) -> None:
        self.capabilities = params(message).get("clientCapabilities")

    def has(self, *path: str) -> bool:
        """Whether it advertised something."""
        return advertises(self.capabilities, *path)


class Introduced(Check):
    """Judges by what the agent has told of itself, once it has."""

    knows = (Agent,)

    @property
    def agent(self) -> dict[str, Any]:
        """The result of initialize.

        Raises:
            Unknown: there is none yet.
        """
        result = self.consult(Agent).result
        if result is None:
            raise Unknown
        return result

    @property
    def told(self) -> list[Shown]:
        """The message in which that stands."""
        return self.consult(Agent).told

    def supports(self, *path: str) -> bool:
        """Whether the agent advertised something."""
        return advertises(self.agent, *path)
