"""Lines of text for the show: wrapping, cutting, and making harmless what an agent may have put into its texts.

Pure. A line is a `rich` text without an end of line; the same lines go to a terminal and, without their styles, into a
pipe, so nothing here pads, and nothing but words carries a meaning.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from rich.cells import cell_len, chop_cells
from rich.text import Text

_WORDS = re.compile(r"\S+\s*|\s+")
_CODE = re.compile(r"`[^`]+`|\*\*[^*]+\*\*")
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}
_CONTROLS |= dict.fromkeys((*range(128, 160), *range(8234, 8239), *range(8294, 8298)), 65533)


class Glyphs(msgspec.Struct, frozen=True):
    """Signs of the show, for one kind of terminal."""

    user: str
    agent: str
    bar: str
    done: str
    failed: str
    open: str
    running: str
    ask: str
    changed: str
    dot: str
    arrow: str
    more: str


UNICODE = Glyphs("❯", "●", "│", "✓", "✗", "○", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "?", "↻", " · ", "→", "…")
ASCII = Glyphs(">", "*", "|", "+", "x", "-", "/-\\|", "?", "~", " - ", "->", "...")


def shown(value: Any) -> str:
    """Any JSON value as text that does nothing to a terminal: control characters become visible signs."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text.replace("\r\n", "\n").translate(_CONTROLS).replace("\t", "    ")


def brief(value: Any, limit: int = 160) -> str:
    """The same in one line of bounded length."""
    text = " ".join(shown(value).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def cut(text: str, width: int) -> list[str]:
    """Breaks one paragraph into lines; joined again they are the text.

    A line only changes by what is appended to the last one, so that all but the last can be shown while text streams.

    Args:
        text: without line ends.
        width: cells that a line may take, spaces at its end not counted.
    """
    lines: list[str] = []
    line = ""
    for word in _WORDS.findall(text):
        if line and cell_len(line) + cell_len(word.rstrip()) > width:
            lines.append(line)
            line = ""
        if cell_len(word.rstrip()) > width:
            *whole, word = chop_cells(word, width)
            lines += whole
        line += word
    return [*lines, line]


def wrapped(text: str, width: int, *, first: Text | str = "", rest: str = "", style: str = "") -> list[Text]:
    """A text as lines with something in front of each.

    Args:
        text: with line ends; empty lines are kept.
        width: cells that a line may take, all in all.
        first: stands before the first line.
        rest: stands before all others.
        style: of the text.
    """
    room = max(width - cell_len(rest), 10)
    lines: list[Text] = []
    for paragraph in text.split("\n"):
        for piece in cut(paragraph, room):
            before = first if not lines else rest
            line = before.copy() if isinstance(before, Text) else Text(before)
            line.append_text(styled(piece.rstrip(), style))
            line.rstrip()
            lines.append(line)
    return lines


def styled(text: str, style: str) -> Text:
    """A piece of prose; `code` and **strong** in it stand out."""
    line = Text(text, style)
    line.highlight_regex(_CODE, "bold")
    return line


def clipped(lines: Sequence[str], limit: int, *, tail: bool = False) -> list[str]:
    """At most so many lines; the last one (with `tail` the first one) says how many there are besides."""
    left = len(lines) - limit
    if left <= 1:
        return list(lines)
    more = f"… {left + 1} more lines"
    return [more, *lines[left + 1 :]] if tail else [*lines[: limit - 1], more]


_DIFF_STYLES = {"+": "green", "-": "red"}


def diff(old: str | None, new: str, *, limit: int = 30) -> Iterable[tuple[str, str]]:
    """The lines of a change, each with a style: removed, added, and two around them."""
    before = [] if old is None else shown(old).splitlines()
    changes = list(difflib.unified_diff(before, shown(new).splitlines(), lineterm="", n=2))[2:]
    body = [f"{line[:1]} {line[1:200]}".rstrip() if line[:2] != "@@" else "…" for line in changes]
    for line in clipped(body[1:], limit):
        yield line, _DIFF_STYLES.get(line[:1], "dim")


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of what should be a list of objects; an awkward agent sends other things too."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
