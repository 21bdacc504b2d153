"""What people will write, and what they should have written: sentences for YAML's syntax errors.

Looks at the line where the parser gave up; knows nothing of scenarios but how a step reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mockagent.scenario.model import Place
from mockagent.scenario.problems import Problem


class _Rule(NamedTuple):
    """`problem` as libyaml words it, a look at the line, and the advice."""

    problem: str
    fits: Callable[[str, int], bool]
    advice: str


def _always(line: str, column: int) -> bool:
    return True


def _brace(line: str, column: int) -> bool:
    return "${" in line


def _at(mark: str) -> Callable[[str, int], bool]:
    return lambda line, column: line[column : column + 1] == mark


def _after_quote(line: str, column: int) -> bool:
    return line[:column].rstrip()[-1:] in ("'", '"')


def _second_colon(line: str, column: int) -> bool:
    return line.count(": ") > 1


_RULES: tuple[_Rule, ...] = (
    _Rule(
        "did not find expected ',' or",
        _brace,
        'inside `{...}` and `[...]` a text with a placeholder has to be quoted: `{say: "${prompt}"}`',
    ),
    _Rule("did not find expected ',' or", _always, "a `,` or the closing bracket is missing before this place"),
    _Rule(
        "did not find expected alphabetic or numeric character",
        _always,
        'a text that begins with `*` or `&` has to be quoted: `prompt: "*weather*"`',
    ),
    _Rule(
        "mapping values are not allowed",
        _second_colon,
        'a text with a colon and a space in it has to be quoted: `say: "hi: there"`',
    ),
    _Rule(
        "mapping values are not allowed",
        _always,
        "no key can stand here: the line before has a value already, or the indentation is off",
    ),
    _Rule("cannot start any token", _at("\t"), "a tab cannot indent; use spaces"),
    _Rule("cannot start any token", _always, "a text that begins with this character has to be quoted"),
    _Rule("unknown escape character", _always, "write the backslash twice, or use single quotes"),
    _Rule(
        "did not find expected key",
        _after_quote,
        "words stand behind the closing quote; put quotes around the whole text",
    ),
    _Rule("did not find expected key", _always, "a key is expected here; look at the indentation"),
    _Rule("did not find expected '-' indicator", _always, "an entry of the list (`- `) is expected here"),
    _Rule("could not find expected ':'", _always, "a `:` is missing: either this is no key, or its value is"),
    _Rule("block sequence entries are not allowed", _always, "a list starts in a line of its own"),
    _Rule("found unexpected end of stream", _always, "a quote that was opened has no end"),
    _Rule("invalid Unicode character", _always, "YAML cannot say half a surrogate pair; use `send` with a JSON text"),
    _Rule("maximum nesting depth", _always, "the file is nested too deeply"),
)


def explain(error: Any, text: str, file: str) -> Problem:
    """A YAML error as a problem with its place and, where we know one, the way out.

    Args:
        error: a `yaml.YAMLError` of the C parser.
        text: the whole file.
        file: its name.
    """
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return _unreadable(error, text, file)
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    at, column = mark.line, mark.column
    start = getattr(error, "context_mark", None)
    what = str(error.problem)
    if start is not None and what.startswith("did not find expected ',' or") and start.line < len(lines):
        # the parser notices a broken `${...}` one token late, sometimes in the next line
        if "${" not in line and "${" in lines[start.line]:
            line = lines[start.line]
        spot = line.find("${")
        if spot >= 0 and line is not lines[min(at, len(lines) - 1)]:
            at, column = start.line, spot
    for rule in _RULES:
        if rule.problem in what and rule.fits(line, column):
            return Problem(Place(file, at + 1, column + 1), f"not YAML: {rule.advice}")
    return Problem(Place(file, at + 1, column + 1), f"not YAML: {what}")


def _unreadable(error: Any, text: str, file: str) -> Problem:
    """A character that YAML does not allow at all."""
    position = getattr(error, "position", None)
    if not isinstance(position, int):
        return Problem(Place(file, 1, 1), f"not YAML: {error}")
    # libyaml counts bytes of the UTF-8 form
    before = text.encode("utf-8", "surrogatepass")[:position].decode("utf-8", "replace")
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    code = getattr(error, "character", 0)
    escape = f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}"
    advice = f"the character U+{code:04X} cannot stand in YAML as it is; in double quotes write `{escape}`"
    return Problem(Place(file, line + 1, column + 1), f"not YAML: {advice}")
