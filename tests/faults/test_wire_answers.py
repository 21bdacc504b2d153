"""What faults make of answers, as clients of both protocols receive them: errors, results, edits, named errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockagent.errors import NAMED
from tests.faults.wire import Client, kinds, said, serving

TALK = "turns: [{steps: [{say: one}, {say: zwö}]}]\n"
ROWS = """
sessions:
  page_size: 2
  stored:
    - {id: a, title: A, updated_at: 1h ago}
    - {id: b, title: B, updated_at: 2h ago}
    - {id: c, title: C, updated_at: 3h ago}
    - {id: d, title: D, updated_at: 4h ago}
    - {id: e, title: E, updated_at: 5h ago}
"""


# --- errors and results


@pytest.mark.parametrize("name", NAMED)
async def test_every_named_error_has_its_code_in_acp_and_its_status_in_aap(name: str) -> None:
    row = NAMED[name]
    async with serving(f"faults: [{{at: list, error: {name}}}]") as server:
        client = await server.client()
        await client.initialize()
        error = (await client.call("session/list"))["error"]
        assert (error["code"], error["message"]) == (row.code, row.message)
        assert error.get("data") == ({"reason": row.reason} if row.reason else None)
        aap = await server.aap()
        reply = await aap.call("GET", "/sessions")
        assert (reply.status, reply.json["error"]["code"]) == (row.status, name)
        assert reply.headers.get("retry-after") == ("1" if row.status == 429 else None)
        assert reply.headers.get("www-authenticate") == ("Bearer" if row.status == 401 else None)
        assert (await aap.call("GET", "/meta")).status == 200, "the connection is kept"


async def test_an_error_may_be_written_out_and_keep_its_reason_in_data_alone() -> None:
    error = '{code: -32603, message: Internal error, data: {details: "{\\"reason\\":\\"session not found\\"}"}}'
    async with serving(f"faults: [{{at: load, error: {error}}}]") as server:
        client = await server.client()
        await client.initialize()
        reply = await client.call("session/load", sessionId="x", cwd="/", mcpServers=[])
        assert json.loads(reply["error"]["data"]["details"]) == {"reason": "session not found"}


async def test_an_error_in_place_of_the_handler_leaves_no_trace_and_one_on_the_reply_does() -> None:
    faults = """
faults:
  - {at: create, when: {nth: 1}, error: overloaded}
  - {at: "reply:session/new", when: {nth: 2}, error: internal_error}
  - {at: "reply:POST /sessions", when: {nth: 1}, error: internal_error}
"""
    async with serving(faults) as server:
        client = await server.client()
        await client.initialize()
        got = []
        for _ in range(3):
            reply = await client.call("session/new", cwd="/", mcpServers=[])
            listed = await client.call("session/list")
            got.append((kinds([reply])[0], len(listed["result"]["sessions"])))
        assert got == [("error: -32603", 0), ("error: -32603", 1), ("result", 2)]


async def test_a_result_takes_the_place_of_the_handlers() -> None:
    faults = """
faults:
  - {at: session/load, result: null}
  - {at: "reply:session/new", result: {sessionId: "${request.id}-${session.cwd}"}}
  - {at: GET /meta, result: {version: 99}}
