"""`session/list` as a client sees it: a look that changes nothing, pages, filters, and bad input."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CWD, Client, Json, Theatre, updates

SCENARIO = """
clock: {now: "2026-01-15T09:00:00Z"}
sessions:
  page_size: 4
  auto_title: null
  stored:
    - {id: s1, cwd: /home/dev/api, title: One, updated_at: 1h ago, meta: {n: 1}, additional_directories: [/x, /y]}
    - {id: s2, cwd: /home/dev/web, updated_at: 2026-01-15T08:30:00Z}
    - {id: s3, cwd: /home/dev/api, title: Old, updated_at: null}
  synthetic: {count: 20, cwds: [/home/dev/api, /home/dev/web]}
turns: [{steps: [{say: x}]}]
"""


def client_of(scenario: str = SCENARIO) -> Client:
    client = Theatre(scenario).client()
    client.initialize()
    return client


def listed(client: Client, **params: Any) -> Json:
    result: Json = client.call("session/list", params)["result"]
    return result


def all_pages(client: Client, **params: Any) -> list[Json]:
    rows: list[Json] = []
    cursor: Json = {}
    while True:
        page = listed(client, **params, **cursor)
        rows += page["sessions"]
        if "nextCursor" not in page:
            return rows
        assert len(page["sessions"]) == 4
        cursor = {"cursor": page["nextCursor"]}


def test_a_row_holds_what_is_known_and_omits_the_rest() -> None:
    rows = {row["sessionId"]: row for row in all_pages(client_of())}
    assert rows["s1"] == {
        "sessionId": "s1",
        "cwd": "/home/dev/api",
        "additionalDirectories": ["/x", "/y"],
        "title": "One",
        "updatedAt": "2026-01-15T08:00:00.000Z",
        "_meta": {"n": 1},
    }
    assert rows["s2"] == {"sessionId": "s2", "cwd": "/home/dev/web", "updatedAt": "2026-01-15T08:30:00.000Z"}
    assert "updatedAt" not in rows["s3"]


def test_pages_hold_each_session_once_by_last_activity_and_those_without_a_time_last() -> None:
    rows = all_pages(client_of())
    assert len({row["sessionId"] for row in rows}) == len(rows) == 23
    times = [row.get("updatedAt", "") for row in rows]
    assert times == sorted(times, reverse=True)
    assert rows[-1]["sessionId"] == "s3"


@pytest.mark.parametrize("cwd", ["/home/dev/api", "/home/dev/api/"])
def test_a_filter_keeps_one_folder(cwd: str) -> None:
    client = client_of()
    rows = all_pages(client, cwd=cwd)
    assert {row["cwd"] for row in rows} == {"/home/dev/api"}
    assert rows == [row for row in all_pages(client) if row["cwd"] == "/home/dev/api"]


def test_no_match_is_an_empty_list() -> None:
    assert listed(client_of(), cwd="/home") == {"sessions": []}


@pytest.mark.parametrize("params", [None, {}, {"cwd": None, "cursor": None}])
def test_all_params_are_optional(params: Any) -> None:
    assert len(client_of().call("session/list", params)["result"]["sessions"]) == 4


def test_a_look_activates_nothing_and_moves_nothing() -> None:
    client = client_of()
    before = all_pages(client)
    assert all_pages(client) == before
    assert list(client.theatre.agent.world.sessions) == [client.theatre.agent.session(id) for id in ("s1", "s2", "s3")]
    assert {session.state for session in client.theatre.agent.world.sessions} == {"stored"}
    prompted = client.call("session/prompt", {"sessionId": "s1", "prompt": [{"type": "text", "text": "go"}]})
    assert prompted["error"]["data"]["reason"] == "session_inactive"


def test_activity_moves_a_session_to_the_top() -> None:
    client = client_of()
    last = all_pages(client)[-2]
    client.call("session/resume", {"sessionId": last["sessionId"], "cwd": last["cwd"]})
    client.prompt(last["sessionId"])
    rows = all_pages(client)
    assert rows[0]["sessionId"] == last["sessionId"]
    assert rows[0]["updatedAt"] > last["updatedAt"]
    assert len(rows) == 23


def test_sessions_made_and_used_while_paging_neither_repeat_nor_vanish() -> None:
    client = client_of()
    before = [row["sessionId"] for row in all_pages(client)]
    first = listed(client)
    client.new("/home/dev/api")
    last = before[-2]
    client.theatre.agent.world.sessions.touch(client.theatre.agent.session(last))
    seen = [row["sessionId"] for row in first["sessions"]]
    cursor = first["nextCursor"]
    while cursor is not None:
        page = listed(client, cursor=cursor)
        seen += [row["sessionId"] for row in page["sessions"]]
        cursor = page.get("nextCursor")
    assert seen == before


def test_without_the_capability_further_folders_are_neither_reported_nor_taken() -> None:
    client = client_of("agent: {capabilities: {additional_directories: false}}\n" + SCENARIO)
    assert not any("additionalDirectories" in row for row in all_pages(client))
    for method in ("session/new", "session/load", "session/resume"):
        params = {"sessionId": "s1", "cwd": "/home/dev/api", "mcpServers": [], "additionalDirectories": ["/x"]}
        assert client.call(method, params)["error"]["data"]["field"] == "additionalDirectories"
        assert client.call(method, {**params, "additionalDirectories": []}).get("result") is not None


def test_a_bad_cursor_is_an_error_that_says_why_and_the_journal_notes_it() -> None:
    client = client_of()
    cursor = listed(client)["nextCursor"]
    for wrong, params in (
        ("garbage", {"cursor": "abc"}),
        ("tampered", {"cursor": cursor[:-1] + ("A" if cursor[-1] != "A" else "B")}),
        ("other_filter", {"cursor": cursor, "cwd": "/home/dev/api"}),
    ):
        error = client.call("session/list", params)["error"]
        assert error["code"] == -32602
        assert error["data"] == {"reason": "invalid_cursor", "why": wrong}
        assert error["message"].startswith("Invalid cursor: it ")
    assert [note["why"] for note in client.theatre.notes.of("invalid_cursor")] == [
        "garbage",
        "tampered",
        "other_filter",
    ]


def test_scope_session_ends_with_a_login() -> None:
    client = client_of("agent: {auth: {methods: [{id: login, name: Log in}]}}\n" + SCENARIO + "  \n")
    assert "nextCursor" in listed(client)
    scenario = SCENARIO.replace("page_size: 4", "page_size: 4\n  cursor: {scope: session}")
    client = client_of("agent: {auth: {methods: [{id: login, name: Log in}]}}\n" + scenario)
    cursor = listed(client)["nextCursor"]
    assert listed(client, cursor=cursor)["sessions"]
    client.call("authenticate", {"methodId": "login"})
    assert client.call("session/list", {"cursor": cursor})["error"]["data"]["why"] == "other_session"


BAD: dict[str, tuple[str, Json, str]] = {
    "relative folder": ("session/new", {"cwd": "project", "mcpServers": []}, "cwd"),
    "empty folder": ("session/new", {"cwd": "", "mcpServers": []}, "cwd"),
    "no folder": ("session/new", {"mcpServers": []}, "cwd"),
    "folder of a wrong type": ("session/new", {"cwd": 5, "mcpServers": []}, "cwd"),
    "relative further folder": (
        "session/new",
        {"cwd": CWD, "mcpServers": [], "additionalDirectories": ["/a", "b"]},
        "additionalDirectories[1]",
    ),
    "further folders of a wrong type": (
        "session/new",
        {"cwd": CWD, "mcpServers": [], "additionalDirectories": "/a"},
        "additionalDirectories",
    ),
    "relative filter": ("session/list", {"cwd": "project"}, "cwd"),
    "filter of a wrong type": ("session/list", {"cwd": ["/a"]}, "cwd"),
    "cursor of a wrong type": ("session/list", {"cursor": 2}, "cursor"),
    "load without an id": ("session/load", {"cwd": CWD, "mcpServers": []}, "sessionId"),
    "load without a folder": ("session/load", {"sessionId": "s1", "mcpServers": []}, "cwd"),
    "load from a relative folder": ("session/load", {"sessionId": "s1", "cwd": "x", "mcpServers": []}, "cwd"),
    "load from another folder": ("session/load", {"sessionId": "s1", "cwd": "/x", "mcpServers": []}, "cwd"),
    "resume from another folder": ("session/resume", {"sessionId": "s1", "cwd": "/x"}, "cwd"),
    "close without an id": ("session/close", {}, "sessionId"),
    "close of a wrong type": ("session/close", {"sessionId": 1}, "sessionId"),
    "delete of null": ("session/delete", {"sessionId": None}, "sessionId"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_params_are_refused_by_name_and_change_nothing(case: str) -> None:
    method, params, field = BAD[case]
    client = client_of()
    error = client.call(method, params)["error"]
    assert error["code"] == -32602
    assert error["data"]["field"] == field
    assert len(all_pages(client)) == 23
    assert {session.state for session in client.theatre.agent.world.sessions} == {"stored"}


STDIO = {"name": "fs", "command": "/usr/bin/mcp", "args": [], "env": [{"name": "K", "value": "V"}]}
HTTP = {"type": "http", "name": "api", "url": "https://example.com/mcp", "headers": [{"name": "A", "value": "B"}]}
SSE = HTTP | {"type": "sse"}


@pytest.mark.parametrize("server", [STDIO, HTTP, SSE], ids=["stdio", "http", "sse"])
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume"])
def test_servers_of_all_transports_are_taken_if_they_were_advertised(method: str, server: Json) -> None:
    params = {"sessionId": "s1", "cwd": "/home/dev/api", "mcpServers": [server]}
    assert "result" in client_of().call(method, params)
    deaf = client_of("agent: {capabilities: {mcp: {http: false, sse: false}}}\n" + SCENARIO)
    assert ("result" in deaf.call(method, params)) == (server is STDIO)


@pytest.mark.parametrize("missing", ["name", "command", "args", "env"])
def test_a_server_that_lacks_something_is_refused(missing: str) -> None:
    server = {key: value for key, value in STDIO.items() if key != missing}
    error = client_of().call("session/new", {"cwd": CWD, "mcpServers": [server]})["error"]
    assert error["code"] == -32602
    assert error["data"]["field"].startswith("mcpServers[0]")


def test_an_update_for_a_listed_session_reaches_a_client_that_has_not_opened_it() -> None:
    client = client_of(
        SCENARIO + "schedule: [{event: session_listed, session: s2, after: 1s, steps: [{info: {title: T}}]}]"
    )
    listed(client, cwd="/home/dev/web")
    client.run()
    [message] = [message for message in client.sent if message.get("method") == "session/update"]
    assert message["params"]["sessionId"] == "s2"
    assert updates([message]) == [{"sessionUpdate": "session_info_update", "title": "T"}]
    rows = {row["sessionId"]: row for row in all_pages(client)}
    assert rows["s2"]["title"] == "T"
    assert client.theatre.agent.session("s2").state == "stored"
