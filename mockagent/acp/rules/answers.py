"""Rules about answers to requests of the agent: each is answered once, in the form of its method, within its limits.

An error is an answer as good as a result, unless a rule here says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mockagent.acp.rules.book import ORDERED, RULES, at, error_code, is_result, items, params, word
from mockagent.message import Message
from mockagent.watch.rule import ON, Check, got, noted, sent
from mockagent.watch.shown import Shown

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
CANCELLED: Final = -32800

REMEMBERED: Final = 200
"""So many requests are kept in full, to be shown with a second answer; of the others the ids are known."""

PERMISSION: Final = "session/request_permission"
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


# --- every request, once


class Answers(Check):
    """Counts under which ids requests have left, and how often each was answered."""

    def start(self) -> None:
        self.left: dict[Any, int] = {}
        self.came: dict[Any, int] = {}
        self.asked: dict[Any, Shown] = {}

    @sent("request:*")
    def ask(self, message: Message) -> None:
        self.left[message.id] = self.left.get(message.id, 0) + 1
        self.asked[message.id] = self.keep(message)
        if len(self.asked) > REMEMBERED:
            del self.asked[next(iter(self.asked))]

    @sent("raw")
    def made_up(self, message: Message) -> None:
        """The scenario's own words may be a request; they count as damaged."""

    def damaged(self, message: Message) -> None:
        """Whatever it was asked, and under whichever id, the client may answer it."""
        if not isinstance(message.data, dict):
            self.blind = True
        elif "method" in message.data and isinstance(message.data.get("id"), str | int | float | None):
            for id in {message.data.get("id"), message.id if message.kind != "raw" else None}:
                self.left[id] = self.left.get(id, 0) + 1

    @got("answer:*")
    def answered(self, message: Message) -> None:
        if message.id is None and not is_result(message):
            return  # a complaint about something that the client could not read
        self.came[message.id] = self.came.get(message.id, 0) + 1
        self.judge(message)

    def judge(self, message: Message) -> None:
        """Looks at an answer; it has been counted."""
        raise NotImplementedError


@RULES.rule(
    "ACP-ANSWER-01",
    "MUST",
    "An answer carries the id of a request that was asked.",
    source="protocol/v1/schema#requestid; JSON-RPC 2.0, section 5",
)
class AnswersWhatWasAsked(Answers):
    def judge(self, message: Message) -> None:
        if message.id in self.left:
            self.met()
        else:
            self.broken(f"no request had the id {word(message.id)}", message)


@RULES.rule(
    "ACP-ANSWER-02",
    "MUST",
    "A request is answered once.",
    source="JSON-RPC 2.0, section 5",
)
class AnswersOnce(Answers):
    def judge(self, message: Message) -> None:
        left = self.left.get(message.id, 0)
        if not left:
            return
        if self.came[message.id] <= left:
            self.met()
        else:
            asked = self.asked.get(message.id)
            self.broken(f"this is answer number {self.came[message.id]}", *([asked] if asked else []), message)


@RULES.rule(
    "ACP-ANSWER-03",
    "MUST",
    "A request for something that the client does not have is answered too, with an error.",
    source="protocol/v1/extensibility#custom-requests; JSON-RPC 2.0, section 5",
    transports=ORDERED,
)
class AnswersTheUnknown(Check):
    """Judged when the client ends the connection in order, for requests ahead of one that it did answer: those it had
    read. Only requests are looked at that need neither a user nor time: extensions, and what was not advertised."""

    def start(self) -> None:
        self.able: Any = None
        self.open: dict[Any, Shown] = {}
        self.order: dict[Any, int] = {}
        self.read = -1

    @got("initialize")
    def introduced(self, message: Message) -> None:
        self.able = params(message).get("clientCapabilities")

    @sent("request:*")
    def asked(self, message: Message) -> None:
        self.order[message.id] = len(self.order)
        if not _has(self.able, message):
            self.open[message.id] = self.keep(message)

    @got("answer:*")
    def answered(self, message: Message) -> None:
        if self.open.pop(message.id, None) is not None:
            self.met()
        self.read = max(self.read, self.order.get(message.id, -1))

    @noted("eof", "closed")
    def left(self, detail: dict[str, Any]) -> None:
        if self.peer.transport == "ws" and detail.get("code") not in (1000, 1001):
            return
        for id, asked in self.open.items():
            if self.order[id] < self.read:
                self.broken("it was never answered", asked)
        self.open.clear()


_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    PERMISSION: (),
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    "terminal/create": ("terminal",),
    "terminal/output": ("terminal",),
    "terminal/wait_for_exit": ("terminal",),
    "terminal/kill": ("terminal",),
    "terminal/release": ("terminal",),
    "elicitation/create": ("elicitation",),
}
"""Methods of clients, with the capability that a client advertises for each."""