"""
    async with serving(faults) as server:
        client = await server.client()
        await client.initialize()
        reply = await client.call("session/load", sessionId="nobody", cwd="/", mcpServers=[])
        assert reply == {"jsonrpc": "2.0", "id": 2, "result": None}
        reply = await client.call("session/new", cwd="/home", mcpServers=[])
        assert reply["result"] == {"sessionId": "3-/home"}
        aap = await server.aap()
        assert (await aap.call("GET", "/meta")).json == {"version": 99}


async def test_an_http_reply_may_be_written_out() -> None:
    fault = (
        "{at: list, when: {protocol: aap}, error: {status: 503, headers: {Retry-After: '${now.http+2s}'}, body: no}}"
    )
    async with serving(f"clock: {{now: '2026-01-15T09:00:00Z'}}\nfaults: [{fault}]") as server:
        reply = await (await server.aap()).call("GET", "/sessions")
        assert (reply.status, reply.body) == (503, b"no")
        assert reply.headers["retry-after"].startswith("Thu, 15 Jan 2026 09:00:02")


async def test_an_answer_to_a_notification_is_possible_and_wrong() -> None:
    async with serving(TALK + "faults: [{at: cancel, error: invalid_request}]") as server:
        client = await server.client()
        await client.cancel(await client.new())
        message = await client.next()
        assert (message["id"], message["error"]["code"]) == (None, -32600)


# --- edits

EDITS: list[tuple[str, Any]] = [
    ("{set: /params/update/content/text, to: 7}", 7),
    ("{set: /params/update/content/text, to: '<${value}>'}", "<one>"),
    ("{set: /params/update/content/text, to: null}", None),
    ("{set: /params/update/content/text, to: 5, as: string}", "5"),
    ("{set: /params/update/content/text, to: '5', as: number}", 5),
    ("{remove: /params/update/content/text}", "absent"),
    ("{remove: /params/nothing/here}", "one"),
    ("{set: /params/update/content/more/-, to: x}", "one"),
]


@pytest.mark.parametrize(("edit", "text"), EDITS)
async def test_an_edit_changes_what_leaves(edit: str, text: Any) -> None:
    async with serving(TALK + f"faults: [{{at: say, when: {{times: 1}}, edit: [{edit}]}}]") as server:
        client = await server.client()
        first, second, reply = await client.turn(await client.new())
        assert first["params"]["update"]["content"].get("text", "absent") == text
        assert said([second]) == ["zwö"]
        assert reply["result"] == {"stopReason": "end_turn"}


async def test_an_edit_at_a_request_changes_its_reply_in_both_protocols() -> None:
    faults = """
faults:
  - {at: list, when: {protocol: acp}, edit: {set: /result/sessions/0/title, to: "was ${value}"}}
  - at: list
    when: {protocol: aap}
    edit: [{set: /sessions/0/sessionId, to: "a/${value}"}, {set: /http/status, to: 203}]
  - {at: turn, when: {protocol: aap}, edit: {set: /stopReason, to: refusal}}
  - {at: turn, when: {protocol: acp}, edit: {set: /result/stopReason, to: refusal}}
"""
    async with serving(ROWS + TALK + faults) as server:
        client = await server.client()
        await client.initialize()
        assert (await client.call("session/list"))["result"]["sessions"][0]["title"] == "was A"
        assert (await client.turn(await client.new()))[-1]["result"] == {"stopReason": "refusal"}
        aap = await server.aap()
        reply = await aap.call("GET", "/sessions")
        assert (reply.status, reply.json["sessions"][0]["sessionId"][:2]) == (203, "a/")
        session = await aap.new()
        for mode in ("delta", "message"):
            assert (await aap.turn(session, stream=mode)).events[-1] == ("turn_stop", {"stopReason": "refusal"})
        assert (await aap.turn(session, stream="none")).json["stopReason"] == "refusal"


async def test_the_head_of_a_stream_can_be_edited_and_an_event_renamed() -> None:
    faults = """
faults:
  - {at: turn, edit: [{set: /http/headers/Content-Type, to: text/event-stream}, {remove: /http/headers/Cache-Control}]}
  - {at: "event:text_delta", when: {nth: 1}, event_name: text_dleta}
  - {at: "event:text_delta", when: {nth: 2}, edit: [{event_name: "${value}x"}, {set: /delta, to: 8}]}
"""
    async with serving(TALK + faults) as server:
        aap = await server.aap()
        reply = await aap.turn(await aap.new())
        assert "cache-control" not in reply.headers
        assert [name for name, _ in reply.events] == ["turn_start", "text_dleta", "text_deltax", "turn_stop"]


async def test_the_mock_expects_the_answer_under_the_id_that_it_really_sent() -> None:
    async with serving("""
