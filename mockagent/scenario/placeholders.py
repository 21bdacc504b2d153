"""Parses the placeholders of a text: `${prompt}`, `${now.http+2s}`, `${saved.NAME}`; `$${` stands for `${` itself.

Only the notation is known here; what a name stands for at play is the script's business. The loader refuses every text
that does not parse, so that at play only texts which do are left.
"""

from __future__ import annotations

from typing import NamedTuple

from mockagent.scenario.problems import listed, suggestion
from mockagent.scenario.scalars import duration

#: name -> what it stands for. A name that ends in `.` takes a word behind the dot, one in `+` an offset.
NAMES: dict[str, str] = {
    "prompt": "the text of the prompt",
    "session.id": "the session's id",
    "session.cwd": "the session's folder",
    "session.title": "the session's title",
    "turn": "the number of the turn in its session, from 1",
    "now": "the time in ISO form; takes an offset, `${now+2s}` or `${now-1h}`",
    "now.http": "the time as an HTTP date; takes an offset as well",
    "match.": "a group of the regex that matched the prompt, by number or name",
    "fake.": "an invented value of a Faker provider, such as `${fake.name}` or `${fake.title}`",
    "filler.": "so many characters of filler text, such as `${filler.1000000}`",
    "request.id": "the id of the message that is being answered",
    "saved.": "what a `save` has kept under this name",
    "value": "the old value; only in an `edit`",
}
MOST_FILLER = 100_000_000
"""Characters of filler text that a placeholder may ask for."""

_MOVABLE = frozenset({"now", "now.http"})


class Ref(NamedTuple):
    """One placeholder.

    Attributes:
        name: in full, without the offset: `prompt`, `session.id`, `now.http`, `match.1`, `fake.title`, `saved.token`
        offset: microseconds that are added to a time.
    """

    name: str
    offset: int = 0


Part = str | Ref
_parsed: dict[str, tuple[Part, ...]] = {}
_KEPT = 4096


def parse(text: str) -> tuple[Part, ...]:
    """Splits a text into literal parts and placeholders; the result is remembered.

    Raises:
        ValueError: a placeholder has no end or an unknown name; says what is allowed.
    """
    parts = _parsed.get(text)
    if parts is None:
        parts = _split(text) if "${" in text else (text,)
        if len(_parsed) >= _KEPT:
            _parsed.clear()
        _parsed[text] = parts
    return parts


def refs(text: str) -> tuple[Ref, ...]:
    """The placeholders of a text. Raises ValueError like `parse`."""
    return tuple(part for part in parse(text) if isinstance(part, Ref))


def _split(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    wrong: list[str] = []
    literal = ""
    at = 0
    while (start := text.find("${", at)) >= 0:
        if start > at and text[start - 1] == "$":
            literal += text[at : start - 1] + "${"
            at = start + 2
            continue
        literal += text[at:start]
        end = text.find("}", start)
        if end < 0:
            wrong.append(f"`{text[start : start + 30]}` has no closing brace; write `$${{` for a literal `${{`")
            break
        if literal:
            parts.append(literal)
            literal = ""
        try:
            parts.append(_ref(text[start + 2 : end].strip()))
        except ValueError as error:
            wrong.append(str(error))
        at = end + 1
    if wrong:
        raise ValueError("; ".join(wrong))
    literal += text[at:]
    if literal or not parts:
        parts.append(literal)
    return tuple(parts)


def _ref(inside: str) -> Ref:
    shown = f"${{{inside}}}"
    name, sign, shift = inside, "", ""
    for mark in "+-":
        head, found, tail = inside.partition(mark)
        if found and head.strip() in _MOVABLE:
            name, sign, shift = head.strip(), mark, tail.strip()
    if name in NAMES and not name.endswith("."):
        try:
            offset = duration(shift) if sign else 0
        except ValueError as error:
            raise ValueError(f"the offset of `{shown}`: {error}") from None
        return Ref(name, -offset if sign == "-" else offset)
    family, dot, argument = inside.partition(".")
    if family == "filler" and dot and not (argument.isdigit() and argument.isascii() and int(argument) <= MOST_FILLER):
        raise ValueError(f"`{shown}` needs a number of characters behind the dot, at most {MOST_FILLER:,}")
    if f"{family}." in NAMES and dot:
        if argument.replace("_", "a").isalnum() and argument.isascii():
            return Ref(inside)
        raise ValueError(f"`{shown}` needs a name of letters, digits and `_` behind the dot")
    allowed = [entry + ("NAME" if entry.endswith(".") else "") for entry in NAMES]
    near = suggestion(inside, NAMES)
    raise ValueError(f"unknown placeholder `{shown}`{near or f'; known: {listed(allowed)}'}")
