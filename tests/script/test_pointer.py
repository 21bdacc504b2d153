from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.script import pointer

names = st.text(alphabet="ab/~0-+", max_size=3)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


def paths(document: Any, at: str = "") -> list[str]:
    """The pointers to everything inside a document."""
    inner: Any = []
    if isinstance(document, dict):
        inner = [(pointer.escape(key), value) for key, value in document.items()]
    elif isinstance(document, list):
        inner = list(enumerate(document))
    return [at, *(path for key, value in inner for path in paths(value, f"{at}/{key}"))]


places = documents.flatmap(lambda document: st.tuples(st.just(document), st.sampled_from(paths(document))))


@given(places, documents)
def test_what_was_put_is_what_is_got(place: tuple[Any, str], value: Any) -> None:
    document, where = place
    assert pointer.get(pointer.put(document, where, value), where) == value


@given(places, documents)
def test_no_change_touches_the_original(place: tuple[Any, str], value: Any) -> None:
    document, where = place
    before = copy.deepcopy(document)
    pointer.put(document, where, value)
    pointer.remove(document, where)
    assert document == before


@given(places)
def test_putting_back_what_is_there_changes_nothing(place: tuple[Any, str]) -> None:
    document, where = place
    assert pointer.put(document, where, pointer.get(document, where)) == document


@given(st.dictionaries(names, documents, max_size=3), names)
def test_a_removed_member_is_gone_and_the_others_stay(document: dict[str, Any], name: str) -> None:
    left = pointer.remove(document, "/" + pointer.escape(name))
    assert left == {key: value for key, value in document.items() if key != name}


@given(st.lists(st.integers(), max_size=4), st.data())
def test_inserting_and_removing_at_an_index_cancel_out(items: list[int], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items)))
    longer = pointer.put(items, f"/{index}+", 7)
    assert longer == [*items[:index], 7, *items[index:]]
    assert pointer.remove(longer, f"/{index}") == items


@given(names)
def test_escaping_is_undone_by_parsing(name: str) -> None:
    assert pointer.parse("/" + pointer.escape(name)) == [name]


@pytest.mark.parametrize(
    ("document", "where", "expected"),
    [
        ({}, "/a/b", {"a": {"b": 1}}),
        ({"a": None}, "/a/b", {"a": {"b": 1}}),
        ({}, "/a/-", {"a": [1]}),
        ({}, "/a/0+/b", {"a": [{"b": 1}]}),
        ({"a": [0]}, "/a/-", {"a": [0, 1]}),
        ({"a": [0]}, "/a/1", {"a": [0, 1]}),
        ({"a": [0]}, "/a/0", {"a": [1]}),
        ({"-": 0}, "/-", {"-": 1}),
        ({}, "/a~1b~0", {"a/b~": 1}),
        ({}, "", 1),
    ],
)
def test_put_makes_what_is_missing(document: Any, where: str, expected: Any) -> None:
    assert pointer.put(document, where, 1) == expected


@pytest.mark.parametrize(("document", "where"), [({"a": "x"}, "/a/b"), ([], "/3"), ([1], "/01"), ([], "/x"), (5, "/a")])
def test_put_fails_where_something_stands_in_the_way(document: Any, where: str) -> None:
    with pytest.raises(pointer.Absent):
        pointer.put(document, where, 1)


@pytest.mark.parametrize("where", ["/b", "/a/0", "/l/2", "/l/-", "/l/0+", "/l/-1"])
def test_what_is_absent_is_not_got_and_its_removal_changes_nothing(where: str) -> None:
    document = {"a": "text", "l": [1, 2]}
    with pytest.raises(pointer.Absent):
        pointer.get(document, where)
    assert pointer.remove(document, where) is document


def test_null_is_there() -> None:
    assert pointer.get({"a": None}, "/a") is None


@pytest.mark.parametrize("where", ["a", "/a~2", "/~"])
def test_a_malformed_pointer_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match="'"):
        pointer.get({}, where)
