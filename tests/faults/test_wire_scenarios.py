"""The first scenarios of the catalogue, each played to a client that sees what its first line promises."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from mockagent.scenario.load import load
from tests.faults.wire import CWD, RESET, ROOT, Client, Served, Socket, kinds, process, said, serving

FOLDER = ROOT / "scenarios"
CATALOGUE = sorted(str(file.relative_to(FOLDER))[:-5] for file in FOLDER.glob("*/*.yaml"))
GRANTED = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}

Check = Callable[[Served], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def shows(name: str) -> Callable[[Check], Check]:
    """Registers what a scenario has to show."""

    def register(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return register


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_scenario_of_the_catalogue_says_what_it_is_and_what_a_right_client_does(name: str) -> None:
    scenario = load(FOLDER / f"{name}.yaml")
    assert scenario.name == name.rpartition("/")[2]
    assert (scenario.summary or "").endswith(".")
    assert (scenario.right_client or "").endswith(".")
    assert scenario.tags


async def load_session(client: Client, id: str, cwd: str = CWD) -> Any:
    return await client.call("session/load", sessionId=id, cwd=cwd, mcpServers=[])


# --- ordering


@shows("ordering/update-before-session-reply")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    await client.request("session/new", cwd=CWD, mcpServers=[])
    messages = [await client.next() for _ in range(3)]
    assert kinds(messages) == ["session_info_update", "available_commands_update", "result"]
    assert messages[0]["params"]["sessionId"] == messages[2]["result"]["sessionId"]
    before = len(client.seen)
    await load_session(client, "sess_early")
    assert set(kinds(client.seen[before:-1])) >= {"session_info_update", "current_mode_update"}


@shows("ordering/slow-overlapping-replies")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    ids = [await client.request("session/new", cwd=cwd, mcpServers=[]) for cwd in ("/one", "/two")]
    start = trio.current_time()
    replies = [await client.next(), await client.next()]
    assert [reply["id"] for reply in replies] == ids[::-1]
    assert trio.current_time() - start == 1
    assert "/one" in "".join(said(await client.turn(replies[1]["result"]["sessionId"])))


@shows("ordering/wrong-session-update")
async def _(server: Served) -> None:
    client = await server.client()
    first, second = await client.new(), await client.new()
    messages = await client.turn(second)
    assert [message["params"]["sessionId"] for message in messages[:3]] == [second, first, second]


@shows("ordering/work-done-reply-lost")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    await client.prompt(session, "1")
    assert kinds(await client.during(10))[-1] != "result"
    assert kinds(await client.turn(session, "2"))[-1] == "error: -32603"
    assert kinds(await client.turn(session, "3"))[-1] == "result"
    aap = await server.aap()
    session = await aap.new()
    ends = []
    for _ in range(3):
        reply = await aap.turn(session)
        ends.append(reply.events[-1])
    assert [name for name, _ in ends] == ["text_delta", "turn_stop", "turn_stop"]
    assert [data.get("stopReason") for _, data in ends[1:]] == ["error", "end_turn"]


@shows("ordering/reply-and-updates-in-one-write")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    before = len(client.raw.pieces)
    await client.turn(session)
    await client.next()
    assert kinds(client.seen[-5:]) == [*["agent_message_chunk"] * 3, "result", "session_info_update"]
    last = client.raw.pieces[before:][-1][1]
    assert last.count(b"agent_message_chunk") >= 3
    assert b"session_info_update" in last


# --- turns


@shows("turns/never-ending-turn")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    id = await client.prompt(session)
    assert "result" not in kinds(await client.during(3000))
    await client.cancel(session)
    assert (await client.reply(id))["result"] == {"stopReason": "cancelled"}


@shows("turns/ignored-cancel")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    start = trio.current_time()
    id = await client.prompt(session)
    await client.next()
    await client.cancel(session)
    assert (await client.reply(id))["result"] == {"stopReason": "end_turn"}
    assert trio.current_time() - start >= 9


@shows("turns/error-for-cancel")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    id = await client.prompt(session)
    await client.next()
    await client.cancel(session)
    error, reply = await client.next(), await client.next()
    assert (error["id"], error["error"]["code"]) == (None, -32601)
    assert (reply["id"], reply["result"]) == (id, {"stopReason": "cancelled"})


# --- permissions


@shows("permissions/parallel-permissions")
async def _(server: Served) -> None:
    client = await server.client()
    client.answers["session/request_permission"] = GRANTED
    messages = await client.turn(await client.new())
    asked = [
        message["params"]["toolCall"]["toolCallId"]
        for message in messages
        if message.get("method") == "session/request_permission"
    ]
    assert asked[0] == asked[1] != asked[2]
    assert said(messages) == ["All three questions are answered."]


@shows("permissions/no-options")
async def _(server: Served) -> None:
    client = await server.client()
    client.answers["session/request_permission"] = CANCELLED
    messages = await client.turn(await client.new())
    assert messages[0]["params"]["options"] == []
    assert said(messages) == ["Nothing was done."]
    assert not server.host.report.failed, server.host.report.text()


@shows("permissions/permission-open-at-cancel")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    id = await client.prompt(session)
    asked: list[Any] = []
    while len(asked) < 2:
        message = await client.next()
        asked += [message["id"]] if "id" in message else []
    await client.cancel(session)
    for one in asked:
        await client.send({"jsonrpc": "2.0", "id": one, "result": CANCELLED})
    assert (await client.reply(id))["result"] == {"stopReason": "cancelled"}
    assert not server.host.report.failed, server.host.report.text()


# --- sessions


@shows("sessions/load-error-shapes")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    errors = [(await load_session(client, "x"))["error"] for _ in range(4)]
    assert [error["code"] for error in errors] == [-32002, -32602, -32603, -32603]
    assert errors[2]["data"]["reason"] == "session_not_found"
    assert "not found" in json.loads(errors[3]["data"]["details"])["error"]["message"]


@shows("sessions/lost-session-looks-fine")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    assert (await load_session(client, "sess_lost"))["result"] == {}
    assert (await load_session(client, "nobody"))["result"]["sessionId"] == "sess_other"
    assert (await client.turn("sess_lost"))[-1]["result"] == {"stopReason": "refusal"}


@shows("sessions/load-fails-once")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    for end in ("error: -32603", "result"):
        before = len(client.seen)
        await load_session(client, "sess_flaky")
        assert kinds(client.seen[before:]) == [*["user_message_chunk", "agent_message_chunk"] * 2, end]


# --- lists


async def ids_of_pages(client: Client, count: int) -> list[list[str]]:
    found: list[list[str]] = []
    params: dict[str, Any] = {}
    while len(found) < count:
        result = (await client.call("session/list", **params))["result"]
        found.append([row["sessionId"] for row in result["sessions"]])
        if "nextCursor" not in result:
            break
        params = {"cursor": result["nextCursor"]}
    return found


@shows("lists/cursor-cycles")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    pages = await ids_of_pages(client, 7)
    assert len(pages) == 7
    assert pages[3:6] == pages[:3]


@shows("lists/page-overlap")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    pages = await ids_of_pages(client, 9)
    assert [len(page) for page in pages] == [20, 23, 23]
    assert pages[1][:3] == pages[0][-3:]


@shows("lists/cwd-filter-ignored")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    rows = (await client.call("session/list", cwd="/home/dev/api"))["result"]["sessions"]
    assert {row["sessionId"] for row in rows} == {"sess_api", "sess_web"}


@shows("lists/bad-updated-at")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    rows = {row["sessionId"]: row.get("updatedAt") for row in (await client.call("session/list"))["result"]["sessions"]}
    assert rows["sess_text"] == "last tuesday"
    assert rows["sess_number"] == 1736935200


@shows("lists/long-title")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    [row] = [
        row for row in (await client.call("session/list"))["result"]["sessions"] if row["sessionId"] == "sess_long"
    ]
    assert len(row["title"]) == 10_000
    [info] = [m for m in await client.turn(session) if kinds([m]) == ["session_info_update"]]
    assert len(info["params"]["update"]["title"]) == 10_000


# --- content


@shows("content/unknown-update")
async def _(server: Served) -> None:
    client = await server.client()
    assert kinds(await client.turn(await client.new())) == [
        "agent_message_chunk",
        "mood_update",
        "agent_message_chunk",
        "result",
    ]


@shows("content/wrong-type")
async def _(server: Served) -> None:
    client = await server.client()
    messages = await client.turn(await client.new())
    assert said(messages) == ["One.", 2, "Three."]
    assert messages[2]["params"]["update"]["entries"] == {"first: a step": None} or isinstance(
        messages[2]["params"]["update"]["entries"], dict
    )


@shows("content/tool-update-before-call")
async def _(server: Served) -> None:
    client = await server.client()
    assert kinds(await client.turn(await client.new()))[:3] == ["tool_call_update", "tool_call", "tool_call_update"]


@shows("content/error-with-data")
async def _(server: Served) -> None:
    client = await server.client()
    error = (await client.turn(await client.new()))[-1]["error"]
    assert error["message"] == "Internal error"
    assert error["data"]["details"].startswith("The model is overloaded")


# --- set-up


@shows("set-up/slow-initialize")
async def _(server: Served) -> None:
    client = await server.client()
    start = trio.current_time()
    await client.initialize()
    assert trio.current_time() - start == 20


@shows("set-up/auth-never-sticks")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    assert (await client.call("authenticate", methodId="login"))["result"] == {}
    assert (await client.call("session/new", cwd=CWD, mcpServers=[]))["error"]["code"] == -32000


@shows("set-up/other-protocol-version")
async def _(server: Served) -> None:
    versions = [(await (await server.client()).initialize())["result"]["protocolVersion"] for _ in range(5)]
    assert versions == [2, 0, 99, "1", "1"]


# --- requests to the client


@shows("requests/unknown-request")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    id = await client.prompt(session)
    while (message := await client.next())["id" if "id" in message else "method"] != id:
        if "id" in message:
            await client.send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
    assert said(client.seen) == ["The extension is not known. ", "The method is not known."]
    assert not server.host.report.failed, server.host.report.text()


@shows("requests/cancel-request")
async def _(server: Served) -> None:
    client = await server.client()
    id = await client.prompt(await client.new())
    asked, taken_back = await client.next(), await client.next()
    assert taken_back["method"] == "$/cancel_request"
    assert taken_back["params"]["requestId"] == asked["id"]
    await client.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32800, "message": "cancelled"}})
    assert (await client.reply(id))["result"] == {"stopReason": "end_turn"}


@shows("requests/elicitation-unsupported")
async def _(server: Served) -> None:
    client = await server.client()
    id = await client.prompt(await client.new())
    asked = await client.next()
    assert asked["method"] == "elicitation/create"
    await client.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}})
    await client.reply(id)
    assert said(client.seen) == ["You cannot be asked, so I guess: Osaka."]


# --- WebSocket


@shows("websocket/ws-drop-mid-turn")
async def _(server: Served) -> None:
    client = await server.client()
    session = await client.new()
    for code, end in ((1012, b""), (None, b"")):
        await client.prompt(session)
        assert said(await client.rest())[-1:] == ["Half a sen"]
        assert isinstance(client.link, Socket)
        await client.raw.rest()
        assert (client.link.closed, client.raw.ended) == (code, end)
        client = await server.client()
        await client.initialize()
        await trio.sleep(1)
        await load_session(client, session)
        assert said(client.seen)[-1].endswith("the rest of it.")


@shows("websocket/ws-close-codes")
async def _(server: Served) -> None:
    codes = []
    for _ in range(8):
        client = await server.client()
        assert "result" in kinds(await client.turn(await client.new()))
        await client.rest()
        assert isinstance(client.link, Socket)
        codes.append(client.link.closed)
    assert codes == [1000, 1001, None, 1008, 1009, 1011, 1012, 4001]


@shows("websocket/ws-no-pong")
async def _(server: Served) -> None:
    client = await server.client()
    await client.initialize()
    assert isinstance(client.link, Socket)
    await client.link.send(9, b"there?")
    assert await client.raw.quiet(5)
    assert kinds(await client.turn(await client.new()))[-1] == "result"


@shows("websocket/ws-ping-flood")
async def _(server: Served) -> None:
    client = await server.client()
    await client.turn(await client.new())
    assert isinstance(client.link, Socket)
    opcodes = [frame.opcode for frame in client.link.frames]
    assert opcodes.count(9) == len(said(client.seen)) >= 300


@shows("websocket/ws-handshake-status")
async def _(server: Served) -> None:
    heads = [await Socket(await server.connect()).shake("/acp", {}) for _ in range(6)]
    assert [int(head.split()[1]) for head in heads] == [401, 403, 404, 503, 307, 101]


# --- HTTP


@shows("http/sse-cut")
async def _(server: Served) -> None:
    aap = await server.aap()
    session = await aap.new()
    reply = await aap.turn(session)
    assert (reply.complete, reply.told) == (True, ["This is the first half, "])
    reply = await aap.turn(session)
    assert (reply.complete, reply.told, aap.raw.ended) == (False, ["This is the first half, "], RESET)


@shows("http/sse-line-endings")
async def _(server: Served) -> None:
    aap = await server.aap()
    session = await aap.new()
    bodies = []
    for number in range(4):
        reply = await aap.turn(session)
        assert reply.told == (["No space, and two lines. ", "Good."] if number == 3 else ["One. ", "Two. ", "Three."])
        bodies.append(reply.body)
        if number == 2:
            assert any(chunk.endswith(b"\r") for chunk in reply.chunks)
    assert b"\r\n\r\n" in bodies[0]
    assert b"\r\r" in bodies[1]
    assert b"\n" not in bodies[1]
    assert b"data:{" in bodies[3]


@shows("http/rate-limited")
async def _(server: Served) -> None:
    aap = await server.aap()
    session = await aap.new()
    replies = [await aap.turn(session) for _ in range(4)]
    told = [(reply.status, reply.headers.get("retry-after", "")) for reply in replies]
    assert [status for status, _ in told] == [429, 429, 429, 200]
    assert told[0][1] == "1"
    assert told[1][1].endswith("GMT")
    assert told[2][1] == ""


@shows("http/unauthorised")
async def _(server: Served) -> None:
    aap = await server.aap()
    session = await aap.new()
    replies = [await aap.turn(session) for _ in range(4)]
    told = [(reply.status, reply.headers.get("www-authenticate")) for reply in replies]
    assert told == [(200, None), (401, "Bearer"), (401, None), (200, None)]


@pytest.mark.parametrize("name", CHECKS)
async def test_a_scenario_does_what_it_promises(autojump_clock: Any, name: str) -> None:
    async with serving(FOLDER / f"{name}.yaml") as server:
        await CHECKS[name](server)


# --- those that need a process


@pytest.fixture
def played() -> Callable[[str], Any]:
    return lambda name: process("acp", files=FOLDER / f"{name}.yaml")


@pytest.mark.parametrize(("prompt", "status"), [("0", 0), ("kill", -9), ("go", 1)])
async def test_exit_mid_turn(played: Callable[[str], Any], prompt: str, status: int) -> None:
    async with played("turns/exit-mid-turn") as child:
        client = Client(child)
        await client.prompt(await client.new(), prompt)
        assert said(await client.rest())
        assert await child.ended() == status
        if status == 1:
            assert b"panic: integer divide by zero" in await child.stderr.rest()


async def test_error_then_exit(played: Callable[[str], Any]) -> None:
    async with played("sessions/error-then-exit") as child:
        client = Client(child)
        await client.initialize()
        assert "line 7" in (await load_session(client, "sess_broken"))["error"]["data"]["details"]
        assert await client.next() is None
        assert await child.ended() == 1


async def test_exits_at_start(played: Callable[[str], Any]) -> None:
    async with played("set-up/exits-at-start") as child:
        assert await child.ended() == 1
        assert b"no licence found" in await child.stderr.rest()


async def test_stdout_noise(played: Callable[[str], Any]) -> None:
    async with played("stdio/stdout-noise") as child:
        client = Client(child)
        messages = await client.turn(await client.new())
        assert said(messages) == ["One.", "Two.", "Three."] or said(messages) == ["One. ", "Two. ", "Three."]
        assert [line for line in child.raw.everything.splitlines() if line.startswith(b"[debug] token=42")]
        assert client.seen[0] == b"Starting mock server on port 0..."


async def test_split_utf8(played: Callable[[str], Any]) -> None:
    async with played("stdio/split-utf8") as child:
        client = Client(child)
        messages = await client.turn(await client.new())
        assert "".join(said(messages)).startswith("Grüße")
        cut = [data for _, data in child.raw.pieces if data[-1] >= 0xC0]
        assert len(cut) == 3


async def test_truncated_json(played: Callable[[str], Any]) -> None:
    async with played("stdio/truncated-json") as child:
        client = Client(child)
        messages = await client.turn(await client.new())
        assert [isinstance(message, bytes) for message in messages] == [False, True, False, False]


async def test_oversized_line(played: Callable[[str], Any]) -> None:
    async with played("stdio/oversized-line") as child:
        client = Client(child)
        session = await client.new()
        for prompt, size in (("go", 1 << 20), ("20", 20 << 20)):
            [text] = said(await client.turn(session, prompt))
            assert len(text) == size


def test_every_scenario_here_is_looked_at() -> None:
    looked_at = set(CHECKS) | {
        "turns/exit-mid-turn", "sessions/error-then-exit", "set-up/exits-at-start", "stdio/stdout-noise",
        "stdio/split-utf8", "stdio/truncated-json", "stdio/oversized-line",
    }  # fmt: skip
    for folder in (
        "ordering",
        "turns",
        "permissions",
        "sessions",
        "lists",
        "stdio",
        "content",
        "set-up",
        "requests",
        "websocket",
        "http",
    ):
        assert len([name for name in looked_at if name.startswith(folder + "/")]) >= 2
    assert all((FOLDER / f"{name}.yaml").exists() for name in looked_at)
