from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.faults.engine import Engine
from mockagent.faults.interface import Page, Pass, Query
from mockagent.faults.listing import Altered
from mockagent.scenario.model import Count, When

MakeFault = Callable[..., Any]


class Row:
    def __init__(self, id: str) -> None:
        self.id = id
        self.title = f"Title of {id}"


class Lister:
    """An honest handler for `session/list` (or `GET /sessions`), three rows to a page, behind an engine."""

    def __init__(self, host: Any, engine: Engine, count: int = 7, web: bool = False) -> None:
        self.host, self.engine, self.web, self.count = host, engine, web, count
        self.rows = [Row(f"s{number}") for number in range(count)]
        self.ids = 0

    def page(self, cursor: str | None = None) -> Page:
        self.ids += 1
        query = {"after": cursor} if cursor is not None else {}
        request = (
            self.host.http("GET /sessions", self.ids, query=query, neutral="list")
            if self.web
            else self.host.request(
                "session/list", self.ids, neutral="list", **({"cursor": cursor} if cursor is not None else {})
            )
        )
        [act] = self.engine.arriving(request)
        assert isinstance(act, Pass)
        message = act.message
        real = message.http.query.get("after") if self.web and message.http else message.data["params"].get("cursor")
        if real is not None and not real.startswith("at-"):
            return Page(rows=["refused"])
        start = int(real[3:]) if real else 0
        end = start + 3
        honest = Page(rows=self.rows[start:end], cursor=f"at-{end}" if end < self.count else None)
        return self.engine.listing(Query(peer=message.peer, request=message, cursor=real), honest)

    def walk(self, most: int) -> list[Page]:
        pages, cursor = [], None
        for _ in range(most):
            pages.append(self.page(cursor))
            cursor = pages[-1].cursor
            if cursor is None:
                break
        return pages


def ids(page: Page) -> list[str]:
    return [row.id for row in page.rows]


@pytest.fixture
def lister(host: Any, fault: MakeFault) -> Callable[..., Lister]:
    def make(*, web: bool = False, count: int = 7, when: When | None = None, **effects: Any) -> Lister:
        return Lister(host, host.engine(fault("list", when, **effects)), count, web)

    return make


def test_without_a_fault_the_page_is_the_handlers(host: Any) -> None:
    pages = Lister(host, host.engine()).walk(9)
    assert [ids(page) for page in pages] == [["s0", "s1", "s2"], ["s3", "s4", "s5"], ["s6"]]


@pytest.mark.parametrize("web", [False, True])
def test_a_repeated_cursor_gives_the_same_page_for_ever(lister: Callable[..., Lister], web: bool) -> None:
    pages = lister(cursor="repeat", web=web).walk(6)
    assert [page.cursor for page in pages] == ["at-3"] * 6
    assert all(ids(page) == ["s3", "s4", "s5"] for page in pages[1:])


@pytest.mark.parametrize("web", [False, True])
def test_a_cycle_comes_back_to_the_first_page_with_cursors_seen_before(
    lister: Callable[..., Lister], web: bool
) -> None:
    pages = lister(cursor="cycle", web=web).walk(7)
    assert [ids(page)[0] for page in pages] == ["s0", "s3", "s6", "s0", "s3", "s6", "s0"]
    assert [page.cursor for page in pages[:3]] == [page.cursor for page in pages[3:6]]


def test_the_cursors_of_a_cycle_come_again_although_no_cursor_of_the_handler_does() -> None:
    from mockagent.faults.listing import Listings, Request
    from mockagent.message import Message, Peer

    peer = Peer("c1", "acp", "stdio")
    listings = Listings(lambda: pytest.fail("no chance is needed"))
    cursor, cursors = None, []
    for number in range(7):
        query = Query(peer=peer, request=Message("session/list", {}, peer))
        honest = Page(rows=[number], cursor=None if number % 3 == 2 else f"fresh-{number}")
        cursor = listings.change("cursor", "cycle", Request(cursor, query), honest).cursor
        cursors.append(cursor)
    assert cursors == ["fresh-0", "fresh-1", "first", "fresh-0", "fresh-1", "first", "fresh-0"]
    listings.forget("c1")
    again = listings.change("cursor", "cycle", Request(None, query), Page(rows=[], cursor="fresh-7"))
    assert again.cursor == "fresh-7"


@pytest.mark.parametrize("effect", ["repeat", "cycle", "endless"])
def test_paging_never_ends_even_where_there_is_one_page(lister: Callable[..., Lister], effect: str) -> None:
    pages = lister(cursor=effect, count=2).walk(5)
    assert [ids(page) for page in pages] == [["s0", "s1"]] * 5


@pytest.mark.parametrize("web", [False, True])
def test_endless_gives_a_new_cursor_each_time(lister: Callable[..., Lister], web: bool) -> None:
    pages = lister(cursor="endless", web=web).walk(8)
    cursors = [page.cursor for page in pages]
    assert len(set(cursors)) == 8
    assert None not in cursors
    assert ids(pages[-1]) == ["s6"]


def test_an_empty_cursor_is_accepted_when_it_comes_back(lister: Callable[..., Lister]) -> None:
    pages = lister(cursor="empty").walk(3)
    assert [page.cursor for page in pages] == ["", "", ""]
    assert ids(pages[2]) == ["s0", "s1", "s2"]


