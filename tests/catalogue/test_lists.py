"""Scenarios about the list of sessions, its pages, titles and times, each shown to happen on the wire."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio

from tests.catalogue.judged import FOLDER, Catalogue, Played, updates
from tests.catalogue.same import same_over_stdio
from tests.faults.wire import CWD, Aap, Client, kinds, serving
from tests.official import SCHEMA, official
from tests.transcript import Json

SEVERAL = {"cursor-invalid", "deleted-while-paging", "huge-list", "many-pages"}
"""Scenarios that are shown to several clients, or in bulk."""

LISTS = Catalogue("lists")

FALSE_END = "behind the last page there is no cursor"
MOST = 12
"""Pages after which paging is taken to have no end."""


async def introduced(played: Played) -> Client:
    client = await played.client()
    await client.initialize()
    return client


async def page(client: Client, cursor: str | None = None) -> Json:
    """The reply to a request for a page."""
    reply: Json = await client.call("session/list", **({} if cursor is None else {"cursor": cursor}))
    return reply


async def walk(client: Client, most: int = MOST) -> list[Json]:
    """The results of all pages, or of so many, as a client asks for them that believes every cursor."""
    found: list[Json] = []
    cursor = None
    while len(found) < most and (not found or cursor is not None):
        found.append((await page(client, cursor))["result"])
        cursor = found[-1].get("nextCursor")
    return found


def ids(result: Json) -> list[str]:
    return [row["sessionId"] for row in result["sessions"]]


def every_id(pages: list[Json]) -> list[str]:
    return [id for one in pages for id in ids(one)]


async def rows(client: Client) -> dict[str, Json]:
    """The rows of the first page, by id."""
    return {row["sessionId"]: row for row in (await page(client))["result"]["sessions"]}


async def infos(client: Client, session: str) -> list[Json]:
    """What one turn says of its session, as it is on the wire."""
    return [
        {key: value for key, value in update.items() if key != "sessionUpdate"}
        for update in updates(await client.turn(session), "session_info_update")
    ]


# --- pages


@LISTS.shows("many-pages")
async def _(played: Played) -> None:
    client = await introduced(played)
    pages = await walk(client, 99)
    assert [len(ids(one)) for one in pages] == [*[50] * 15, 44]
    assert len(set(every_id(pages))) == 794
    assert "nextCursor" not in pages[-1]


@LISTS.shows("huge-list")
async def _(played: Played) -> None:
    client = await played.served.client()
    await client.initialize()
    pages = await walk(client, 99)
    assert [len(ids(one)) for one in pages] == [500] * 20
    assert len(set(every_id(pages))) == 10_000
    assert any("title" not in row for row in pages[0]["sessions"])
    if SCHEMA.exists():  # all of them would take a while
        for one in pages:
            assert official().problems("ListSessionsResponse", {**one, "sessions": one["sessions"][:20]}) == []


@LISTS.shows("cursor-repeats", breaks=FALSE_END)
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert len(pages) == MOST
    assert len({one["nextCursor"] for one in pages}) == 1
    assert len(set(every_id(pages))) == 50
    assert ids(pages[0]) != ids(pages[1])
    assert all(ids(one) == ids(pages[1]) for one in pages[1:])


@LISTS.shows("cursor-cycles", breaks=FALSE_END)
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert len(pages) == MOST
    assert [ids(one) for one in pages[3:]] == [ids(one) for one in pages[:-3]]
    assert [one["nextCursor"] for one in pages[3:]] == [one["nextCursor"] for one in pages[:-3]]


@LISTS.shows("cursor-empty-string", breaks=FALSE_END)
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert [one["nextCursor"] for one in pages] == [""] * MOST
    assert all(ids(one) == ids(pages[0]) for one in pages)


@LISTS.shows("cursor-null")
async def _(played: Played) -> None:
    client = await introduced(played)
    result = (await page(client))["result"]
    assert len(ids(result)) == 25
    assert result["nextCursor"] is None
    again = (await client.call("session/list", cursor=None))["result"]
    assert again == result


@LISTS.shows("cursor-endless", breaks=FALSE_END)
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert len({one["nextCursor"] for one in pages}) == MOST
    assert len(set(every_id(pages))) == 60
    assert all(ids(one) == ids(pages[2]) for one in pages[2:])


@LISTS.shows("cursor-invalid")
async def _(played: Played) -> None:
    client = await introduced(played)
    cursor = (await page(client))["result"]["nextCursor"]
    error = (await page(client, cursor))["error"]
    assert (error["code"], error["data"]["reason"]) == (-32602, "invalid_cursor")
    assert len(set(every_id(await walk(client)))) == 60
    aap = await played.served.aap()
    first = (await aap.call("GET", "/sessions")).json
    statuses = [(await aap.call("GET", f"/sessions?after={first['next']}")).status for _ in range(2)]
    assert statuses == [400, 200]


@LISTS.shows("cursor-expired")
async def _(played: Played) -> None:
    client = await introduced(played)
    for _ in range(3):
        first = (await page(client))["result"]
        assert len(ids(first)) == 25
        assert (await page(client, first["nextCursor"]))["error"]["data"]["reason"] == "invalid_cursor"


@LISTS.shows("cursor-ignored", breaks="an invalid cursor is refused, and a good one leads to the next page")
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert [len(ids(one)) for one in pages] == [25, 25, 25, 0]
    assert ids(pages[0]) == ids(pages[1]) == ids(pages[2])
    assert "nextCursor" not in pages[3]


@LISTS.shows("page-overlap")
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert [len(ids(one)) for one in pages] == [20, 23, 23]
    for before, after in pairwise(pages):
        assert ids(after)[:3] == ids(before)[-3:]
    assert len(set(every_id(pages))) == 60


@LISTS.shows("empty-page")
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert [len(ids(one)) for one in pages] == [20, 0, 40]
    assert pages[1]["nextCursor"]
    assert "nextCursor" not in pages[2]
    assert len(set(every_id(pages))) == 60


@LISTS.shows("page-shrinks")
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    assert [len(ids(one)) for one in pages] == [20, 10, 10]
    assert len(set(every_id(pages))) == 40


@LISTS.shows("out-of-order")
async def _(played: Played) -> None:
    pages = await walk(await introduced(played))
    times = [[row["updatedAt"] for row in one["sessions"]] for one in pages]
    assert [len(one) for one in times] == [15, 15]
    assert all(one != sorted(one, reverse=True) for one in times)
    assert min(times[0]) >= max(times[1])


@LISTS.shows("deleted-while-paging")
async def _(played: Played) -> None:
    client = await introduced(played)
    pages = await walk(client)
    assert [ids(one) for one in pages] == [["sess_gone", "sess_two"], ["sess_three", "sess_four"]]
    loaded = [await client.call("session/load", sessionId=id, cwd=CWD, mcpServers=[]) for id in every_id(pages)]
    assert kinds(loaded) == ["error: -32002", "result", "result", "result"]
    assert every_id(await walk(client)) == ["sess_two", "sess_three", "sess_four"]
    aap = await played.served.aap()
    assert [(await aap.call("GET", f"/sessions/{id}")).status for id in ("sess_gone", "sess_two")] == [404, 200]


@LISTS.shows("cwd-filter-ignored", breaks="with `cwd`, only the sessions of that folder are listed")
async def _(played: Played) -> None:
    client = await introduced(played)
    result = (await client.call("session/list", cwd="/home/dev/api"))["result"]
    assert {row["cwd"] for row in result["sessions"]} == {"/home/dev/api", "/home/dev/web"}


@LISTS.shows("list-unsupported")
async def _(played: Played) -> None:
    client = await played.client()
    able = (await client.initialize())["result"]["agentCapabilities"]["sessionCapabilities"]
    assert "list" not in able
    assert (await page(client))["error"]["code"] == -32601
    assert "result" in (await client.turn(await client.new()))[-1]


@LISTS.shows("duplicate-rows")
async def _(played: Played) -> None:
    result = (await page(await introduced(played)))["result"]
    assert ids(result) == ["sess_two", "sess_two", "sess_one"]
    assert result["sessions"][0] == result["sessions"][1]


@LISTS.shows("odd-cwd")
async def _(played: Played) -> None:
    found = {id: row["cwd"] for id, row in (await rows(await introduced(played))).items()}
    assert found == {
        "sess_home": "~/project",
        "sess_here": ".",
        "sess_none": "",
        "sess_url": "file:///home/dev/project",
        "sess_fine": "/home/dev/api",
    }


# --- titles


@LISTS.shows("untitled")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert await infos(client, made := await client.new()) == []
    await client.during(10)
    found = await rows(client)
    assert set(found) == {"sess_nameless", "sess_empty", made}
    assert all("title" not in row for row in found.values())


@LISTS.shows("null-title")
async def _(played: Played) -> None:
    client = await introduced(played)
    await client.turn(await client.new())
    found = await rows(client)
    assert len(found) == 3
    assert [row["title"] for row in found.values()] == [None] * 3


@LISTS.shows("long-title")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert len((await rows(client))["sess_long"]["title"]) == 10_000
    [info] = await infos(client, await client.new())
    assert len(info["title"]) == 10_000


@LISTS.shows("odd-title")
async def _(played: Played) -> None:
    client = await introduced(played)
    titles = {id: row["title"] for id, row in (await rows(client)).items()}
    assert titles == {
        "sess_lines": "One\nTwo\r\n\tThree",
        "sess_rtl": "\u202eאבטחה\u202c (abc)",
        "sess_emoji": "👩🏽\u200d🚀🇯🇵 é",
        "sess_markup": "<b>bold</b> **bold** [link](https://example.com)",
        "sess_escape": "\x1b[31mred\x1b[0m\x07",
        "sess_spaces": "   ",
        "sess_none": "",
    }
    assert await infos(client, await client.new()) == [{"title": "One\nTwo\r\n\tThree"}]


@LISTS.shows("late-title")
async def _(played: Played) -> None:
    client = await introduced(played)
    session = await client.new()
    messages = await client.turn(session)
    assert "result" in messages[-1]
    assert "session_info_update" not in kinds(messages)
    start = trio.current_time()
    late = await client.next()
    assert trio.current_time() - start == pytest.approx(2)
    assert late["params"]["update"]["title"] == "Weather in Osaka"
    assert (await rows(client))[session]["title"] == "Weather in Osaka"


@LISTS.shows("title-cleared")
async def _(played: Played) -> None:
    client = await introduced(played)
    session = await client.new()
    assert await infos(client, session) == [{"title": "Weather in Osaka"}, {"_meta": {"tags": ["weather"]}}]
    assert (await rows(client))[session]["title"] == "Weather in Osaka"
    assert await infos(client, session) == [{"title": None}]
    assert "title" not in (await rows(client))[session]


@LISTS.shows("title-flood")
async def _(played: Played) -> None:
    client = await introduced(played)
    session = await client.new()
    start = trio.current_time()
    titles = [info["title"] for info in await infos(client, session)]
    assert trio.current_time() - start < 1
    assert len(titles) == 100
    assert len(set(titles)) > 50
    assert (await rows(client))[session]["title"] == titles[-1] == "The last one"


@LISTS.shows("meta-merge")
async def _(played: Played) -> None:
    client = await introduced(played)
    session = await client.new()
    assert await infos(client, session) == [
        {"_meta": {"git": {"branch": "main", "dirty": True}, "tags": ["weather"]}},
        {"_meta": {"git": {"ahead": 2}, "tags": ["osaka"]}},
    ]
    assert (await rows(client))[session]["_meta"] == {
        "git": {"branch": "main", "dirty": True, "ahead": 2},
        "tags": ["osaka"],
    }
    assert await infos(client, session) == [{"_meta": {"git": {"dirty": None}}}]
    assert (await rows(client))[session]["_meta"]["git"] == {"branch": "main", "ahead": 2}
    assert await infos(client, session) == [{"_meta": None}]
    assert "_meta" not in (await rows(client))[session]


@LISTS.shows("title-for-listed-session")
async def _(played: Played) -> None:
    client = await introduced(played)
    assert (await rows(client))["sess_other"]["title"] == "Before"
    [late] = await client.during(10)
    assert late["params"]["sessionId"] == "sess_other"
    assert late["params"]["update"]["title"] == "After"
    assert (await rows(client))["sess_other"]["title"] == "After"


# --- times


@LISTS.shows("null-updated-at")
async def _(played: Played) -> None:
    found = await rows(await introduced(played))
    assert found["sess_null"]["updatedAt"] is None
    assert "updatedAt" not in found["sess_absent"]
    assert found["sess_fine"]["updatedAt"].endswith("Z")


@LISTS.shows("bad-updated-at")
async def _(played: Played) -> None:
    client = await played.client()
    await client.initialize()
    times = {id: row["updatedAt"] for id, row in (await rows(client)).items()}
    assert times["sess_text"] == "last tuesday"
    assert times["sess_number"] == 1736935200
    assert times["sess_far"] == "9999-12-31T23:59:59Z"
    assert times["sess_fine"] < times["sess_far"]


# --- the same faults over AAP


async def walk_aap(aap: Aap, most: int = MOST) -> list[Json]:
    """All pages, or so many, as a client asks for them that believes every `next`."""
    found: list[Json] = []
    after = None
    while len(found) < most and (not found or after is not None):
        reply = await aap.call("GET", "/sessions" if after is None else f"/sessions?after={after}")
        assert reply.status == 200
        found.append(reply.json)
        after = found[-1].get("next")
    return found


@pytest.mark.parametrize(
    ("name", "pages", "sessions"),
    [
        ("many-pages", 16, 794),
        ("cursor-repeats", MOST, 50),
        ("cursor-cycles", MOST, 60),
        ("cursor-empty-string", MOST, 25),
        ("cursor-null", 1, 25),
        ("cursor-endless", MOST, 60),
        ("page-overlap", 3, 60),
        ("empty-page", 3, 60),
        ("page-shrinks", 3, 40),
        ("deleted-while-paging", 2, 4),
    ],
)
async def test_paging_goes_as_far_over_aap(autojump_clock: Any, name: str, pages: int, sessions: int) -> None:
    async with serving(FOLDER / f"lists/{name}.yaml") as served:
        found = await walk_aap(await served.aap(), max(pages, MOST))
    assert len(found) == pages
    assert len({row["sessionId"] for one in found for row in one["sessions"]}) == sessions


@pytest.mark.parametrize("name", LISTS.checks)
async def test_a_list_is_as_its_scenario_says(autojump_clock: Any, name: str) -> None:
    await LISTS.play(name)


@pytest.mark.parametrize("name", sorted(set(LISTS.checks) - SEVERAL))
async def test_a_list_is_the_same_over_stdio(autojump_clock: Any, name: str) -> None:
    await same_over_stdio(LISTS, name)


def test_every_scenario_of_lists_is_shown() -> None:
    assert set(LISTS.checks) == LISTS.bundled
