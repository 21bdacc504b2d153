"""The notation of placeholders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario.placeholders import NAMES, Ref, parse, refs


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("",)),
        ("plain $ {text}", ("plain $ {text}",)),
        ("${prompt}", (Ref("prompt"),)),
        ("a ${prompt} b", ("a ", Ref("prompt"), " b")),
        ("${ prompt }", (Ref("prompt"),)),
        ("$${prompt}", ("${prompt}",)),
        ("$$${prompt}", ("$${prompt}",)),
        ("$5 ${turn}", ("$5 ", Ref("turn"))),
        ("${match.1}${match.who}", (Ref("match.1"), Ref("match.who"))),
        ("${fake.first_name}", (Ref("fake.first_name"),)),
        ("${saved.a}", (Ref("saved.a"),)),
        ("${now+2s}", (Ref("now", 2_000_000),)),
        ("${now - 1h}", (Ref("now", -3_600_000_000),)),
        ("${now.http+2s}", (Ref("now.http", 2_000_000),)),
    ],
)
def test_texts_are_split(text: str, parts: tuple[object, ...]) -> None:
    assert parse(text) == parts


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("${promt}", "did you mean `prompt`"),
        ("${prompt", "no closing brace"),
        ("${}", "known: `prompt`"),
        ("${now+2}", "`2s`"),
        ("${prompt+2s}", "unknown placeholder"),
        ("${match.}", "behind the dot"),
        ("${fake.a-b}", "behind the dot"),
        ("${a} ${b}", "`${a}`"),
        ("${a} ${b}", "`${b}`"),
    ],
)
def test_mistakes_are_named(text: str, hint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is looked at below
        parse(text)
    assert hint in str(caught.value)


@given(st.text(alphabet="$a{}", max_size=12))
def test_escaping_every_brace_keeps_a_text_as_it_is(text: str) -> None:
    # a dollar before an escape would be ambiguous to write, so none stands there
    plain = text.replace("$$", "").replace("$a", "a")
    parts = parse(plain.replace("${", "$${"))
    assert parts == (plain,)


@given(st.lists(st.sampled_from([name for name in NAMES if not name.endswith(".")]), max_size=5))
def test_all_names_are_found_in_order(names: list[str]) -> None:
    assert [ref.name for ref in refs("-".join(f"${{{name}}}" for name in names))] == names
