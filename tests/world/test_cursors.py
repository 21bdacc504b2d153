"""Cursors: what they are good for, and what each one that is not good for it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.errors import Refusal
from mockagent.scenario import model
from mockagent.world.clock import SECOND, Clock
from mockagent.world.cursors import NOBODY, Cursors, Holder
from mockagent.world.order import HORIZON
from mockagent.world.sessions import Session, Sessions
from mockagent.world.world import World

START = 1_768_467_600_000_000


def store_of(count: int = 30, *, page_size: int = 10, seed: int = 0, logical: bool = True, **cursor: Any) -> Sessions:
    scenario = model.Scenario(
        clock=model.ClockRules(now=START if logical else None, speed=0),
        sessions=model.Sessions(
            page_size=page_size,
            synthetic=model.Synthetic(count=count, cwds=("/a", "/b", "/c")),
            cursor=model.CursorRules(**cursor),
        ),
    )
    return World(scenario, Clock(scenario.clock), seed=seed).sessions


def second_page(store: Sessions, cwd: str | None = None, holder: Holder = NOBODY) -> str:
    cursor = store.page(cwd, None, holder)[1]
    assert cursor is not None
    return cursor


def why(call: Callable[[], object]) -> Any:
    with pytest.raises(Refusal) as refused:
        call()
    assert refused.value.name == "invalid_cursor"
    return refused.value.data["why"]


def ids(rows: list[Session]) -> list[str]:
    return [row.id for row in rows]


def page_through(store: Sessions, cwd: str | None = None, between: Callable[[], object] = lambda: None) -> list[str]:
    seen: list[str] = []
    cursor: str | None = None
    while True:
        rows, cursor = store.page(cwd, cursor)
        seen += ids(rows)
        if cursor is None:
            return seen
        between()


# --- what a cursor is good for


def test_a_cursor_can_be_used_again_and_gives_the_same_page() -> None:
    store = store_of()
    cursor = second_page(store)
    assert ids(store.page(None, cursor)[0]) == ids(store.page(None, cursor)[0])


def test_the_last_page_has_no_cursor_even_when_it_is_full() -> None:
    store = store_of(20)
    assert store.page(None, second_page(store))[1] is None


@pytest.mark.parametrize("text", ["", "x", "🎉", "sess_0123456789ab", "eyJwYWdlIjogMn0=", "A" * 500])
def test_what_was_never_a_cursor_is_garbage(text: str) -> None:
    store = store_of()
    second_page(store)
    assert why(lambda: store.page(None, text)) == "garbage"


@given(st.data())
def test_a_cursor_with_a_changed_character_is_told_from_garbage(data: st.DataObject) -> None:
    store = store_of()
    cursor = second_page(store)
    at = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("ABCDEFGHIJabcdefghij0123456789-_="))
    changed = cursor[:at] + other + cursor[at + 1 :]
    if changed != cursor:
        assert why(lambda: store.page(None, changed)) == "tampered"


def test_a_cursor_that_is_cut_off_or_lengthened_is_tampered() -> None:
    store = store_of()
    cursor = second_page(store)
    assert why(lambda: store.page(None, cursor[:-3])) == "tampered"
    assert why(lambda: store.page(None, cursor + "AA")) == "tampered"


def test_a_cursor_belongs_to_one_filter_and_a_slash_makes_no_other() -> None:
    store = store_of()
    cursor = second_page(store)
    assert why(lambda: store.page("/a", cursor)) == "other_filter"
    filtered = second_page(store_of(90), "/a")
    assert why(lambda: store_of(90, scope="any").page(None, filtered)) == "other_filter"
    again = store_of(90)
    assert again.page("/a/", second_page(again, "/a"))[0]


def test_a_cursor_of_another_process_is_told_from_a_changed_one() -> None:
    cursor = second_page(store_of(logical=False))
    assert why(lambda: store_of(logical=False).page(None, cursor)) == "other_process"


def test_with_logical_time_a_cursor_is_only_good_once_it_was_given_out() -> None:
    cursor = second_page(store_of())
    assert why(lambda: store_of().page(None, cursor)) == "other_process"


def test_with_scope_any_it_goes_on_in_the_next_process() -> None:
    before, after = store_of(scope="any", logical=False), store_of(scope="any", logical=False)
    first, cursor = before.page(None, None)
    second, _ = after.page(None, cursor)
    assert not set(ids(first)) & set(ids(second))


def test_scopes_bind_to_connection_or_login() -> None:
    one, other, later = Holder("c1", "0"), Holder("c2", "0"), Holder("c1", "1")
    narrow = store_of(scope="connection")
    cursor = second_page(narrow, holder=one)
    assert why(lambda: narrow.page(None, cursor, other)) == "other_connection"
    assert narrow.page(None, cursor, later)[0]
    logged_in = store_of(scope="session")
    cursor = second_page(logged_in, holder=one)
    assert why(lambda: logged_in.page(None, cursor, later)) == "other_session"
    assert logged_in.page(None, cursor, one)[0]


def test_a_cursor_expires_by_scenario_time() -> None:
    rules = model.CursorRules(lifetime=10 * SECOND)
    cursors = Cursors(rules, 1)
    text = cursors.give((0, 0, 0), 0, None, NOBODY, 0)
    assert cursors.take(text, None, NOBODY, 10 * SECOND).mark == (0, 0, 0)
    assert why(lambda: cursors.take(text, None, NOBODY, 10 * SECOND + 1)) == "expired"


def test_a_cursor_is_used_up_after_so_many_pages() -> None:
    store = store_of(uses=2)
    cursor = second_page(store)
    store.page(None, cursor)
    store.page(None, cursor)
    assert why(lambda: store.page(None, cursor)) == "used_up"


def test_a_refused_cursor_is_not_used() -> None:
    store = store_of(90, uses=1)
    cursor = second_page(store)
    assert why(lambda: store.page("/a", cursor)) == "other_filter"
    assert store.page(None, cursor)[0]


def test_the_same_seed_and_logical_time_give_the_same_cursors() -> None:
    assert second_page(store_of()) == second_page(store_of())


# --- the order while somebody pages


def test_what_is_touched_or_made_meanwhile_neither_repeats_nor_vanishes() -> None:
    store = store_of(40)
    before = ids(store.listed())
    last = before[-1]

    def meanwhile() -> None:
        store.create("/a")
        session = store.get(last)
        assert session is not None
        store.touch(session)

    assert page_through(store, between=meanwhile) == before
    assert ids(store.listed())[0] == last


@given(
    st.lists(st.tuples(st.sampled_from(("touch", "create", "delete", "clear", "old")), st.integers(0, 99)), max_size=12)
)
def test_paging_gives_the_list_as_it_was_but_for_what_was_deleted(changes: list[tuple[str, int]]) -> None:
    store = store_of(25, page_size=4)
    for _ in range(6):
        store.create("/b")
    before = ids(store.listed())
    left = list(changes)
    deleted: set[str] = set()

    def meanwhile() -> None:
        for what, number in left[:3]:
            session = store.get(before[number % len(before)])
            if what == "create":
                store.create("/a")
            elif session is None:
                continue
            elif what == "touch":
                store.touch(session)
            elif what == "delete":
                store.delete(session)
                deleted.add(session.id)
            else:
                store.apply(session, model.InfoFields(updated_at=None if what == "clear" else "2001-01-01T00:00:00Z"))
        del left[:3]

    seen = page_through(store, between=meanwhile)
    assert len(seen) == len(set(seen))
    assert [id for id in before if id in seen] == seen
    assert set(before) - set(seen) <= deleted
    now = ids(store.listed())
    assert sorted(now) == sorted(set(now))
    times = [session.updated if session.updated is not None else -1 for session in store.listed()]
    assert times == sorted(times, reverse=True)


def test_a_filter_shows_the_same_rows_as_sifting_the_whole_list() -> None:
    store = store_of(100, page_size=7)
    for _ in range(5):
        store.create("/b/")
    moved = store.listed("/b")[10]
    store.touch(moved)
    assert page_through(store, "/b") == [session.id for session in store.listed() if session.cwd.rstrip("/") == "/b"]


def test_a_cursor_from_beyond_the_horizon_has_expired() -> None:
    store = store_of()
    old = second_page(store)
    session = store.create()
    for _ in range(HORIZON + 2):
        store.touch(session)
        store.page(None, None)
    assert why(lambda: store.page(None, old)) == "expired"
    assert store.page(None, second_page(store))[0]


def test_lists_that_nobody_pages_through_leave_nothing_behind() -> None:
    store = store_of(5)
    session = store.create()
    for _ in range(50):
        store.touch(session)
        store.page(None, None)
    assert len(store._order._all) == 1


# --- any page at once


@pytest.mark.parametrize("cwd", [None, "/a"])
def test_the_cursor_of_any_page_is_the_one_that_paging_comes_to(cwd: str | None) -> None:
    store = store_of(50, page_size=4)
    for number in (3, 20, 21, 45):
        session = store.get(ids(store.listed())[number])
        assert session is not None
        (store.touch if number % 2 else store.delete)(session)
    store.create("/a")
    old = store.create("/a")
    store.apply(old, model.InfoFields(updated_at=None))
    rows = ids(store.listed(cwd))
    assert store.count(cwd) == len(rows)
    for index in range(1, len(rows)):
        cursor = store.cursor_at(index, cwd)
        assert ids(store.page(cwd, cursor)[0]) == rows[index : index + 4], index
