"""Rules about the beginning of a connection and of sessions: what comes first, and what only if the agent has it."""

from __future__ import annotations

from typing import Any, Final

from mockagent.acp.rules.book import HANDSHAKE, RULES, SETUP, Introduced, is_result, params
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import ON, Check, got, noted, sent
from mockagent.watch.shown import Shown

AUTH: Final = "protocol/v1/authentication"

OF_AGENTS: Final = frozenset({
    "initialize", "authenticate", "logout", "session/new", "session/load", "session/resume", "session/list",
    "session/close", "session/delete", "session/set_mode", "session/set_config_option", "session/prompt",
    "session/cancel", "$/cancel_request",
})  # fmt: skip
"""Every method of ACP v1 that is for agents."""

UNSTABLE: Final = (
    "$/",  # any may be sent, and may be ignored (schema, "Protocol level")
    "session/fork", "session/set_model", "session/archive", "session/unarchive", "session/status",
    "session/set_title", "auth/", "mcp/", "providers/", "proxy/", "nes/", "document/",
)  # fmt: skip
"""Beginnings of methods that are not judged: who uses those of drafts has agreed on them in another way."""


# --- initialize


@RULES.rule(
    "ACP-INIT-01",
    "MUST",
    "The first message of a connection is initialize.",
    source=HANDSHAKE,
)
class InitializesFirst(Check):
    """Extensions (`_...`) may come before: the spec says nothing of them."""

    def start(self) -> None:
        self.begun = False

    @got("*")
    def called(self, message: Message) -> None:
        if self.begun or message.kind.startswith(("answer:", "_", "$/")):
            return
        self.begun = True
        if message.kind == "initialize":
            self.met()
        else:
            self.broken(f"{message.kind} came first", message)


@RULES.rule(
    "ACP-INIT-02",
    "MUST",
    "Sessions and authentication wait for the answer to initialize.",
    source=f"{SETUP}; protocol/v1/session-list; protocol/v1/prompt-turn",
)
class WaitsForInitialize(Check):
    """Judged when something arrives before the answer has left: the client cannot have read it."""

    def start(self) -> None:
        self.asked: Shown | None = None
        self.answered = False

    @got("initialize")
    def begun(self, message: Message) -> None:
        if self.asked is None:
            self.asked = self.keep(message)

    @sent("reply:initialize")
    def done(self, message: Message) -> None:
        self.answered = True

    def damaged(self, message: Message) -> None:
        self.answered = True

    @got("session/*", "authenticate", "logout")
    def called(self, message: Message) -> None:
        if self.asked is None:
            return
        if self.answered:
            self.met()
        else:
            self.broken(f"{message.kind} came before initialize was answered", self.asked, message)


@RULES.rule(
    "ACP-INIT-03",
    "MUST",
    "initialize names the protocol version as an integer from 0 to 65535.",
    source=f"{HANDSHAKE}#protocol-version; protocol/v1/schema#protocolversion",
)
class NamesTheVersion(Check):
    @got("initialize")
    def called(self, message: Message) -> None:
        version = params(message).get("protocolVersion")
        if type(version) is int and 0 <= version <= 65535:
            self.met()
        else:
            self.broken(f"protocolVersion was {word(version)}", message)


@RULES.rule(
    "ACP-INIT-04",
    "SHOULD",
    "initialize tells the client's name and version.",
    source=f"{HANDSHAKE}#implementation-information",
)
class TellsWhoItIs(Check):
    @got("initialize")
    def called(self, message: Message) -> None:
        about = params(message).get("clientInfo")
        if isinstance(at(about, "name"), str) and isinstance(at(about, "version"), str):
            self.met()
        else:
            self.broken(f"clientInfo was {word(about)}", message)


