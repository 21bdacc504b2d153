"""Messages of AAP out of a history, and into one."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mockagent.aap import transcript
from mockagent.aap.params import CreateSession, read
from mockagent.world.history import Called
from mockagent.world.sessions import Session

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
TEXTS = st.builds(lambda text: {"type": "text", "text": text}, TEXT)
THOUGHTS = st.builds(lambda text: {"type": "thinking", "thinking": text}, TEXT)
IMAGES = st.sampled_from(["data:image/png;base64,AAAA", "https://example.com/a.png", "data:,x"]).map(
    lambda url: {"type": "image", "url": url}
)
CONTENT: st.SearchStrategy[Any] = TEXT | st.lists(TEXTS | IMAGES, min_size=1, max_size=3)


@st.composite
def histories(draw: Any) -> list[dict[str, Any]]:
    """Histories that keep the rules: a result follows its call, before anybody says anything else."""
    messages: list[dict[str, Any]] = []
    calls = 0
    for _ in range(draw(st.integers(0, 6))):
        role = draw(st.sampled_from(["system", "user", "assistant", "assistant"]))
        if role == "system":
            messages.append({"role": role, "content": draw(TEXT)})
        elif role == "user":
            messages.append({"role": role, "content": draw(CONTENT)})
        else:
            blocks: list[Any] = list(draw(st.lists(TEXTS | THOUGHTS | IMAGES, max_size=3)))
            uses = draw(st.integers(0, 2))
            ids = [f"t{calls + number}" for number in range(uses)]
            calls += uses
            blocks += [{"type": "tool_use", "toolCallId": id, "name": "look", "input": {"a": 1}} for id in ids]
            messages.append({"role": role, "content": blocks or str(draw(TEXT))})
            for id in draw(st.permutations(ids)):
                messages.append({"role": "tool", "toolCallId": id, "content": draw(CONTENT)})
    return messages


def seeded(messages: list[dict[str, Any]]) -> Session:
    session = Session("s", "/", 0)
    body = read(CreateSession, {"agent": {"name": "a"}, "messages": messages})
    transcript.seed(session, body.messages, ())
    return session


@given(histories())
def test_a_seeded_history_is_given_back_exactly(messages: list[dict[str, Any]]) -> None:
    assert transcript.full(seeded(messages)) == messages


@given(histories(), st.integers(1, 5))
def test_a_compacted_history_ends_like_the_full_one_and_begins_with_no_stray_result(
    messages: list[dict[str, Any]], keep: int
) -> None:
    made = transcript.compacted(seeded(messages), keep)
    if made != messages:
        assert made[0]["role"] == "system"
        kept = made[1:]
        assert messages[-len(kept) :] == kept
        assert len(kept) >= keep
        assert kept[0]["role"] != "tool"


def test_results_stand_where_they_came() -> None:
    session = Session("s", "/", 0)
    history = session.history
    for id in ("a", "b"):
        history.call(Called(id=id, name="look", input={}, fields={}))
    history.update("b", {}, "second call, first result")
    history.say("say", ["in between"], "m1")
    history.update("a", {}, None, "no")
    assert [(message["role"], message["content"]) for message in transcript.full(session)][1:] == [
        ("tool", "second call, first result"),
        ("assistant", "in between"),
        ("tool", "Tool call denied: no"),
    ]


def test_results_of_any_shape_become_content() -> None:
    assert transcript.tool_content("x") == "x"
    assert transcript.tool_content(None) == "Tool call failed"
    assert transcript.tool_content({"a": 1}) == '{"a":1}'
    assert transcript.tool_content([1, 2]) == "[1,2]"
    assert transcript.tool_content(["x"]) == "x"
    assert transcript.tool_content([{"text": "x"}]) == [{"type": "text", "text": "x"}]
    assert transcript.tool_content([{"diff": {"path": "a"}}]) == [{"type": "text", "text": '{"diff":{"path":"a"}}'}]
    assert transcript.tool_content(msgspec.UNSET) == "Tool call failed"
