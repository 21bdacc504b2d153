"""Whatever stands in a file, loading it gives a scenario or a ScenarioError with places in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockagent.scenario.load import Problem, ScenarioError, load_text
from mockagent.scenario.model import NOWHERE

SAMPLES = [file.read_bytes() for file in sorted((Path(__file__).parent / "good").glob("every*.yaml"))]
WORDS = st.sampled_from(
    ["turns", "steps", "say", "when", "faults", "at", "tool", "&a", "*a", "${prompt}", "null", "1", "2s", "[", "]", "{",
     "}", ":", "-", ",", "\n", "  ", "\n  - ", "'", '"', "!!str", "|", ">", "#", "sessions", "agent", "include", "\t"]
)  # fmt: skip


def survives(data: bytes) -> None:
    problems: list[Problem] = []
    try:
        load_text(data)
    except ScenarioError as error:
        problems = error.problems or [Problem(NOWHERE, "an error without a problem")]
    for problem in problems:
        assert problem.place.line >= 1, problem
        assert problem.place.column >= 1, problem


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    survives(data)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    survives(text.encode("utf-8", "surrogatepass"))


@given(st.lists(WORDS, max_size=40))
def test_words_of_the_format_in_any_order(words: list[str]) -> None:
    survives(" ".join(words).replace(" \n", "\n").encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["say", "tool", "when", "steps", "at", "error", "id", "then", "ask", "options", "x", "nth"]
            ),
            inner,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["turns", "faults", "expect", "agent", "sessions", "schedule", "pace"]), JSON))
def test_any_values_under_the_keys_of_the_format(value: dict[str, object]) -> None:
    import yaml

    survives(yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass"))


@settings(max_examples=150)
@given(st.data())
def test_a_good_file_with_a_piece_cut_out(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SAMPLES))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    survives(text[:start] + data.draw(st.sampled_from([b"", b"x", b"\n", b"*", b"{", b"\0"])) + text[end:])


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_nesting_without_end_is_refused(opening: str) -> None:
    with pytest.raises(ScenarioError):
        load_text(opening * 100_000)
