"""The watchers behind `expect`, one class for each word: what counts as a hit, what as a near miss, and when it is met.

They are told of messages and events by `Expect`, and hold no clock of their own: every call says what time it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

import msgspec

from mockagent.errors import NAMED
from mockagent.message import Message
from mockagent.scenario.model import Count, Expectation
from mockagent.script.match import counts, glob, same
from mockagent.script.pointer import Absent, get
from mockagent.watch.shown import Shown

#: So many near misses (and messages that show a miss) are kept for each expectation.
KEPT: Final = 3
#: So many different prompts, open permission requests, and kinds of messages are remembered.
REMEMBERED: Final = 5000

_AT_LEAST_ONE: Final = Count(low=1)
_json = msgspec.json.Encoder(enc_hook=repr).encode


class Difference(msgspec.Struct, frozen=True):
    """One member that was not as wanted; both sides as JSON text, `(absent)` when there was none."""

    pointer: str
    wanted: str
    got: str


class Near(msgspec.Struct, frozen=True):
    """A message that was nearly it."""

    message: Shown
    why: str
    differences: list[Difference] = []


class Verdict(msgspec.Struct, frozen=True):
    """How it stands with one expectation.

    Attributes:
        expectation: in the words of the scenario.
        place: file, line and column.
        met: whether it is met, if nothing more comes.
        why: what was seen.
        shown: for something that must not be: the messages that show it.
        near: for something that is missing: what came closest, the closest first.
    """

    expectation: str
    place: str
    met: bool
    why: str
    shown: list[Shown] = []
    near: list[Near] = []


class Watcher:
    """What all of them share: the words, the window of time, and what came close."""

    #: outgoing kinds that are looked at, beside the one that `after` names
    looks_at: ClassVar[tuple[str, ...]] = ()

    def __init__(self, entry: Expectation) -> None:
        self.entry = entry
        self.start: float | None = None
        self.within = None if entry.within is None else entry.within / 1e6
        self.shown: list[Shown] = []
        self.near: list[Near] = []

    def outgoing(self) -> Iterator[str]:
        """Kinds of outgoing messages that it has to see."""
        yield from self.looks_at
        if self.entry.after is not None:
            yield self.entry.after

    def alive(self, now: float) -> None:
        """The first sign of life of a client."""
        if self.entry.after is None:
            self.start = now

    def begin(self, name: str, neutral: str | None, now: float) -> None:
        """Opens the window if this is what `after` names."""
        after = self.entry.after
        if self.start is None and after is not None and (glob(after, name) or after == neutral):
            self.start = now

    def came(self, message: Message, now: float, small: Callable[[], Shown]) -> None:
        """The client sent a message."""

    def left(self, message: Message, now: float) -> None:
        """The mock sent a message of a kind that this one looks at."""
        self.begin(message.kind, message.neutral, now)

    def happened(self, event: str, detail: dict[str, Any], now: float) -> None:
        """An event, as the journal names it."""

    def state(self, now: float, heard: dict[str, int]) -> tuple[bool, str]:
        """Whether it is met, and what was seen."""
        raise NotImplementedError

    def verdict(self, now: float, heard: dict[str, int]) -> Verdict:
        """How it stands."""
        met, why = self.state(now, heard)
        near = [] if met else sorted(self.near, key=lambda near: len(near.differences))[:KEPT]
        return Verdict(
            expectation=describe(self.entry), place=str(self.entry.place) if self.entry.place.file else "",
            met=met, why=why, shown=[] if met else self.shown, near=near,
        )  # fmt: skip

    def timing(self, now: float) -> str | None:
        """Why a moment is outside the window, or None."""
        if self.start is None:
            return f"it came before {self.entry.after}"
        if self.within is not None and now - self.start > self.within:
            return f"it came {now - self.start:.2f} s {self._since()}, {self.within:g} s were allowed"
        return None

    def miss(self, shown: Shown, why: str, differences: list[Difference] | None = None) -> None:
        """Keeps a near miss: of those with most differences, the oldest goes first."""
        self.near.append(Near(message=shown, why=why, differences=differences or []))
        if len(self.near) > 4 * KEPT:
            self.near.remove(max(self.near, key=lambda near: len(near.differences)))

    def _since(self) -> str:
        return f"after {self.entry.after}" if self.entry.after else "after the client had come"


class _Counted(Watcher):
    """Something that has to come so many times."""

    def __init__(self, entry: Expectation) -> None:
        super().__init__(entry)
        self.count = entry.count or _AT_LEAST_ONE
        self.hits = 0

    def hit(self, now: float, shown: Callable[[], Shown], differences: list[Difference], why: str) -> None:
        """It came: counts if it is the right one at the right time, else it was near."""
        outside = self.timing(now)
        if differences or outside:
            self.miss(shown(), outside or why, differences)
            return
        self.hits += 1
        if len(self.shown) < KEPT:
            self.shown.append(shown())

    def state(self, now: float, heard: dict[str, int]) -> tuple[bool, str]:
        met = counts(self.count, self.hits)
        why = f"seen {_times(self.hits)}, expected {_counted(self.count)}"
        if not met and not self.hits and not self.near:
            why += self.absent(heard)
        return met, why

    def absent(self, heard: dict[str, int]) -> str:
        """More words for when nothing like it came at all."""
        if self.start is None and self.entry.after is not None:
            return f"; {self.entry.after} never happened"
        return ""


class _Request(_Counted):
    """`request: METHOD`"""

    def came(self, message: Message, now: float, small: Callable[[], Shown]) -> None:
        if _named(self.entry.value, message):
            self.hit(now, small, list(_compare(self.entry.params, message)), "its params are others")

    def absent(self, heard: dict[str, int]) -> str:
        more = super().absent(heard)
        if not heard:
            return more + "; the client sent nothing"
        import difflib

        close = difflib.get_close_matches(str(self.entry.value), heard, 1, 0.75)
        if close:
            return f"{more}; the client sent {close[0]}"
        kinds = list(heard)
        return f"{more}; the client sent {', '.join(kinds[:10])}{', ...' if len(kinds) > 10 else ''}"


class _Never(_Request):
    """`never: METHOD`"""

    def state(self, now: float, heard: dict[str, int]) -> tuple[bool, str]:
        return not self.hits, f"seen {_times(self.hits)}"

    def verdict(self, now: float, heard: dict[str, int]) -> Verdict:
        self.near.clear()  # nearly doing what is forbidden is no fault
        return super().verdict(now, heard)


class _Permission(_Counted):
    """`permission: cancelled`, `granted`, `denied`, or the id of an option."""

    looks_at = ("request:session/request_permission",)

    def __init__(self, entry: Expectation) -> None:
        super().__init__(entry)
        self._options: dict[tuple[str, Any], dict[str, str]] = {}

    def left(self, message: Message, now: float) -> None:
        super().left(message, now)
        if message.kind not in self.looks_at or not isinstance(message.data, dict):
            return
        options = (message.data.get("params") or {}).get("options") or []
        if len(self._options) >= REMEMBERED:
            del self._options[next(iter(self._options))]
        self._options[message.peer.id, _key(message.data.get("id"))] = {
            str(option.get("optionId")): str(option.get("kind")) for option in options if isinstance(option, dict)
        }

    def came(self, message: Message, now: float, small: Callable[[], Shown]) -> None:
        wanted = str(self.entry.value)
        for names in self._answers(message):
            right = any(glob(wanted, name) for name in names)
            differences = [] if right else [Difference("(answer)", wanted, names[0])]
            self.hit(now, small, differences, f"the client answered {names[0]}")

    def _answers(self, message: Message) -> Iterator[tuple[str, ...]]:
        """The names of each answer to a permission request that a message holds, the plainest first."""
        if message.kind == "answer:session/request_permission":
            yield self._acp(message)
        elif message.peer.protocol == "aap" and message.neutral == "turn" and isinstance(message.data, dict):
            for part in message.data.get("messages") or ():
                if isinstance(part, dict) and part.get("role") == "tool_permission":
                    yield ("granted",) if part.get("granted") is True else ("denied",)

    def _acp(self, message: Message) -> tuple[str, ...]:
        data = message.data if isinstance(message.data, dict) else {}
        kinds = self._options.pop((message.peer.id, _key(data.get("id"))), {})
        result = data.get("result")
        outcome = result.get("outcome") if isinstance(result, dict) else None
        if not isinstance(outcome, dict):
            return ("error",) if data.get("error") is not None else ("nothing",)
        if outcome.get("outcome") != "selected":
            return (str(outcome.get("outcome")),)
        option = str(outcome.get("optionId"))
        kind = kinds.get(option, "")
        side = {"allow": ("granted",), "reject": ("denied",)}.get(kind.partition("_")[0], ())
        return (option, *side)


class _ReplyError(_Counted):
    """`reply_error: CODE, to: METHOD`"""

    def came(self, message: Message, now: float, small: Callable[[], Shown]) -> None:
        to = self.entry.to or "*"
        if not message.kind.startswith("answer:") or not glob(to, message.kind.removeprefix("answer:")):
            return
        error = message.data.get("error") if isinstance(message.data, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        wanted = self.entry.value
        if isinstance(wanted, str) and wanted in NAMED:
            wanted = NAMED[wanted].code
        right = code is not None and (wanted == code or wanted == str(code))
        seen = "a result" if error is None else f"error {code}"
        differences = [] if right else [Difference("/error/code", str(wanted), seen)]
        self.hit(now, small, differences, f"the client answered with {seen}")


class _Disconnect(Watcher):
    """`disconnect: {within}`"""

    def __init__(self, entry: Expectation) -> None:
        super().__init__(entry)
        self.at: float | None = None
        self.early = False

    def happened(self, event: str, detail: dict[str, Any], now: float) -> None:
        if event not in ("eof", "closed") or detail.get("by") == "agent":
            return
        if self.start is None:
            self.early = True
        elif self.at is None:
            self.at = now

    def state(self, now: float, heard: dict[str, int]) -> tuple[bool, str]:
        if self.start is None:
            before = "the client disconnected before" if self.early else "no client came"
            return False, f"{before}; {self.entry.after} never happened" if self.entry.after else before
        if self.at is None:
            return False, f"the client was still connected {now - self.start:.2f} s {self._since()}"
        why = f"the client disconnected {self.at - self.start:.2f} s {self._since()}"
        return self.within is None or self.at - self.start <= self.within, why


class _SingleSubmit(Watcher):
    """`single_submit: true`: no prompt is sent again with the same content once a fault has struck behind it."""

    def __init__(self, entry: Expectation) -> None:
        super().__init__(entry)
        self._faults = 0
        self._sent: dict[int, tuple[int, Shown]] = {}
        self._again = 0

    def came(self, message: Message, now: float, small: Callable[[], Shown]) -> None:
        if message.neutral != "turn" or not isinstance(message.data, dict):
            return
        params = message.data.get("params")
        content = params.get("prompt") if isinstance(params, dict) else message.data.get("messages")
        key = hash(_json(content))
        earlier = self._sent.get(key)
        if earlier is not None and earlier[0] < self._faults:
            self._again += 1
            if len(self.shown) < 2 * KEPT:
                self.shown += [earlier[1], small()]
        if earlier is None and len(self._sent) >= REMEMBERED:
            del self._sent[next(iter(self._sent))]
        self._sent[key] = (self._faults, small())

    def happened(self, event: str, detail: dict[str, Any], now: float) -> None:
        if struck(event, detail):
            self._faults += 1

    def state(self, now: float, heard: dict[str, int]) -> tuple[bool, str]:
        if self._again:
            return False, f"a prompt was sent again after a fault, {_times(self._again)}"
        return True, "no prompt was sent again after a fault"


WATCHERS: Final[dict[str, type[Watcher]]] = {
    "request": _Request,
    "never": _Never,
    "permission": _Permission,
    "reply_error": _ReplyError,
    "disconnect": _Disconnect,
    "single_submit": _SingleSubmit,
}


# --- words and comparisons


def struck(event: str, detail: dict[str, Any]) -> bool:
    """Whether an event is a fault that has fired, and not one that was skipped."""
    return event == "fault" and detail.get("what", "fired") == "fired"


def _key(id: Any) -> Any:
    """An id as part of a key; what is no id in JSON-RPC is none here."""
    return id if isinstance(id, str | int | float) else None


def _named(pattern: Any, message: Message) -> bool:
    """Whether a method, path or neutral kind (or a glob) means this message."""
    name = str(pattern)
    if glob(name, message.kind) or name == message.neutral:
        return True
    http = message.http
    return http is not None and bool(http.method) and glob(name, f"{http.method} {http.path}")


def _compare(wanted: dict[str, Any] | None, message: Message) -> Iterator[Difference]:
    """Where the params of a message are not as wanted. Params of HTTP messages are the body, or else the query."""
    if not wanted:
        return
    data = message.data
    if isinstance(data, dict) and "jsonrpc" in data:
        data = data.get("params")
    elif data is None and message.http is not None:
        data = message.http.query
    for pointer, value in wanted.items():
        try:
            found = get(data, pointer)
        except Absent:
            if value is not None:  # null asks for what is absent as well
                yield Difference(pointer, _short(value), "(absent)")
            continue
        if not same(value, found):
            yield Difference(pointer, _short(value), _short(found))


def _short(value: Any) -> str:
    text = _json(value).decode()
    return text if len(text) <= 200 else f"{text[:200]}..."


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _counted(count: Count) -> str:
    if count.numbers:
        return " or ".join(_times(number) for number in sorted(count.numbers))
    if count.high is None:
        return f"{_times(count.low or 0)} or more"
    return f"{count.low or 0} to {count.high} times"


def describe(entry: Expectation) -> str:
    """An expectation in the words of the scenario, on one line."""
    words = [f"{entry.what}: {entry.value if isinstance(entry.value, str) else _json(entry.value).decode()}"]
    if entry.to is not None:
        words.append(f"to: {entry.to}")
    if entry.count is not None:
        words.append(f"count: {_counted(entry.count)}")
    if entry.within is not None:
        words.append(f"within: {entry.within / 1e6:g}s")
    if entry.params:
        words.append(f"params: {_short(entry.params)}")
    if entry.after is not None:
        words.append(f"after: {entry.after}")
    return ", ".join(words)
