"""The algebra of `session_info_update`: omitted keeps, null clears, `_meta` merges recursively."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario.model import TitleLimit
from mockagent.world.metadata import clean_title, merge, title_from

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
KEYS = st.sampled_from("xyz")
METAS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    KEYS,
    st.recursive(SCALARS | st.lists(SCALARS, max_size=2), lambda inner: st.dictionaries(KEYS, inner, max_size=3)),
    max_size=3,
)


def solid(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """A state as it can be: made by merging into nothing, so without any null."""
    return merge(None, meta)


def nulls(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and any(map(nulls, value.values())))


def test_null_as_a_whole_removes_everything_and_an_empty_object_nothing() -> None:
    assert merge({"a": 1}, None) is None
    assert merge({"a": {"b": 1}}, {}) == {"a": {"b": 1}}


def test_a_null_inside_removes_that_key_at_its_depth_only() -> None:
    old = {"a": {"b": 1, "c": {"d": 2, "e": 3}}, "f": 4}
    assert merge(old, {"a": {"c": {"d": None}}}) == {"a": {"b": 1, "c": {"e": 3}}, "f": 4}


def test_lists_are_replaced_and_not_merged() -> None:
    assert merge({"tags": ["a", "b"]}, {"tags": ["c"]}) == {"tags": ["c"]}


def test_an_object_takes_the_place_of_a_scalar_and_the_other_way_round() -> None:
    assert merge({"a": 1}, {"a": {"b": 2}}) == {"a": {"b": 2}}
    assert merge({"a": {"b": 2}}, {"a": 1}) == {"a": 1}


@given(METAS, METAS)
def test_merging_twice_is_merging_once(old: dict[str, Any], new: dict[str, Any]) -> None:
    once = merge(solid(old), new)
    assert merge(once, new) == once


@given(METAS, METAS)
def test_no_null_survives_and_nothing_given_is_changed(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = solid(old)
    kept = copy.deepcopy((before, new))
    assert not nulls(merge(before, new))
    assert (before, new) == kept


@given(METAS, METAS)
def test_keys_that_are_not_mentioned_stay(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = solid(old) or {}
    after = merge(before, new)
    assert after is not None
    assert {key: after[key] for key in before.keys() - new.keys()} == {
        key: before[key] for key in before.keys() - new.keys()
    }
    assert all(key not in after for key, value in new.items() if value is None)


@given(METAS, METAS, METAS)
def test_changes_of_different_keys_commute(old: dict[str, Any], one: dict[str, Any], two: dict[str, Any]) -> None:
    before = solid(old)
    two = {key: value for key, value in two.items() if key not in one}
    assert merge(merge(before, one), two) == merge(merge(before, two), one)


# --- titles


@pytest.mark.parametrize(
    ("length", "then", "title", "cleaned"),
    [
        (5, "truncate", "abcde", "abcde"),
        (5, "truncate", "abcdef", "abcd…"),
        (5, "refuse", "abcdef", None),
        (5, "refuse", "  ab\n\tc ", "ab  c"),
        (1, "truncate", "ab", "…"),
        (500, "truncate", "\x1b[31mred\x7f", "[31mred"),
        (500, "truncate", "😀 עברית", "😀 עברית"),
    ],
)
def test_titles_are_cleaned_and_limited(length: int, then: Any, title: str, cleaned: str | None) -> None:
    assert clean_title(title, TitleLimit(length=length, then=then)) == cleaned


@given(st.text(), st.integers(1, 20))
def test_a_cleaned_title_is_within_the_limit_and_has_no_control_characters(title: str, length: int) -> None:
    cleaned = clean_title(title, TitleLimit(length=length))
    assert cleaned is not None
    assert len(cleaned) <= length
    assert all(ord(char) >= 32 and ord(char) != 127 for char in cleaned)


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Fix the login", "Fix the login"),
        ("\n  \n  Fix it  \nplease", "Fix it"),
        ("", None),
        (" \n ", None),
        ("\0", None),
        ("\x1b\nFix\tit", "Fix it"),
        ("word " * 20, ("word " * 12).strip() + "…"),
    ],
)
def test_a_title_is_the_first_line_of_the_prompt_cut_between_words(prompt: str, title: str | None) -> None:
    assert title_from(prompt) == title


@given(st.text())
def test_a_title_from_a_prompt_is_short_and_one_line(prompt: str) -> None:
    title = title_from(prompt)
    assert title is None or (0 < len(title) <= 61 and len(title.splitlines()) == 1)