@RULES.rule(
    "ACP-INIT-05",
    "SHOULD",
    "A client that is answered with a later protocol version than its latest goes no further.",
    source=f"{HANDSHAKE}#version-negotiation",
)
class StopsAtAnotherVersion(Check):
    """Judged at a prompt in a session that was made behind the answer: by then the client has read it."""

    def start(self) -> None:
        self.latest: Any = None
        self.other: Shown | None = None
        self.made: set[str | None] = set()
        self.went_on = False

    @got("initialize")
    def asked(self, message: Message) -> None:
        self.latest = params(message).get("protocolVersion")

    @sent("reply:initialize")
    def answered(self, message: Message) -> None:
        version = at(message.data, "result", "protocolVersion")
        if type(version) is int and type(self.latest) is int and version > self.latest:
            self.other = self.keep(message)

    @sent("reply:session/new")
    def created(self, message: Message) -> None:
        if self.other is not None:
            self.made.add(message.session)

    @got("session/prompt")
    def prompted(self, message: Message) -> None:
        if self.other is not None and message.session in self.made and not self.went_on:
            self.went_on = True
            self.broken(f"it supports version {self.latest} at most, and went on", self.other, message)

    @noted("eof")
    def stopped(self, detail: dict[str, Any]) -> None:
        if self.other is not None and not self.went_on:
            self.met()


# --- authentication


@RULES.rule(
    "ACP-AUTH-01",
    "MUST",
    "authenticate names a method that the agent offered.",
    source=f"{AUTH}#protocol-driven-authentication; protocol/v1/schema#authenticate",
)
class NamesAnOfferedMethod(Introduced):
    @got("authenticate")
    def called(self, message: Message) -> None:
        wanted = params(message).get("methodId")
        offered = [at(method, "id") for method in items(self.agent.get("authMethods"))]
        if wanted in offered:
            self.met()
        elif isinstance(wanted, str):
            known = ", ".join(map(str, offered)) or "no methods"
            self.broken(f"{word(wanted)} is none of {known}", *self.told, message)


@RULES.rule(
    "ACP-AUTH-02",
    "MUST",
    "authenticate is not called with a method of type terminal: the client runs that itself.",
    source=f"{AUTH}#terminal-authentication",
)
class RunsTerminalMethodsItself(Introduced):
    @got("authenticate")
    def called(self, message: Message) -> None:
        wanted = params(message).get("methodId")
        kinds = [at(one, "type") for one in items(self.agent.get("authMethods")) if at(one, "id") == wanted]
        if "terminal" in kinds:
            self.broken(f"{word(wanted)} is a terminal method", *self.told, message)
        elif kinds:
            self.met()


# --- what the agent has


class Gated(Introduced):
    """A method is called only if the agent advertised it; `about` is where."""

    @got(ON)
    def called(self, message: Message) -> None:
        if self.supports("agentCapabilities", *self.about):
            self.met()
        else:
            self.broken(f"the agent does not advertise {'.'.join(self.about)}", *self.told, message)


for _id, _method, _where, _page in (
    ("ACP-AUTH-03", "logout", ("auth", "logout"), f"{AUTH}#logging-out"),
    ("ACP-CAP-01", "session/load", ("loadSession",), f"{SETUP}#checking-support"),
    ("ACP-CAP-02", "session/list", ("sessionCapabilities", "list"), "protocol/v1/session-list#checking-support"),
    ("ACP-CAP-03", "session/resume", ("sessionCapabilities", "resume"), f"{SETUP}#checking-support-2"),
    ("ACP-CAP-04", "session/close", ("sessionCapabilities", "close"), f"{SETUP}#checking-support-3"),
    ("ACP-CAP-05", "session/delete", ("sessionCapabilities", "delete"), "protocol/v1/session-delete#checking-support"),
):
    _sentence = f"{_method} is called only if the agent advertises {'.'.join(_where)}."
    RULES.add(_id, "MUST", _sentence, Gated, source=_page, on=(_method,), about=_where)


@RULES.rule(
    "ACP-CAP-06",
    "MUST",
    "additionalDirectories are sent only if the agent advertises sessionCapabilities.additionalDirectories.",
    source=f"{SETUP}#additional-workspace-roots",
)
class GatesDirectories(Introduced):
    """An empty list is taken for none: the spec says that both are the same."""

    @got("session/new", "session/load", "session/resume")
    def called(self, message: Message) -> None:
        if not params(message).get("additionalDirectories"):
            return
        if self.supports("agentCapabilities", "sessionCapabilities", "additionalDirectories"):
            self.met()
        else:
            self.broken("the agent does not advertise sessionCapabilities.additionalDirectories", *self.told, message)