def _has(able: Any, message: Message) -> bool:
    path = _NEEDS.get(message.method)
    return path is not None and (not path or bool(at(able, *path)))


class HasWhatItAdvertises(Check):
    """A method is not unknown to a client that has to have it, or has advertised it; `about` is the capability."""

    tolerant = True

    def start(self) -> None:
        self.able = not self.about

    @got("initialize")
    def introduced(self, message: Message) -> None:
        value = at(params(message), "clientCapabilities", *self.about)
        self.able = not self.about or (value is not None and value is not False)

    @got(ON)
    def answered(self, message: Message) -> None:
        if not self.able or not message.kind.removeprefix("answer:"):
            return
        if error_code(message) == METHOD_NOT_FOUND:
            self.broken(f"it does not know {message.method}", message)
        else:
            self.met()


for _id, _methods, _where, _page in (
    ("ACP-CLIENT-01", (PERMISSION,), (), "protocol/v1/overview#client"),
    ("ACP-CLIENT-02", ("fs/read_text_file",), ("fs", "readTextFile"), "protocol/v1/initialization#file-system"),
    ("ACP-CLIENT-03", ("fs/write_text_file",), ("fs", "writeTextFile"), "protocol/v1/initialization#file-system"),
    ("ACP-CLIENT-04", ("terminal/*",), ("terminal",), "protocol/v1/initialization#terminal"),
):
    RULES.add(
        _id,
        "MUST",
        f"A client that advertises {'.'.join(_where)} has {_methods[0]}."
        if _where
        else "Every client has " + PERMISSION + ".",
        HasWhatItAdvertises,
        source=_page,
        on=tuple(f"answer:{method}" for method in _methods),
        about=_where,
    )


# --- shapes


def _object_or_null(result: Any) -> str | None:
    return None if result is None or isinstance(result, dict) else f"the result was {word(result)}, not an object"


def _object(result: Any) -> str | None:
    return None if isinstance(result, dict) else f"the result was {word(result)}, not an object"


def _with(**members: type) -> Callable[[Any], str | None]:
    def problem(result: Any) -> str | None:
        if not isinstance(result, dict):
            return _object(result)
        for name, kind in members.items():
            if not isinstance(result.get(name), kind):
                return f"{name} was {word(result.get(name))}"
        return None

    return problem


def _permission(result: Any) -> str | None:
    outcome = at(result, "outcome")
    chosen = at(outcome, "outcome")
    if chosen == "cancelled" or (chosen == "selected" and isinstance(at(outcome, "optionId"), str)):
        return None
    return f"outcome was {word(outcome)}"


class Shape(Check):
    """A result has the form of its method; `about` says what is wrong with it, or None."""

    tolerant = True

    @got(ON)
    def answered(self, message: Message) -> None:
        if not is_result(message):
            return
        problem = self.about(message.data.get("result"))
        if problem is None:
            self.met()
        else:
            self.broken(problem, message)


for _number, (_method, _form, _problem) in enumerate(
    (
        (PERMISSION, "an outcome: cancelled, or selected with an optionId", _permission),
        ("fs/read_text_file", "the content, a string", _with(content=str)),
        ("fs/write_text_file", "an object, or null", _object_or_null),
        ("terminal/create", "the terminalId, a string", _with(terminalId=str)),
        ("terminal/output", "the output, a string, and whether it was truncated", _with(output=str, truncated=bool)),
        ("terminal/wait_for_exit", "an object", _object),
        ("terminal/kill", "an object, or null", _object_or_null),
        ("terminal/release", "an object, or null", _object_or_null),
        ("elicitation/create", "the action, a string", _with(action=str)),
    ),
    1,
):
    RULES.add(
        f"ACP-RESULT-{_number:02}",
        "MUST",
        f"The result of {_method} is {_form}." if _form.startswith("an o") else f"The result of {_method} has {_form}.",
        Shape,
        source=f"protocol/v1/schema#{_method.replace('/', '-')}",
        on=(f"answer:{_method}",),
        about=_problem,
    )


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

    def start(self) -> None:
        self.modes: set[str] = set()
        self.other: dict[Any, Shown] = {}

    @got("initialize")
    def introduced(self, message: Message) -> None:
        able = at(params(message), "clientCapabilities", "elicitation")
        self.modes = {mode for mode in ("form", "url") if at(able, mode) is not None}

    @sent("request:elicitation/create")
    def asked(self, message: Message) -> None:
        if self.modes and params(message).get("mode") not in self.modes:
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

    def start(self) -> None:
        self.able = False
        self.asked: dict[Any, Shown] = {}

    @got("initialize")
    def introduced(self, message: Message) -> None:
        self.able = at(params(message), "clientCapabilities", "elicitation", self.about) is not None

    @sent("request:elicitation/create")
    def ask(self, message: Message) -> None:
        if self.able and params(message).get("mode") == self.about:
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
