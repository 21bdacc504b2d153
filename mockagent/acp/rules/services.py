"""Rules about what a client does for the agent: permissions, files, terminals, and questions to the user.

What holds of every answer, whatever was asked, stands in `answers`.
"""

from __future__ import annotations

from typing import Any, Final

from mockagent.acp.rules.answers import METHOD_NOT_FOUND, PERMISSION
from mockagent.acp.rules.book import ORDERED, RULES, Client, error_code, is_result, params
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import Check, got, sent
from mockagent.watch.shown import Shown

INVALID_PARAMS: Final = -32602
CANCELLED: Final = -32800

ASKING: Final = "protocol/v1/tool-calls#requesting-permission"
FILES: Final = "protocol/v1/file-system"
TERMINALS: Final = "protocol/v1/terminals"
ELICITATION: Final = "protocol/v1/elicitation"


def _outcome(message: Message) -> Any:
    """The outcome that an answer to a permission request names, or what stands in its place."""
    if not is_result(message):
        return f"error {error_code(message)}"
    outcome = at(message.data, "result", "outcome")
    return outcome.get("outcome") if isinstance(outcome, dict) else outcome


# --- permissions


@RULES.rule(
    "ACP-CANCEL-01",
    "MUST",
    "A client that cancels a turn answers its open permission requests with cancelled.",
    source=f"protocol/v1/prompt-turn#cancellation; {ASKING}",
    scope="session",
    transports=ORDERED,
)
class CancelsPermissions(Check):
    """An error -32800 is the same (page "Cancellation"). Silence counts once the client has seen the end of the turn:
    when it has begun another one, and leaves in order."""

    def start(self) -> None:
        self.turns: set[Any] = set()
        self.open: dict[Any, Shown] = {}
        self.due: dict[Any, Shown] = {}
        self.left_out: dict[Any, Shown] = {}

    @got("session/prompt")
    def prompted(self, message: Message) -> None:
        if not self.turns:
            self.left_out |= self.due
        self.turns.add(message.id)

    @sent("reply:session/prompt")
    def ended_turn(self, message: Message) -> None:
        self.turns.discard(message.id)

    @sent(f"request:{PERMISSION}")
    def asked(self, message: Message) -> None:
        self.open[message.id] = self.keep(message)

    @got("session/cancel")
    def cancelled(self, message: Message) -> None:
        if self.turns:
            self.due |= self.open
            self.open = {}

    @got(f"answer:{PERMISSION}")
    def answered(self, message: Message) -> None:
        self.open.pop(message.id, None)
        self.left_out.pop(message.id, None)
        asked = self.due.pop(message.id, None)
        if asked is None:
            return
        if _outcome(message) == "cancelled" or error_code(message) == CANCELLED:
            self.met()
        else:
            self.broken(f"it answered {word(_outcome(message))}", asked, message)

    def ended(self) -> None:
        for asked in self.left_out.values():
            self.broken("it was never answered", asked)


@RULES.rule(
    "ACP-PERMISSION-01",
    "MUST",
    "A permission request is answered with one of the options that it offered.",
    source=ASKING,
)
class ChoosesAnOffer(Check):
    def start(self) -> None:
        self.offers: dict[Any, tuple[Shown, list[Any]]] = {}

    @sent(f"request:{PERMISSION}")
    def asked(self, message: Message) -> None:
        options = [at(option, "optionId") for option in items(params(message).get("options"))]
        self.offers[message.id] = (self.keep(message), options)

    @got(f"answer:{PERMISSION}")
    def answered(self, message: Message) -> None:
        asked = self.offers.pop(message.id, None)
        chosen = at(message.data, "result", "outcome", "optionId")
        if asked is None or _outcome(message) != "selected" or not isinstance(chosen, str):
            return
        if chosen in asked[1]:
            self.met()
        else:
            self.broken(f"it chose {word(chosen)}", asked[0], message)


# --- files and terminals


@RULES.rule(
    "ACP-FILE-01",
    "MUST",
    "The content of a file has no more lines than the limit that was asked for.",
    source=f"{FILES}#reading-files",
)
class KeepsTheLineLimit(Check):
    """A limit of 0 is not judged."""

    def start(self) -> None:
        self.limits: dict[Any, tuple[Shown, int]] = {}

    @sent("request:fs/read_text_file")
    def asked(self, message: Message) -> None:
        limit = params(message).get("limit")
        if type(limit) is int and limit > 0:
            self.limits[message.id] = (self.keep(message), limit)

    @got("answer:fs/read_text_file")
    def answered(self, message: Message) -> None:
        asked = self.limits.pop(message.id, None)
        content = at(message.data, "result", "content")
        if asked is None or not isinstance(content, str):
            return
        lines = content.count("\n") + (content[-1:] not in ("", "\n"))
        if lines <= asked[1]:
            self.met()
        else:
            self.broken(f"it gave {lines} lines", asked[0], message)


class Terminals(Check):
    """Knows which terminals there are."""

    def start(self) -> None:
        self.creating: dict[Any, tuple[Shown, Any]] = {}
        self.limits: dict[str, tuple[Shown, Any]] = {}
        self.reading: dict[Any, str] = {}

    @sent("request:terminal/create")
    def asked(self, message: Message) -> None:
        self.creating[message.id] = (self.keep(message), params(message).get("outputByteLimit"))

    @sent("request:terminal/output")
    def reads(self, message: Message) -> None:
        self.reading[message.id] = str(params(message).get("terminalId"))

    @sent("request:terminal/release")
    def releases(self, message: Message) -> None:
        self.limits.pop(str(params(message).get("terminalId")), None)

    @got("answer:terminal/create")
    def created(self, message: Message) -> None:
        asked = self.creating.pop(message.id, None)
        id = at(message.data, "result", "terminalId")
        if asked is not None and isinstance(id, str):
            self.named(message, id, asked[0])
            self.limits[id] = asked

    def named(self, message: Message, id: str, asked: Shown) -> None:
        """A terminal has got its id."""


