"""Renders the reference of the scenario format as Markdown, from the tables that the validator is made of.

Knows how a page looks and nothing about any key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mockagent.errors import NAMED
from mockagent.scenario import kinds
from mockagent.scenario.blocks import BLOCKS, RAW, Diff, TerminalContent
from mockagent.scenario.conditions import ANSWER_KEYS, KEYS
from mockagent.scenario.effects import EFFECTS
from mockagent.scenario.placeholders import NAMES
from mockagent.scenario.scalars import SIZES, UNITS
from mockagent.scenario.shapes import Field, ListOf, Nullable, Record, Span
from mockagent.scenario.steps import EVERYWHERE, SIBLINGS, PaceType
from mockagent.scenario.top import FIELDS, LOOKS, ExpectationType, ScheduledType, TurnType
from mockagent.scenario.types import REQUIRED, Type
from mockagent.scenario.verbs import HISTORY_VERBS, VERBS

_GENERIC = "a mapping with `"
_ELSEWHERE = frozenset({"When", "WhenAnswered", "Pace", "Spread", "Fault", "Turn", "Scheduled", "Expectation"})
_LAYERS = {
    "answer": "What is said",
    "order": "When, and how often",
    "list": "The list of sessions",
    "wire": "Bytes",
    "life": "Connections and the process",
}


def reference() -> str:
    """The whole page."""
    parts = (_top, _notations, _content, _steps, _conditions, _placeholders, _turns, _faults, _errors, _expectations)
    seen: set[int] = set()
    return "\n".join(line for part in parts for line in part(seen)).rstrip() + "\n"


def _top(seen: set[int]) -> Iterator[str]:
    yield from (
        "# Scenario reference",
        "",
        "<!-- Made from the tables in `mockagent/scenario`; a test says when it is out of date. -->",
        "",
        "A scenario is a YAML 1.2 file in UTF-8 that holds one mapping. Every key can be left out: `{}` is a scenario.",
        "`mockagent check FILE` says what is wrong with a file and where; `mockagent schema` gives a JSON Schema for",
        "editors.",
        "",
        "`on`, `off`, `yes` and `no` are texts; there are no timestamps, no octals but `0o17`, and no tags. A number",
        "stands for its text where a text is wanted. The words that the specs enumerate (kinds of tools, stop reasons,",
        "...) are checked in scenarios with `legality: allowed`; in all others any text can stand in their place, as",
        "such a scenario may play an agent of the future.",
        "",
        "## Keys of a file",
        "",
    )
    yield from _table(FIELDS)
    for field in FIELDS:
        if field.key in ("agent", "sessions", "clock"):
            yield from _records(field.key, field.type, 3, seen)


def _notations(seen: set[int]) -> Iterator[str]:
    yield from (
        "## Notations",
        "",
        f"- **Duration**: a number and a unit ({_words(UNITS)}), such as `250ms` or `1.5s`. Where waits are drawn:",
        "  `{uniform: [10ms, 50ms]}` or `{lognormal: {median: 80ms, sigma: 0.4}}`.",
        f"- **Rate**: `60/s` (chunks a second), `2KB/s` (bytes a second; {_words(SIZES)}).",
        "- **Count**: `2`, the list `[2, 4]`, the ranges `3..`, `..4` and `2..4`.",
        "- **Glob**: `*` matches any text, `/` included. A **pattern** is a glob, or a regular expression in slashes.",
        "- **Pointer**: a JSON Pointer such as `/result/sessions/0`. In `edit` and `save` it starts at the whole",
        "  message, in `when.params` and `when.result` at that member.",
        "- **Time**: `2026-01-15T09:00:00Z`; for sessions also `2h ago` and `now`.",
        "",
        "### `pace`",
        "",
    )
    yield from _table(PaceType.fields.values())


def _content(seen: set[int]) -> Iterator[str]:
    yield from (
        "## Content",
        "",
        "Where text is wanted of a verb, a content block can stand too, or a list of both: one of the mappings below,",
        f"or a block as ACP writes it, with its `type` ({_words(RAW)}). Files are looked for beside the scenario.",
        "",
    )
    for name, block in BLOCKS.items():
        yield from _records(name, block, 3, seen)
    yield from ("The content of a tool call can also be:", "")
    yield from _records("diff", Diff, 3, seen)
    yield from _records("terminal (content)", TerminalContent, 3, seen)


def _steps(seen: set[int]) -> Iterator[str]:
    yield from (
        "## Steps",
        "",
        "A step is a mapping with exactly one verb. `stop` ends the turn from any depth; the steps behind it in its",
        "list are played after the reply has left. A turn without `stop` ends with `end_turn`.",
        "",
        "### Beside a verb",
        "",
    )
    yield from _table(SIBLINGS.values())
    groups = dict.fromkeys(verb.group for verb in VERBS.values())
    for group in groups:
        yield from (f"### Verbs: {group}", "")
        for verb in VERBS.values():
            if verb.group == group:
                yield from _verb(verb, seen)
    yield from (
        f"A history (`sessions.stored[].history`) takes {_words(HISTORY_VERBS)}.",
        "",
    )


def _verb(verb: Any, seen: set[int]) -> Iterator[str]:
    beside = [name for name in verb.siblings if name not in EVERYWHERE]
    yield from (
        f"#### `{verb.name}`",
        "",
        verb.does,
        "",
        f"- takes: {_kind(verb.payload)}",
        f"- ACP: {verb.acp}",
        f"- AAP: {verb.aap}",
    )
    if beside:
        yield f"- beside it: {_words(beside)}"
    yield from ("", "```yaml", f"- {verb.example}", "```", "")
    if verb.payload is not Span:
        yield from _records(verb.name, verb.payload, 5, seen)


def _conditions(seen: set[int]) -> Iterator[str]:
    yield from ("## `when`", "", "One map everywhere; all keys that are given must hold.", "")
    yield from _table(KEYS)
    yield from ("In `then`, two more:", "")
    yield from _table(ANSWER_KEYS)


def _placeholders(seen: set[int]) -> Iterator[str]:
    yield from (
        "## Placeholders",
        "",
        "They work in every text. A value that is exactly one placeholder keeps its JSON type. `$${` stands for `${`.",
        "Where a name has no value, the step or fault is skipped, and a `when` does not hold.",
        "",
        "| placeholder | stands for |",
        "| --- | --- |",
    )
    for name, words in NAMES.items():
        yield f"| `${{{name + 'NAME' if name.endswith('.') else name}}}` | {words} |"
    yield ""


def _turns(seen: set[int]) -> Iterator[str]:
    yield from ("## `turns`", "")
    yield from _table(TurnType.fields.values())
    yield from ("## `schedule`", "")
    yield from _table(ScheduledType.fields.values())


def _faults(seen: set[int]) -> Iterator[str]:
    yield from (
        "## `faults`",
        "",
        "A fault is `at`, `when`, `save` and effects. Faults fire in the order of the file; the effects of one fault",
        "apply from meaning to bytes. `at` is one of these, or a glob over them:",
        "",
        f"- what comes in: {_words(kinds.ACP_IN)}, any method that begins with `_`, {_words(kinds.HTTP_IN)}",
        "- what goes out: `reply:METHOD`, `update:KIND`, `request:METHOD`, `notify:METHOD`, `event:NAME`, `raw`",
        "- a neutral kind, which means both protocols:",
        "",
        "| kind | ACP | AAP |",
        "| --- | --- | --- |",
    )
    for kind, (acp, aap) in (kinds.NEUTRAL_IN | kinds.NEUTRAL_OUT).items():
        yield f"| `{kind}` | {acp} | {aap} |"
    yield from ("", "- a point in life:", "", "| point | when |", "| --- | --- |")
    for point, words in kinds.POINTS.items():
        yield f"| `{point}` | {words} |"
    yield ""
    for layer, title in _LAYERS.items():
        yield from (f"### {title}", "")
        for effect in EFFECTS.values():
            if effect.layer == layer:
                yield from _effect(effect, seen)


def _effect(effect: Any, seen: set[int]) -> Iterator[str]:
    yield from (f"#### `{effect.name}`", "", effect.does, "", f"- takes: {_kind(effect.type)}")
    if len(effect.transports) < 3:
        yield f"- only over: {_words(effect.transports)}"
    if effect.against:
        yield f"- not together with: {_words(effect.against)}"
    yield from ("", "```yaml", f"- {effect.example}", "```", "")
    if effect.type is not Span:
        yield from _records(effect.name, effect.type, 5, seen)


def _errors(seen: set[int]) -> Iterator[str]:
    yield from ("## Named errors", "", "| name | ACP code | `data.reason` | AAP status |", "| --- | --- | --- | --- |")
    for name, row in NAMED.items():
        yield f"| `{name}` | {row.code} | {f'`{row.reason}`' if row.reason else ''} | {row.status} |"
    yield ""


def _expectations(seen: set[int]) -> Iterator[str]:
    yield from (
        "## `expect`",
        "",
        f"Each entry has exactly one of {_words(LOOKS)}, and what else it wants beside it.",
        "",
    )
    yield from _table(ExpectationType().fields.values())


# --- tables


def _table(fields: Iterable[Field]) -> Iterator[str]:
    yield from ("| key | value | default | what it does | example |", "| --- | --- | --- | --- | --- |")
    for field in fields:
        default = "*required*" if field.default is REQUIRED else str(field.default or "")
        example = f"`{field.example}`" if field.example else ""
        cells = (f"`{field.key}`", _kind(field.type), default, field.doc, example)
        yield "| " + " | ".join(cell(words) for words in cells) + " |"
    yield ""


def cell(words: str) -> str:
    """Text as it has to stand in a cell of a table."""
    return " ".join(words.replace("|", "\\|").split("\n"))


def _kind(type: Type) -> str:
    """The words of a type, short where its keys have a table of their own."""
    if isinstance(type, Record) and type.words.startswith(_GENERIC):
        return "a mapping"
    if (
        isinstance(type, ListOf)
        and isinstance(type.entry, Record)
        and type.words == f"a list, each entry {type.entry.words}"
    ):
        return "a list of mappings"
    if isinstance(type, Nullable):
        return f"{_kind(type.kind)}, or `null`"
    return type.words


def _records(name: str, type: Type, level: int, seen: set[int]) -> Iterator[str]:
    """The tables of all records that a type holds, each once."""
    if id(type) in seen or (isinstance(type, Record) and type.name in _ELSEWHERE):
        return
    seen.add(id(type))
    if isinstance(type, Record):
        if level < 5 or "[]" in name or "." in name:  # else the heading of the verb or effect stands just above
            yield from (f"{'#' * level} `{name}`", "")
        yield from _table(type.fields.values())
        for field in type.fields.values():
            yield from _records(f"{name}.{field.key}", field.type, min(level + 1, 6), seen)
        return
    for inner in type.inner():
        yield from _records(f"{name}[]" if isinstance(type, ListOf) else name, inner, level, seen)


def _words(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":  # python -m mockagent.scenario.reference > docs/scenario-reference.md
    import sys

    sys.stdout.write(reference())