class GatedServers(Introduced):
    """MCP servers of a transport (`about`) are named only if the agent advertised it."""

    @got("session/new", "session/load", "session/resume")
    def called(self, message: Message) -> None:
        servers = items(params(message).get("mcpServers"))
        if not any(at(server, "type") == self.about for server in servers):
            return
        if self.supports("agentCapabilities", "mcpCapabilities", self.about):
            self.met()
        else:
            self.broken(f"the agent does not advertise mcpCapabilities.{self.about}", *self.told, message)


for _id, _over in (("ACP-CAP-07", "http"), ("ACP-CAP-08", "sse")):
    _sentence = f"MCP servers over {_over} are named only if the agent advertises mcpCapabilities.{_over}."
    RULES.add(_id, "MUST", _sentence, GatedServers, source=f"{SETUP}#checking-transport-support", about=_over)


# --- sessions and methods


@RULES.rule(
    "ACP-SESSION-01",
    "MUST",
    "A prompt is sent only in a session whose set-up (new, load, resume) has been answered on the same connection.",
    source="protocol/v1/prompt-turn; protocol/v1/session-setup",
)
class SetsUpFirst(Check):
    """A session that was closed has to be set up again, where the order of messages is known."""

    def start(self) -> None:
        self.ready: set[str | None] = set()
        self.closing: dict[Any, str | None] = {}

    @sent("reply:session/new", "reply:session/load", "reply:session/resume", "reply:session/fork")
    def answered(self, message: Message) -> None:
        if is_result(message):
            self.ready.add(message.session)

    @sent("raw")
    def made_up(self, message: Message) -> None:
        """The scenario's own words may be an answer to anything; they count as damaged."""

    def damaged(self, message: Message) -> None:
        if message.kind == "raw":
            self.blind = True
        else:
            self.ready |= {message.session, at(message.data, "result", "sessionId")}

    @got("session/close")
    def closes(self, message: Message) -> None:
        if self.peer.transport != "http":
            self.closing[message.id] = message.session

    @sent("reply:session/close")
    def closed(self, message: Message) -> None:
        session = self.closing.pop(message.id, None)
        if session is not None and is_result(message):
            self.ready.discard(session)

    @got("session/load", "session/resume")
    def reopens(self, message: Message) -> None:
        self.closing = {id: session for id, session in self.closing.items() if session != message.session}

    @got("session/prompt")
    def prompted(self, message: Message) -> None:
        if message.session is None:
            return
        if message.session in self.ready:
            self.met()
        else:
            self.broken(f"session {word(message.session)} was not set up", message)


@RULES.rule(
    "ACP-METHOD-01",
    "MUST",
    "Methods that the protocol does not define for agents begin with an underscore.",
    source="protocol/v1/extensibility#extension-methods",
)
class MarksItsOwnMethods(Check):
    @got("*")
    def called(self, message: Message) -> None:
        method = message.kind
        if method.startswith(("answer:", *UNSTABLE)):
            return
        if method in OF_AGENTS or method.startswith("_"):
            self.met()
        else:
            self.broken(f"there is no method {word(method)} for agents", message)


@RULES.rule(
    "ACP-METHOD-02",
    "MUST",
    "session/cancel and $/cancel_request are notifications: they have no id.",
    source="protocol/v1/prompt-turn#cancellation; protocol/v1/cancellation",
)
class CancelsWithoutAnId(Check):
    @got("session/cancel", "$/cancel_request")
    def called(self, message: Message) -> None:
        if "id" in message.data:
            self.broken(f"it had the id {word(message.data['id'])}", message)
        else:
            self.met()


@RULES.rule(
    "ACP-METHOD-03",
    "MUST",
    "Methods that have an answer are called as requests: with an id.",
    source="protocol/v1/overview#communication-model; JSON-RPC 2.0, section 4.1",
)
class RequestsHaveAnId(Check):
    @got(*sorted(OF_AGENTS - {"session/cancel", "$/cancel_request"}))
    def called(self, message: Message) -> None:
        if "id" in message.data:
            self.met()
        else:
            self.broken(f"{message.kind} came without an id", message)


@RULES.rule(
    "ACP-METHOD-04",
    "SHOULD",
    "The id of a request is not null.",
    source="protocol/v1/schema#requestid; JSON-RPC 2.0, section 4",
)
class IdsAreNotNull(Check):
    @got("*")
    def called(self, message: Message) -> None:
        if message.kind.startswith("answer:") or "id" not in message.data:
            return
        if message.data["id"] is None:
            self.broken("the id was null", message)
        else:
            self.met()