@pytest.mark.parametrize("value", ["null", None])
def test_a_null_cursor_is_sent_as_null(lister: Callable[..., Lister], value: str | None) -> None:
    page = lister(cursor=value).page()
    assert (page.cursor, page.null_cursor) == (None, True)


def test_an_expired_cursor_is_one_that_the_handler_does_not_know(host: Any, lister: Callable[..., Lister]) -> None:
    some = lister(cursor="expired", when=When(times=1))
    first = some.page()
    assert some.page(first.cursor).rows == ["refused"]
    assert some.page().cursor == "at-3"


def test_the_last_page_has_no_cursor_to_expire(host: Any, lister: Callable[..., Lister]) -> None:
    assert lister(cursor="expired", count=2).page().cursor is None
    assert host.reports[-1] == ("session/list", ("cursor",), "skipped: the last page has no cursor that could expire")


def test_an_empty_page_keeps_its_cursor(lister: Callable[..., Lister]) -> None:
    pages = lister(page="empty", when=When(nth=Count(numbers=frozenset({2})))).walk(9)
    assert [ids(page) for page in pages] == [["s0", "s1", "s2"], [], ["s6"]]


@given(overlap=st.integers(1, 5))
def test_an_overlap_repeats_the_end_of_the_page_before(overlap: int) -> None:
    from mockagent.faults.listing import Listings, Request
    from mockagent.message import Message, Peer

    listings = Listings(lambda: pytest.fail("no chance is needed"))
    query = Query(peer=Peer("c1", "acp", "stdio"), request=Message("session/list", {}, Peer("c1", "acp", "stdio")))
    first = Page(rows=["a", "b", "c"], cursor="next")
    listings.remember(Request(None, query), first.rows, first)
    second = listings.change("page", {"overlap": overlap}, Request("next", query), Page(rows=["d"]))
    assert second.rows == [*first.rows[max(0, 3 - overlap) :], "d"]


@pytest.mark.parametrize("web", [False, True])
@pytest.mark.parametrize("when", [None, When(nth=Count(numbers=frozenset({2})))])
def test_rows_of_the_first_page_come_again_on_the_second(
    lister: Callable[..., Lister], when: When | None, web: bool
) -> None:
    pages = lister(page={"overlap": 2}, when=when, web=web).walk(2)
    assert [ids(page) for page in pages] == [["s0", "s1", "s2"], ["s1", "s2", "s3", "s4", "s5"]]


def test_a_shrinking_page_loses_its_later_half(lister: Callable[..., Lister]) -> None:
    assert [ids(page) for page in lister(page="shrink").walk(3)] == [["s0", "s1"], ["s3", "s4"], ["s6"]]


def test_shuffling_keeps_the_rows_and_is_the_same_for_the_same_seed(host: Any, fault: MakeFault) -> None:
    def rows() -> list[str]:
        fresh = type(host)()
        return ids(Lister(fresh, fresh.engine(fault("session/list", page="shuffle")), count=3).page())

    assert sorted(rows()) == ["s0", "s1", "s2"]
    assert rows() == rows()


def test_rows_are_changed_and_repeated_by_their_id(lister: Callable[..., Lister]) -> None:
    some = lister(rows=({"match": "s1", "set": {"title": None, "_new": 1}, "copies": 2}, {"match": "s2", "copies": 0}))
    rows = some.page().rows
    assert [row.id for row in rows] == ["s0", "s1", "s1"]
    assert [row.title for row in rows] == ["Title of s0", None, None]
    assert isinstance(rows[1], Altered)
    assert rows[1].altered == {"title": None, "_new": 1}
    assert some.rows[1].title == "Title of s1"


def test_rows_may_be_mappings(host: Any) -> None:
    from mockagent.faults.listing import Listings, Request

    request = Request(None, Query(peer=host.peer, request=host.request("session/list")))
    page = Page(rows=[{"sessionId": "a", "title": "A"}])
    changed = Listings(lambda: pytest.fail("no chance is needed")).change(
        "rows", [{"match": "a", "set": {"title": 7}}], request, page
    )
    assert changed.rows == [{"sessionId": "a", "title": 7}]
    assert page.rows == [{"sessionId": "a", "title": "A"}]


def test_pages_of_others_are_left_alone(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("list", When(transport="ws"), cursor="null"))
    page = Lister(host, engine).page()
    assert (page.cursor, page.null_cursor) == ("at-3", False)


def test_a_list_effect_at_a_reply_comes_too_late(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("reply:session/list", cursor="null"))
    [act] = engine.leaving(host.reply("session/list"))
    assert isinstance(act, Pass)
    assert host.reports[-1][2].startswith("skipped: a page is made while")


def test_the_page_given_is_not_touched(lister: Callable[..., Lister]) -> None:
    some = lister(page="empty", cursor="null")
    [act] = some.engine.arriving(host_request := some.host.request("session/list", 5, neutral="list"))
    assert isinstance(act, Pass)
    page = Page(rows=[1, 2], cursor="x")
    before = msgspec.structs.replace(page, rows=list(page.rows))
    some.engine.listing(Query(peer=some.host.peer, request=host_request), page)
    assert page == before
