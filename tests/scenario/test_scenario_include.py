"""Merging files: the algebra of the merge, and the places of what was merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario.include import merge, remove
from mockagent.scenario.load import check, load, sources
from mockagent.scenario.nodes import Node, plain

KEYS = st.sampled_from("abc")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 3).map(str), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3)
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=3)
#: mappings in which a key has the same shape everywhere
SHAPED: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({}, optional={"text": st.sampled_from("01"), "list": st.lists(st.sampled_from("01"))}),
    lambda inner: st.fixed_dictionaries({}, optional={"text": st.sampled_from("01"), "left": inner, "right": inner}),
)


def node(value: Any) -> Node:
    made = Node("map" if isinstance(value, dict) else "list" if isinstance(value, list) else "text", "f", 1, 1)
    if isinstance(value, dict):
        made.pairs = [(node(key), node(item)) for key, item in value.items()]
    elif isinstance(value, list):
        made.items = [node(item) for item in value]
    else:
        made.text = value
    return made


def merged(under: Any, over: Any) -> Any:
    return plain(merge(node(under), node(over)))


@given(MAPS)
def test_an_empty_mapping_changes_nothing(value: Any) -> None:
    assert merged({}, value) == value == merged(value, {})


@given(MAPS)
def test_merging_with_itself_changes_nothing(value: Any) -> None:
    assert merged(value, value) == value


@given(SHAPED, SHAPED, SHAPED)
def test_merging_is_associative_where_shapes_agree(a: Any, b: Any, c: Any) -> None:
    assert merged(merged(a, b), c) == merged(a, merged(b, c))


@given(MAPS, MAPS)
def test_the_upper_file_wins(under: Any, over: Any) -> None:
    made = merged(under, over)
    assert set(made) == set(under) | set(over)
    for key, value in over.items():
        if not isinstance(value, dict):
            assert made[key] == value


@given(MAPS, st.lists(KEYS, min_size=1, max_size=3))
def test_what_was_removed_is_gone_and_nothing_else(value: Any, path: list[str]) -> None:
    less = remove(node(value), path)
    if less is None:
        return
    assert remove(less, path) is None
    if len(path) == 1:
        assert plain(less) == {key: item for key, item in value.items() if key != path[0]}


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder / "top.yaml"


def test_lists_replace_and_mappings_merge(tmp_path: Path) -> None:
    top = write(
        tmp_path,
        base="agent: {name: low, title: Low}\ntags: [a, b]\n",
        top="include: base.yaml\nagent: {name: high}\ntags: [c]\n",
    )
    made = load(top)
    assert (made.agent.name, made.agent.title, made.tags) == ("high", "Low", ("c",))


def test_a_later_file_wins_over_an_earlier_one(tmp_path: Path) -> None:
    top = write(tmp_path, one="seed: 1\nname: one\n", two="seed: 2\n", top="include: [one.yaml, two.yaml]\n")
    made = load(top)
    assert (made.seed, made.name) == (2, "one")


def test_without_takes_out_of_what_was_included_only(tmp_path: Path) -> None:
    top = write(
        tmp_path,
        base="turns: [{steps: [{say: a}]}, {steps: [{say: b}]}]\nseed: 1\n",
        top="include: base.yaml\nwithout: [turns/0, /seed]\n",
    )
    made = load(top)
    assert [turn.steps[0].payload for turn in made.turns] == [("b",)]
    assert made.seed == 0


def test_paths_are_relative_to_the_file_that_includes(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner", low="seed: 5\n", mid="include: low.yaml\n")
    top = write(tmp_path, top="include: inner/mid.yaml\n")
    assert load(top).seed == 5
    assert [Path(file).name for file in sources(top)] == ["top.yaml", "mid.yaml", "low.yaml"]


def test_a_circle_is_shown(tmp_path: Path) -> None:
    top = write(tmp_path, a="include: top.yaml\n", top="include: a.yaml\n")
    (problem,) = check(top)
    assert "top.yaml includes a.yaml includes top.yaml" in problem.message


def test_a_file_may_be_included_twice(tmp_path: Path) -> None:
    top = write(
        tmp_path, low="seed: 5\n", a="include: low.yaml\n", b="include: low.yaml\n", top="include: [a.yaml, b.yaml]\n"
    )
    assert load(top).seed == 5


def test_places_name_the_file_that_says_it(tmp_path: Path) -> None:
    top = write(tmp_path, base="\n\nseed: x\n", top="include: base.yaml\npage: 1\n")
    assert [(Path(p.place.file).name, p.place.line, p.place.column) for p in check(top)] == [
        ("top.yaml", 2, 1),
        ("base.yaml", 3, 7),
    ]