turns: [{steps: [{ask: {title: May I?}, then: [{when: {outcome: granted}, steps: [{say: granted}]}]}]}]
faults: [{at: "request:session/request_permission", edit: {set: /id, to: "odd-${value}"}}]
""") as server:
        client = await server.client()
        client.answers["session/request_permission"] = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        messages = await client.turn(await client.new())
        assert str(messages[0]["id"]).startswith("odd-")
        assert said(messages) == ["granted"]


async def test_a_pointer_that_leads_nowhere_is_noted_and_the_conversation_goes_on() -> None:
    faults = """
faults:
  - {at: say, edit: {set: /params/update/sessionUpdate/x, to: 1}}
  - {at: "reply:session/prompt", save: {it: /result/nothing}, copies: 2}
  - {at: list, edit: {set: /result/x, to: "${saved.gone}"}}
  - {at: nothing_saved, save: {gone: /id}}
"""
    async with serving(
        TALK
        + faults.replace("  - {at: nothing_saved, save: {gone: /id}}\n", "")
        + "  - {at: _own, save: {gone: /id}}\n"
    ) as server:
        client = await server.client()
        messages = await client.turn(await client.new())
        assert said(messages) == ["one", "zwö"]
        assert kinds(messages)[-1] == "result"
        assert "result" in await client.call("session/list")
        assert len(server.seen.skipped) == 4
        assert all(why.startswith("skipped: ") for why in server.seen.skipped)


# --- shorthands

MODES = """
sessions: {page_size: 2, invalid_cursor: %s, stored: [{id: a}, {id: b}, {id: c}]}
"""


@pytest.mark.parametrize("wanted", ["error", "empty", "first_page"])
async def test_what_an_invalid_cursor_gets(wanted: str) -> None:
    async with serving(MODES % wanted) as server:
        client = await server.client()
        await client.initialize()
        reply = await client.call("session/list", cursor="made up")
        aap = await server.aap()
        got = await aap.call("GET", "/sessions?after=made%20up")
        if wanted == "error":
            assert reply["error"]["code"] == -32602
            assert got.status == 400
        else:
            count = {"empty": 0, "first_page": 2}[wanted]
            assert len(reply["result"]["sessions"]) == count
            assert (got.status, len(got.json["sessions"])) == (200, count)


@pytest.mark.parametrize(
    ("wanted", "code", "status"),
    [
        ("session_not_found", -32002, 404),
        ("{code: -32602, message: gone}", -32602, 400),
        ("{status: 410, body: gone}", None, 410),
        ("create", None, 200),
        ("empty", None, 200),
    ],
)
async def test_what_an_unknown_session_gets(wanted: str, code: int | None, status: int) -> None:
    async with serving(TALK + f"sessions: {{unknown: {wanted}}}") as server:
        client = await server.client()
        await client.initialize()
        if not wanted.startswith("{status"):
            reply = await client.call("session/load", sessionId="nobody", cwd="/home/dev/project", mcpServers=[])
            assert reply.get("error", {}).get("code") == code
            await client.turn("nobody")
            if wanted == "create":
                assert said(client.seen) == ["one", "zwö"]
        aap = await server.aap()
        assert (await aap.call("GET", "/sessions/nothing")).status == status
        turn = await aap.turn("nothing")
        assert turn.status == status
        if wanted == "create":
            assert turn.told == ["one", "zwö"]


async def test_what_a_session_that_is_not_open_gets() -> None:
    async with serving("sessions: {inactive: auth_required, stored: [{id: a}]}") as server:
        client = await server.client()
        await client.initialize()
        [reply] = await client.turn("a")
        assert reply["error"]["code"] == -32000
        assert ("refusal:session_inactive", "session/prompt") in server.seen.fired


@pytest.mark.parametrize("wanted", ["busy", "rate_limited", "{code: -32001, message: later}", "queue", "replace"])
async def test_what_a_second_prompt_gets(autojump_clock: Any, wanted: str) -> None:
    async with serving(
        f"sessions: {{busy: {wanted}}}\nturns: [{{steps: [{{say: a}}, {{wait: 5s}}, {{say: b}}]}}]"
    ) as server:
        client = await server.client()
        session = await client.new()
        first, second = await client.prompt(session), await client.prompt(session)
        await client.reply(second if wanted in ("queue", "replace") else first)
        ends = {
            m["id"]: m.get("result", {}).get("stopReason") or m["error"]["code"]
            for m in client.seen
            if "id" in m and m["id"] in (first, second)
        }
        assert ends == {
            "busy": {first: "end_turn", second: -32600},
            "rate_limited": {first: "end_turn", second: -32603},
            "queue": {first: "end_turn", second: "end_turn"},
            "replace": {first: "cancelled", second: "end_turn"},
        }.get(wanted, {first: "end_turn", second: -32001})
        aap, other = await server.aap(), await server.aap()
        session = await aap.new()
        await aap.begin(session)
        await aap.raw.until(b'{"delta":"a"}')
        got = await other.turn(session)
        assert got.status == {"busy": 409, "rate_limited": 429, "queue": 200, "replace": 200}.get(wanted, 500)


@pytest.mark.parametrize("send", ["before", "after", "none"])
async def test_when_a_history_is_replayed(autojump_clock: Any, send: str) -> None:
    async with serving(
        f"sessions: {{replay: {{send: {send}, for: [load, resume]}}, "
        "stored: [{id: a, history: [{user: q}, {say: r}]}]}"
    ) as server:
        client = await server.client()
        await client.initialize()
        for method in ("session/load", "session/resume"):
            before = len(client.seen)
            await client.call(method, sessionId="a", cwd="/home/dev/project", mcpServers=[])
            await client.during(1)
            updates = ["user_message_chunk", "agent_message_chunk"]
            expected = {"before": [*updates, "result"], "after": ["result", *updates], "none": ["result"]}
            assert kinds(client.seen[before:]) == expected[send]


# --- the list


async def pages(client: Client, most: int = 8) -> list[list[str]]:
    """The ids of each page, following cursors."""
    found: list[list[str]] = []
    params: dict[str, Any] = {}
    while len(found) < most:
        reply = await client.call("session/list", **params)
        if "error" in reply:
            found.append([str(reply["error"]["code"])])
            break
        found.append([row["sessionId"] for row in reply["result"]["sessions"]])
        if reply["result"].get("nextCursor") is None:
            break
        params = {"cursor": reply["result"]["nextCursor"]}
    return found


async def aap_pages(server: Any, most: int = 8) -> list[list[str]]:
    aap = await server.aap()
    found: list[list[str]] = []
    query = ""
    while len(found) < most:
        reply = await aap.call("GET", "/sessions" + query)
        if reply.status != 200:
            found.append([str(reply.status)])
            break
        found.append([row["sessionId"] for row in reply.json["sessions"]])
        if reply.json.get("next") is None:
            break
        query = "?after=" + reply.json["next"]
    return found


WALKS = [
    ("cursor: repeat", [["a", "b"], ["c", "d"], *[["c", "d"]] * 6]),
    ("cursor: cycle", [["a", "b"], ["c", "d"], ["e"], ["a", "b"], ["c", "d"], ["e"], ["a", "b"], ["c", "d"]]),
    ("cursor: empty", [["a", "b"]] * 8),
    ("cursor: null", [["a", "b"]]),
    ("cursor: endless", [["a", "b"], ["c", "d"], *[["e"]] * 6]),
    ("when: {nth: 1}, cursor: expired", [["a", "b"], ["error"]]),
    ("when: {nth: 2}, error: invalid_cursor", [["a", "b"], ["error"]]),
    ("when: {nth: 2}, page: empty", [["a", "b"], [], ["e"]]),
    ("when: {nth: 2}, page: {overlap: 1}", [["a", "b"], ["b", "c", "d"], ["e"]]),
    ("when: {nth: 2}, page: shrink", [["a", "b"], ["c"], ["e"]]),
    (
        "rows: [{match: '*', copies: 2}, {match: b, copies: 1}, {match: c, copies: 3}, {match: d, copies: 0}]",
        [["a", "a", "b"], ["c", "c", "c"], ["e", "e"]],
    ),
]


@pytest.mark.parametrize(("fault", "walk"), WALKS)
async def test_faults_of_the_list(fault: str, walk: list[list[str]]) -> None:
    async with serving(ROWS + f"faults: [{{at: list, {fault}}}]") as server:
        client = await server.client()
        await client.initialize()
        acp = [["-32602"] if page == ["error"] else page for page in walk]
        assert await pages(client) == acp
        assert not server.seen.skipped
    async with serving(ROWS + f"faults: [{{at: list, {fault}}}]") as server:
        assert await aap_pages(server) == [["400"] if page == ["error"] else page for page in walk]


async def test_rows_with_other_values() -> None:
    rows = "rows: [{match: a, set: {title: null, updatedAt: 'not a time', cwd: 7}}, {match: b, set: {_meta: {x: 1}}}]"
    async with serving(ROWS + f"faults: [{{at: session/list, {rows}}}]") as server:
        client = await server.client()
        await client.initialize()
        a, b = (await client.call("session/list"))["result"]["sessions"]
        assert (a["title"], a["updatedAt"], a["cwd"]) == (None, "not a time", 7)
        assert b["_meta"] == {"x": 1}


async def test_a_null_cursor_is_there() -> None:
    async with serving(ROWS + "faults: [{at: list, cursor: null}]") as server:
        client = await server.client()
        await client.initialize()
        assert (await client.call("session/list"))["result"]["nextCursor"] is None
        assert (await (await server.aap()).call("GET", "/sessions")).json["next"] is None


# --- edits of the request


async def test_an_edit_of_params_changes_what_the_handler_sees() -> None:
    """A filter that is ignored: the request loses it, and its reply is that of the handler."""
    sessions = "sessions: {stored: [{id: a, cwd: /one}, {id: b, cwd: /two}]}\n"
    async with serving(
        sessions + "faults: [{at: list, edit: [{remove: /params/cwd}, {set: /result/x, to: 1}]}]"
    ) as server:
        client = await server.client()
        await client.initialize()
        result = (await client.call("session/list", cwd="/one"))["result"]
        assert {row["sessionId"] for row in result["sessions"]} == {"a", "b"}
        assert result["x"] == 1


async def test_an_edit_of_the_query_changes_what_the_endpoint_sees() -> None:
    async with serving(ROWS + "faults: [{at: list, edit: {remove: /http/query/after}}]") as server:
        assert await aap_pages(server, 3) == [["a", "b"]] * 3


# --- saving


async def test_what_is_saved_is_used_in_later_messages_steps_and_faults() -> None:
    async with serving("""
sessions: {auto_title: null}
turns:
  - save: {first: /params/prompt/0/text}
    steps:
      - say: "${saved.first}"
      - {request: {method: _ask, params: {}}, save: {got: /result/word}}
      - say: "${saved.got}, ${saved.version}"
faults:
  - {at: initialize, save: {version: /params/protocolVersion}}
  - {at: "reply:session/new", when: {nth: 1}, save: {other: /result/sessionId}}
  - {at: say, when: {nth: 1}, edit: {set: /params/sessionId, to: "${saved.other}"}}
""") as server:
        client = await server.client()
        client.answers["_ask"] = {"word": "please"}
        first, second = await client.new(), await client.new()
        messages = await client.turn(second, "hi")
        assert said(messages) == ["hi", "please, 1"]
        assert [
            message["params"]["sessionId"] for message in messages if message.get("method") == "session/update"
        ] == [first, second]
