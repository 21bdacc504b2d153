"""The form of a bank of words."""

from __future__ import annotations

from typing import NamedTuple

Lines = tuple[str, ...]


class Bank(NamedTuple):
    """Words of one locale. `{thing}` stands for one of `things`, `{place}` for one of `places`, `{file}` for a path.

    Attributes:
        things: what there is to work on, in the form in which all sentences need it.
        places: where it is; an empty one means that nothing is said of it.
        titles: of sessions.
        asks: first prompts.
        more: later prompts.
        thoughts: what the agent thinks.
        answers: what it says after its work.
        reads, runs: titles of tool calls that read `{file}`, and that run the tests.
        edits: the same for changes to `{file}`.
        plan: steps of a plan.
        passed: what the tests print; `{n}` is their number.
        space: what stands between the words of a title and its place.
    """

    things: Lines
    places: Lines
    titles: Lines
    asks: Lines
    more: Lines
    thoughts: Lines
    answers: Lines
    reads: Lines
    edits: Lines
    runs: Lines
    plan: Lines
    passed: str
    space: str = " "
