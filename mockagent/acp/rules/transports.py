"""Rules about the form in which messages arrive: on stdio, over WebSocket, and over Streamable HTTP.

Bytes that are no message reach rules as what was wrong with them; so do requests over HTTP that were refused. Limits of
mockagent's own (sizes, depths) are no rules.
"""

from __future__ import annotations

from typing import Any, Final

from mockagent.acp.rules.book import RULES
from mockagent.message import Message
from mockagent.watch.rule import Check, got, noted, unreadable

PAGE: Final = "protocol/v1/transports"
REMOTE: Final = "rfds/streamable-http-websocket-transport"
CHECKS: Final = f"{REMOTE}#content-negotiation-and-validation"

_NOT_UTF8: Final = "Parse error: not UTF-8"
_NO_JSON: Final = ("Parse error: not JSON", "Parse error: the text is truncated", "Parse error: a byte order mark")
_NO_MESSAGE: Final = "Invalid request: "
_OWN_LIMITS: Final = ("Invalid request: the line is too long", "Invalid request: a batch of more than")


# --- one message, whole


class Readable(Check):
    """`ours` says which words of the parser are about this rule."""

    def ours(self, why: str) -> bool:
        raise NotImplementedError

    @got("*")
    def read(self, message: Message) -> None:
        self.met()

    @unreadable
    def unread(self, message: Message) -> None:
        if self.ours(message.data["why"]):
            self.broken(message.data["why"].partition(": ")[2], message)


@RULES.rule(
    "ACP-FRAME-01",
    "MUST",
    "Messages are encoded in UTF-8.",
    source=PAGE,
    transports=("stdio", "ws"),
)
class WritesUtf8(Readable):
    def ours(self, why: str) -> bool:
        return why.startswith(_NOT_UTF8)


@RULES.rule(
    "ACP-FRAME-02",
    "MUST",
    "A message is one JSON text: on stdio in one line without a line break inside, over WebSocket in one message.",
    source=f"{PAGE}#stdio; {REMOTE}#bidirectional-messaging",
    transports=("stdio", "ws"),
)
class WritesWholeTexts(Readable):
    def ours(self, why: str) -> bool:
        return why.startswith(_NO_JSON)


@RULES.rule(
    "ACP-FRAME-03",
    "MUST",
    "Nothing but valid JSON-RPC messages is sent to the agent.",
    source=f"{PAGE}#stdio; JSON-RPC 2.0, sections 4 and 5",
    transports=("stdio", "ws"),
)
class WritesMessages(Readable):
    def ours(self, why: str) -> bool:
        return why.startswith(_NO_MESSAGE) and not why.startswith(_OWN_LIMITS)


@RULES.rule(
    "ACP-FRAME-04",
    "MUST",
    "Messages are sent one by one, not in batches.",
    source=f"{PAGE}#stdio",
    transports=("stdio",),
)
class SendsNoBatches(Check):
    def start(self) -> None:
        self.batched = 0

    @noted("batch")
    def batch(self, detail: dict[str, Any]) -> None:
        self.batched = int(detail["size"])
        self.broken(f"it sent {self.batched} messages in one array")

    @got("*")
    def read(self, message: Message) -> None:
        if self.batched:
            self.batched -= 1
        else:
            self.met()


@RULES.rule(
    "ACP-WS-01",
    "MUST",
    "Over WebSocket, messages are sent in text frames.",
    source=f"{REMOTE}#bidirectional-messaging",
    transports=("ws",),
)
class SendsTextFrames(Check):
    def start(self) -> None:
        self.binary = False

    @noted("binary_frame")
    def sent_binary(self, detail: dict[str, Any]) -> None:
        self.binary = True
        self.broken("it sent a binary frame")

    @got("*")
    def read(self, message: Message) -> None:
        if not self.binary:
            self.met()


# --- headers


class Refused(Check):
    """Broken by a request that was refused for a certain reason, kept by every message that came through."""

    code = ""

    @noted("refused")
    def refused(self, detail: dict[str, Any]) -> None:
        if detail.get("code") == self.code:
            self.broken(detail["why"])

    @got("*")
    def came(self, message: Message) -> None:
        self.met()


@RULES.rule("ACP-HTTP-01", "MUST", "A POST has the Content-Type application/json.", source=CHECKS, transports=("http",))
class PostsJson(Refused):
    code = "unsupported_media_type"


@RULES.rule(
    "ACP-HTTP-02", "MUST", "A GET accepts text/event-stream.", source=CHECKS, transports=("http",)
)  # fmt: skip
class AcceptsEvents(Check):
    @noted("refused")
    def refused(self, detail: dict[str, Any]) -> None:
        if detail.get("code") == "not_acceptable":
            self.broken(detail["why"])

    @noted("stream_opened")
    def opened(self, detail: dict[str, Any]) -> None:
        self.met()


@RULES.rule(
    "ACP-HTTP-03",
    "MUST",
    "Every request behind initialize has the Acp-Connection-Id that it gave out.",
    source=f"{REMOTE}#identity-model; {CHECKS}",
    transports=("http",),
)
class NamesTheConnection(Refused):
    code = "missing_connection"


_OF_SESSIONS: Final = frozenset({
    "session/prompt", "session/cancel", "session/close", "session/set_mode", "session/set_config_option",
    "session/load", "session/resume", "answer",
})  # fmt: skip
"""What the proposal counts as a session's own; of others it does not speak."""


@RULES.rule(
    "ACP-HTTP-04",
    "MUST",
    "A POST about a session has the Acp-Session-Id of that session, answers to the agent's requests included.",
    source=f"{REMOTE}#identity-model; {CHECKS}",
    transports=("http",),
)
class NamesTheSession(Check):
    def start(self) -> None:
        self.missing = False

    @noted("refused")
    def refused(self, detail: dict[str, Any]) -> None:
        if detail.get("code") in ("missing_session", "wrong_session"):
            self.broken(detail["why"])

    @noted("session_header_missing")
    def went_without(self, detail: dict[str, Any]) -> None:
        if detail["method"] in _OF_SESSIONS:
            self.missing = True
            what = "an answer" if detail["method"] == "answer" else detail["method"]
            self.broken(f"{what} came without it")

    @got("*")
    def came(self, message: Message) -> None:
        if self.missing:
            self.missing = False
        elif message.session is not None and (message.kind.startswith("answer:") or message.kind in _OF_SESSIONS):
            self.met()


@RULES.rule(
    "ACP-HTTP-05",
    "MUST",
    "Cookies that were set are sent back for as long as the connection lasts.",
    source=f"{REMOTE}#5-requires-cookie-support-on-http-transports",
    transports=("http",),
)
class SendsCookiesBack(Check):
    def start(self) -> None:
        self.missed = False

    @noted("cookie_missing")
    def went_without(self, detail: dict[str, Any]) -> None:
        self.missed = True
        self.broken(f"the cookie {detail['cookie']} was not sent back")

    @got("*")
    def came(self, message: Message) -> None:
        if message.kind != "initialize" and not self.missed:
            self.met()


@RULES.rule(
    "ACP-HTTP-06",
    "MUST",
    "A POST has one message, not a batch.",
    source=f"{CHECKS}; {REMOTE}#deviations-from-mcp-streamable-http",
    transports=("http",),
)
class PostsNoBatches(Refused):
    code = "batch"
