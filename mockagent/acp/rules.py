"""Rules about ACP clients: what the spec demands of them, as far as frames alone decide it.

One small class a rule; the engine is `watch.audit`. A rule stands here only if the spec says so, and if it is true
under every interleaving of messages in flight.
"""

from __future__ import annotations

from typing import Any

from mockagent.message import Message
from mockagent.watch.rule import Check, Rulebook, got, sent
from mockagent.watch.shown import Shown

RULES = Rulebook("acp", version=1)


@RULES.rule(
    "ACP-INIT-01",
    "MUST",
    "The first request of a connection is initialize.",
    source="protocol/v1/initialization",
)
class InitializesFirst(Check):
    def start(self) -> None:
        self.begun = False

    @got("*")
    def called(self, message: Message) -> None:
        if self.begun or message.kind.startswith("answer:"):
            return
        self.begun = True
        if message.kind == "initialize":
            self.met()
        else:
            self.broken(f"{message.kind} came first", message)


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
        self.due |= self.open
        self.open = {}

    @got("answer:session/request_permission")
    def answered(self, message: Message) -> None:
        self.open.pop(message.id, None)
        asked = self.due.pop(message.id, None)
        if asked is None:
            return
        outcome = _outcome(message)
        if outcome == "cancelled":
            self.met()
        else:
            self.broken(f"it answered {outcome!r}", asked, message)

    def ended(self) -> None:
        for asked in self.due.values():
            self.broken("it never answered", asked)


def _outcome(message: Message) -> Any:
    """The outcome that an answer names, or what stands in its place."""
    result = message.data.get("result")
    outcome = result.get("outcome") if isinstance(result, dict) else message.data.get("error")
    return outcome.get("outcome", outcome) if isinstance(outcome, dict) else outcome


@RULES.rule(
    "ACP-PERMISSION-01",
    "MUST",
    "A permission request is answered with one of the options that it offered.",
    source="protocol/v1/tool-calls#requesting-permission",
)
class ChoosesAnOffer(Check):
    def start(self) -> None:
        self.offers: dict[Any, tuple[Shown, set[str]]] = {}

    @sent("request:session/request_permission")
    def asked(self, message: Message) -> None:
        options = message.data["params"]["options"]
        self.offers[message.id] = (self.keep(message), {option["optionId"] for option in options})

    @got("answer:session/request_permission")
    def answered(self, message: Message) -> None:
        asked = self.offers.pop(message.id, None)
        if asked is None or _outcome(message) != "selected":
            return
        chosen = message.data["result"]["outcome"].get("optionId")
        if chosen in asked[1]:
            self.met()
        else:
            self.broken(f"it chose {chosen!r}", asked[0], message)
