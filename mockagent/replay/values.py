"""Values that will be others when a recording is played again: the ids of sessions, and what the client has answered.

In what the agent says they become placeholders; all other text is made safe from being taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

LONG_ENOUGH = 6
"""Characters from which a text is looked for inside of others; a shorter one is no value, but a word."""

MOST_SOURCES = 100
"""Values of the client that are looked for; what is said again is said soon."""

_FIXED = frozenset({
    "sessionUpdate", "status", "kind", "type", "stopReason", "role", "priority", "mimeType", "optionId",
})  # fmt: skip
"""Members whose values are the protocol's words."""


class Source(msgspec.Struct, eq=False):
    """A value of the client, and where it came from.

    Attributes:
        text: the value.
        name: under which it is kept.
        pointer: where it is in the answer.
        saves: what the step that gets the answer keeps; filled as soon as the value is met again.
    """

    text: str
    name: str
    pointer: str
    saves: dict[str, str]


class Values:
    """What is known to change, in the order in which it came up."""

    def __init__(self) -> None:
        self.sessions: dict[str, str] = {}
        """Sessions that the recording has made -> the name under which the id is kept."""
        self.stored: set[str] = set()
        """Sessions that were there before; their ids stay."""
        self.used: set[str] = set()
        """Sessions whose id is met in another one."""
        self._count = 0
        self._sources: dict[str, Source] = {}
        self._pattern: re.Pattern[str] | None = None

    def session(self, id: str) -> None:
        """A session was made."""
        self.sessions.setdefault(id, f"session_{len(self.sessions) + 1}")
        self._pattern = None

    def answered(self, result: Any, saves: dict[str, str]) -> None:
        """The client has answered a request; its values may come again."""
        for pointer, text in _texts(result, "/result"):
            if len(text) >= LONG_ENOUGH and not pointer.startswith("/result/outcome") and text not in self.sessions:
                self._count += 1
                name = f"{re.sub(r'[^A-Za-z0-9]+', '_', pointer[8:]).strip('_') or 'value'}_{self._count}"
                self._sources.setdefault(text, Source(text, name, pointer, saves))
                if len(self._sources) > MOST_SOURCES:
                    del self._sources[next(iter(self._sources))]
                self._pattern = None

    def template(self, value: Any, session: str | None) -> Any:
        """A value with placeholders for what will be another.

        Args:
            session: in which it is said.
        """
        if isinstance(value, dict):
            return {
                key: _escaped(part) if key in _FIXED else self.template(part, session) for key, part in value.items()
            }
        if isinstance(value, list):
            return [self.template(part, session) for part in value]
        return self._text(value, session) if isinstance(value, str) else value

    def _text(self, text: str, session: str | None) -> str:
        if text in self.sessions or (text == session and text in self.stored):
            return self._id(text, session)
        if len(text) < LONG_ENOUGH:
            return _escape(text)
        if self._pattern is None:
            known = [*self._sources, *(id for id in self.sessions if len(id) >= LONG_ENOUGH)]
            self._pattern = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))) or r"(?!)")
        return _replace(self._pattern, text, lambda found: self._placeholder(found, session))

    def _placeholder(self, text: str, session: str | None) -> str:
        if text in self.sessions:
            return self._id(text, session)
        source = self._sources[text]
        source.saves[source.name] = source.pointer
        return f"${{saved.{source.name}}}"

    def _id(self, id: str, session: str | None) -> str:
        if id == session:
            return "${session.id}"
        self.used.add(id)
        return f"${{saved.{self.sessions[id]}}}"


def _replace(pattern: re.Pattern[str], text: str, put: Callable[[str], str]) -> str:
    """The text with every match replaced, and all between them escaped."""
    done, at = "", 0
    for match in pattern.finditer(text):
        done += _escape(text[at : match.start()]) + put(match.group())
        at = match.end()
    return done + _escape(text[at:])


def _escape(text: str) -> str:
    return text.replace("${", "$${")


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _escaped(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_escaped(part) for part in value]
    return _escape(value) if isinstance(value, str) else value


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Every text in a value, with where it is."""
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _texts(part, f"{pointer}/{index}")