@RULES.rule(
    "ACP-TERMINAL-01",
    "MUST",
    "The output of a terminal has no more bytes than the limit it was created with.",
    source=f"{TERMINALS}#executing-commands",
)
class KeepsTheByteLimit(Terminals):
    """Not judged where U+FFFD stands for bytes that were no UTF-8: it is longer than what it stands for."""

    @got("answer:terminal/output")
    def answered(self, message: Message) -> None:
        asked = self.limits.get(self.reading.pop(message.id, ""))
        output = at(message.data, "result", "output")
        if asked is None or type(asked[1]) is not int or not isinstance(output, str) or "\ufffd" in output:
            return
        size = len(output.encode())
        if size <= max(asked[1], 0):
            self.met()
        else:
            self.broken(f"it gave {size} bytes", asked[0], message)


@RULES.rule(
    "ACP-TERMINAL-02",
    "MUST",
    "A terminal gets an id that no other open terminal has.",
    source=f"{TERMINALS}#executing-commands",
)
class NamesTerminalsApart(Terminals):
    def named(self, message: Message, id: str, asked: Shown) -> None:
        if id in self.limits:
            self.broken(f"{word(id)} is the id of another one", self.limits[id][0], message)
        elif self.limits:
            self.met()


# --- elicitation


@RULES.rule(
    "ACP-ELICIT-01",
    "SHOULD",
    "The content of an accepted form keeps to the schema that was asked for.",
    source=f"{ELICITATION}#responses",
)
class KeepsToTheForm(Check):
    """Of the schema, types, choices, and what is required are looked at. No content at all is not judged."""

    def start(self) -> None:
        self.forms: dict[Any, tuple[Shown, Any]] = {}

    @sent("request:elicitation/create")
    def asked(self, message: Message) -> None:
        schema = params(message).get("requestedSchema")
        if isinstance(schema, dict):
            self.forms[message.id] = (self.keep(message), schema)

    @got("answer:elicitation/create")
    def answered(self, message: Message) -> None:
        asked = self.forms.pop(message.id, None)
        content = at(message.data, "result", "content")
        if asked is None or at(message.data, "result", "action") != "accept" or not isinstance(content, dict):
            return
        problem = _form_problem(asked[1], content)
        if problem is None:
            self.met()
        else:
            self.broken(problem, asked[0], message)


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
}


def _form_problem(schema: dict[str, Any], content: dict[str, Any]) -> str | None:
    for name in items(schema.get("required")):
        if name not in content:
            return f"{word(name)} is missing"
    for name, value in content.items():
        field = at(schema, "properties", name)
        kinds = _TYPES.get(str(at(field, "type")))
        if kinds is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            return f"{name} was {word(value)}, not of type {field['type']}"
        choices = items(at(field, "enum")) or [at(one, "const") for one in items(at(field, "oneOf"))]
        if choices and value not in choices:
            return f"{name} was {word(value)}, none of the choices"
    return None


@RULES.rule(
    "ACP-ELICIT-02",
    "MUST",
    "A client with elicitation answers a mode that it did not advertise with the error -32602.",
    source=f"{ELICITATION}#url-completion",
)
class RefusesOtherModes(Check):
    """A client that has no elicitation at all need not know the method."""

    knows = (Client,)

    def start(self) -> None:
        self.other: dict[Any, Shown] = {}

    @sent("request:elicitation/create")
    def asked(self, message: Message) -> None:
        modes = [mode for mode in ("form", "url") if self.consult(Client).has("elicitation", mode)]
        if modes and params(message).get("mode") not in modes:
            self.other[message.id] = self.keep(message)

    @got("answer:elicitation/create")
    def answered(self, message: Message) -> None:
        asked = self.other.pop(message.id, None)
        if asked is None:
            return
        if error_code(message) == INVALID_PARAMS:
            self.met()
        else:
            told = "a result" if is_result(message) else f"error {error_code(message)}"
            self.broken(f"it answered with {told}", asked, message)


class HasItsModes(Check):
    """A mode of elicitation that was advertised is known; `about` is the mode."""

    knows = (Client,)

    def start(self) -> None:
        self.asked: dict[Any, Shown] = {}

    @sent("request:elicitation/create")
    def ask(self, message: Message) -> None:
        if params(message).get("mode") == self.about and self.consult(Client).has("elicitation", self.about):
            self.asked[message.id] = self.keep(message)

    @got("answer:elicitation/create")
    def answered(self, message: Message) -> None:
        asked = self.asked.pop(message.id, None)
        if asked is None:
            return
        if error_code(message) == METHOD_NOT_FOUND:
            self.broken("it does not know elicitation/create", asked, message)
        else:
            self.met()


for _id, _mode in (("ACP-CLIENT-05", "form"), ("ACP-CLIENT-06", "url")):
    _sentence = f"A client that advertises elicitation.{_mode} has elicitation/create."
    _page = "protocol/v1/initialization#elicitation"
    RULES.add(_id, "MUST", _sentence, HasItsModes, source=_page, about=_mode)
