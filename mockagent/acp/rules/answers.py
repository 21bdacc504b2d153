"""Rules about answers to requests of the agent: each is answered once, in the form of its method, within its limits.

An error is an answer as good as a result, unless a rule here says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mockagent.acp.rules.book import ORDERED, RULES, Client, error_code, is_result
from mockagent.message import Message
from mockagent.watch.look import at, word
from mockagent.watch.rule import ON, Check, got, noted, sent
from mockagent.watch.shown import Shown

METHOD_NOT_FOUND: Final = -32601

REMEMBERED: Final = 200
"""So many requests are kept in full, to be shown with a second answer; of the others the ids are known."""

PERMISSION: Final = "session/request_permission"


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

    knows = (Client,)

    def start(self) -> None:
        self.open: dict[Any, Shown] = {}
        self.order: dict[Any, int] = {}
        self.read = -1

    @sent("request:*")
    def asked(self, message: Message) -> None:
        self.order[message.id] = len(self.order)
        if not _has(self.consult(Client), message):
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


def _has(client: Client, message: Message) -> bool:
    path = _NEEDS.get(message.method)
    return path is not None and (not path or client.has(*path))


class HasWhatItAdvertises(Check):
    """A method is not unknown to a client that has to have it, or has advertised it; `about` is the capability."""

    knows = (Client,)
    tolerant = True

    @got(ON)
    def answered(self, message: Message) -> None:
        able = not self.about or self.consult(Client).has(*self.about)
        if not able or not message.kind.removeprefix("answer:"):
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
