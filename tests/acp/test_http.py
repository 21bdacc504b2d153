"""Streamable HTTP: which request gets which answer, and which stream a message takes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from mockagent.acp import http as endpoint
from mockagent.acp import http_connection
from mockagent.message import Fate
from mockagent.site import Settings
from tests.network import CONNECTION, CWD, SESSION, SSE, said, serving

STORED = """
sessions:
  auto_title: null
  stored:
    - {id: sess_a, cwd: /home/dev/project, title: A, history: [{user: Why?}, {say: Because.}]}
    - {id: sess_b, cwd: /home/dev/project, title: B}
turns:
  - when: {prompt: ask}
    steps: [{tool: {id: look, title: Look, ask: true, output: "18"}}, {say: Done.}]
  - steps: [{say: "You said: ${prompt}"}]
"""

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
NEW = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": CWD, "mcpServers": []}}


# --- initialize


async def test_initialize_is_answered_in_its_own_reply_with_the_connections_id() -> None:
    async with serving(STORED) as mock, httpx.AsyncClient(verify=False) as web:
        reply = await web.post(mock.url, json=INITIALIZE)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers[CONNECTION].startswith("conn_")
        assert reply.json()["id"] == 0
        assert reply.json()["result"]["protocolVersion"] == 1


async def test_initialize_sets_a_cookie_and_its_return_is_looked_for() -> None:
    async with serving(STORED) as mock:
        async with mock.http() as client:
            await client.greet()
            await client.new()
            assert mock.notes.of("cookie_missing") == []
            client.web.cookies.clear()
            await client.new()
            await client.new()
        assert mock.notes.of("cookie_missing") == [{"cookie": "acp_affinity"}]


async def test_a_failed_initialize_can_be_tried_again_on_the_same_connection() -> None:
    async with serving(STORED) as mock, httpx.AsyncClient(verify=False) as web:
        bad = await web.post(mock.url, json=INITIALIZE | {"params": {}})
        assert bad.status_code == 200
        assert bad.json()["error"]["code"] == -32602
        good = await web.post(mock.url, json=INITIALIZE, headers={CONNECTION: bad.headers[CONNECTION]})
        assert good.json()["result"]["protocolVersion"] == 1
        assert good.headers[CONNECTION] == bad.headers[CONNECTION]


# --- what is refused

REFUSED: list[tuple[str, str, dict[str, str], Any, int]] = [
    ("no JSON type", "POST", {"Content-Type": "text/plain"}, b"{}", 415),
    ("no type at all", "POST", {}, b"{}", 415),
    ("no JSON", "POST", {"Content-Type": "application/json"}, b"{", 400),
    ("a number", "POST", {}, 7, 400),
    ("a batch", "POST", {}, [INITIALIZE], 501),
    ("a batch on a connection", "POST", {"connection": "known"}, [NEW], 501),
    ("no connection", "POST", {}, NEW, 400),
    ("unknown connection", "POST", {"connection": "unknown"}, NEW, 404),
    ("initialize twice", "POST", {"connection": "known"}, INITIALIZE, 400),
    ("initialize without an id", "POST", {}, {"jsonrpc": "2.0", "method": "initialize", "params": {}}, 400),
    ("a prompt without its session", "POST", {"connection": "known"}, {**NEW, "method": "session/prompt"}, 400),
    (
        "another session than the body's",
        "POST",
        {"connection": "known", "session": "sess_b"},
        {**NEW, "method": "session/cancel", "params": {"sessionId": "sess_a"}},
        400,
    ),
    ("a very long id", "POST", {"connection": "known", "session": "s" * 2000}, NEW, 400),
    ("a stream of anything", "GET", {"connection": "known", "Accept": "*/*"}, None, 406),
    ("a stream of JSON", "GET", {"connection": "known", "Accept": "application/json"}, None, 406),
    ("a stream of nobody", "GET", {**SSE}, None, 400),
    ("a stream of somebody unknown", "GET", {**SSE, "connection": "unknown"}, None, 404),
    ("the end of nobody", "DELETE", {}, None, 400),
    ("the end of somebody unknown", "DELETE", {"connection": "unknown"}, None, 404),
    ("another method", "PUT", {"connection": "known"}, None, 405),
    ("a head", "HEAD", {"connection": "known"}, None, 405),
]


@pytest.mark.parametrize(
    ("method", "headers", "body", "status"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_a_wrong_request_gets_its_status_and_the_connection_stays(
    method: str, headers: dict[str, str], body: Any, status: int
) -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        sent = dict(headers)
        who = sent.pop("connection", None)
        if who is not None:
            sent[CONNECTION] = client.connection or "" if who == "known" else "conn_0"
        if "session" in sent:
            sent[SESSION] = sent.pop("session")
        content: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {}
        if body is not None and not content:
            content = {"json": body}
        reply = await client.web.request(method, mock.url, headers=sent, **content)
        assert reply.status_code == status, reply.text
        if method != "HEAD":
            assert reply.json()["error"]["message"]
        if status == 405:
            assert reply.headers["allow"] == "GET, POST, DELETE, OPTIONS"
        assert await client.new()


async def test_what_is_refused_reaches_no_handler_and_is_noted() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        reply = await client.post({"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": said(session, "x")})
        assert reply.status_code == 400
        assert mock.notes.messages_of("session/prompt", "in") == []
        assert mock.notes.of("refused")[-1]["status"] == 400


# --- which stream


async def test_replies_about_the_connection_and_new_sessions_take_its_own_stream() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        listed = await client.call("session/list")
        loaded = await client.load("sess_a")
        on_main = client.streams[None]
        assert next(one["result"] for one in on_main if one["id"] == 2)["sessionId"] == session
        assert listed in on_main
        assert loaded in on_main


async def test_all_else_about_a_session_takes_the_sessions_stream() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        await client.prompt(session, "ask")
        await client.call("session/close", {"sessionId": session})
        kinds = [one.get("method") or "reply" for one in client.streams[session]]
        assert kinds.count("reply") == 2
        assert "session/request_permission" in kinds
        assert all("sessionId" not in str(one.get("params")) for one in client.streams[None])


async def test_sessions_do_not_share_a_stream() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        one, other = await client.new(), await client.new()
        await client.prompt(one, "first")
        await client.prompt(other, "second")
        for session, word in ((one, "first"), (other, "second")):
            said_there = str(client.streams[session])
            assert f"You said: {word}" in said_there
            assert said_there.count("You said") == 1


async def test_a_stream_may_be_opened_for_a_session_that_is_loaded_later() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        await client.open("sess_a")
        await client.load("sess_a")
        await client.until("agent_message_chunk")
        assert client.streams["sess_a"]
        assert client.words() == "Because."


async def test_what_is_sent_before_its_stream_is_open_waits_for_it() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        client.opens_streams = False
        await client.greet()
        assert (await client.post(NEW | {"id": 40})).status_code == 202
        await client.open(None)
        reply = await client.reply(40)
        session = reply["result"]["sessionId"]
        prompt = {"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": said(session, "x")}
        assert (await client.post(prompt, session)).status_code == 202
        await mock.notes.when(lambda: mock.notes.messages_of("session/prompt", "in"))
        assert client.updates() == []
        await client.open(session)
        await client.reply(7)
        assert client.words() == "You said: x"


async def test_without_the_header_a_loaded_session_takes_the_connections_stream_until_its_own_is_opened() -> None:
    """A released SDK names no session when it loads one, and opens that stream when a message tells it to."""
    async with serving(STORED) as mock, mock.http() as client:
        client.opens_streams = False
        await client.greet()
        await client.open(None)
        load = {"jsonrpc": "2.0", "id": 5, "method": "session/load"}
        params = {"sessionId": "sess_a", "cwd": CWD, "mcpServers": []}
        assert (await client.post(load | {"params": params})).status_code == 202
        await client.reply(5)
        assert client.words() == "Because."
        await client.open("sess_a")
        await client.prompt("sess_a", "x")
        assert [one for one in client.streams["sess_a"] if one.get("id") is not None]
        assert mock.notes.of("session_header_missing") == [{"method": "session/load"}]


async def test_an_answer_finds_its_request_without_the_session_header() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        client.answers["session/request_permission"] = None
        await client.greet()
        session = await client.new()
        prompt = await client.ask("session/prompt", said(session, "ask"))
        asked = await client.when(lambda: next((m for m in client.seen if "request_permission" in str(m)), None))
        chosen = {"outcome": {"outcome": "selected", "optionId": asked["params"]["options"][0]["optionId"]}}
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": chosen}
        assert (await client.post(answer, "sess_b")).status_code == 400
        assert (await client.post(answer)).status_code == 202
        assert (await client.reply(prompt))["result"] == {"stopReason": "end_turn"}


async def test_updates_of_listed_sessions_take_the_connections_stream() -> None:
    text = STORED + "schedule: [{event: session_listed, session: sess_b, steps: [{info: {title: New}}]}]\n"
    async with serving(text) as mock, mock.http() as client:
        await client.greet()
        await client.call("session/list")
        await client.until("session_info_update")
        assert any("New" in str(one) for one in client.streams[None])


async def test_a_stream_has_one_reader() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        for name in (None, session):
            reply = await client.web.get(mock.url, headers=SSE | client.headers(name))
            assert reply.status_code == 409, reply.text
        await client.prompt(session)


async def test_a_stream_can_be_opened_again_and_goes_on_where_it_was() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        await client.prompt(session, "first")
        await client.hang_up(session, mock)
        second = await client.ask("session/prompt", said(session, "second"))
        await mock.notes.when(lambda: mock.notes.messages_of("session/prompt", "in")[1:])
        client.seen.clear()
        await client.open(session)
        await client.reply(second)
        assert client.words() == "You said: second"
        assert mock.notes.messages_of("update:agent_message_chunk", "out") == [Fate.INTACT] * 2
        assert mock.notes.of("lost") == []


# --- the end


async def test_delete_ends_the_streams_in_order_and_the_connection_is_unknown_afterwards() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        assert (await client.delete()).status_code == 202
        await client.when(lambda: {None, session} <= set(client.ended))
        assert (await client.delete()).status_code == 404
        assert mock.notes.of("closed") == [{"why": "the client has ended it"}]


async def test_a_session_outlives_its_connection() -> None:
    async with serving(STORED) as mock:
        async with mock.http() as client:
            await client.greet()
            session = await client.new()
            await client.prompt(session, "remember")
            await client.delete()
        async with mock.http() as client:
            await client.greet()
            await client.load(session)
            await client.until("agent_message_chunk")
            assert client.words() == "You said: remember"


async def test_clients_over_two_transports_hear_the_same_session() -> None:
    async with serving(STORED) as mock, mock.http() as one, mock.ws() as other:
        await one.greet()
        await other.greet()
        session = await one.new()
        await other.load(session)
        await other.prompt(session, "hello")
        await one.until("agent_message_chunk")
        assert one.words() == other.words() == "You said: hello"
        assert one.streams[session] == [message for message in other.seen if message.get("method") == "session/update"]


async def test_a_client_that_shows_no_sign_of_life_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint.Endpoint.__init__, "__kwdefaults__", {"idle": 0.05})
    async with serving(STORED) as mock, mock.http() as client:
        client.opens_streams = False
        await client.greet()
        assert (await mock.notes.until("closed"))["why"] == "the client has shown no sign of life"
        assert (await client.post(NEW)).status_code == 404


async def test_an_open_stream_is_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint.Endpoint.__init__, "__kwdefaults__", {"idle": 0.02})
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        async with mock.http() as silent:  # the measure of time: this one is dropped, twice
            silent.opens_streams = False
            await silent.greet()
            await mock.notes.until("closed", 1)
            silent.connection = None
            await silent.greet()
            await mock.notes.until("closed", 2)
        assert await client.new()


async def test_the_end_of_the_server_ends_every_stream_in_order() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        mock.site.stop()
        await client.when(lambda: {None, session} <= set(client.ended))
        assert await mock.notes.until("closed") == {"why": "the server shuts down"}


async def test_a_running_turn_goes_on_without_its_connection() -> None:
    text = "sessions: {auto_title: null}\nturns: [{steps: [{say: one}, {wait_for: {method: _go}}, {say: two}]}]\n"
    async with serving(text) as mock:
        async with mock.http() as client:
            await client.greet()
            session = await client.new()
            await client.ask("session/prompt", said(session, "x"))
            await client.until("agent_message_chunk")
            await client.delete()
        async with mock.http() as client:
            await client.greet()
            await client.load(session)
            await client.post({"jsonrpc": "2.0", "method": "_go", "params": {"sessionId": session}}, session)
            await client.when(lambda: client.words() == "onetwo")


# --- who may


async def test_tokens_are_asked_of_every_request_and_every_way_to_show_one_works() -> None:
    async with serving("agent: {auth: {tokens: [secret-one]}}\n") as mock:
        async with httpx.AsyncClient(verify=False) as web:
            for method in ("POST", "GET", "DELETE"):
                reply = await web.request(method, mock.url, headers=SSE)
                assert reply.status_code == 401
                assert reply.headers["www-authenticate"] == "Bearer"
            wrong = await web.post(mock.url, json=INITIALIZE, headers={"Authorization": "Bearer other"})
            assert wrong.status_code == 401
            query = await web.post(f"{mock.url}?access_token=secret-one", json=INITIALIZE)
            assert query.status_code == 200
        async with mock.http(Authorization="Bearer secret-one") as client:
            await client.greet()
            assert await client.new()


async def test_a_page_from_loopback_may_read_and_one_from_elsewhere_may_not() -> None:
    async with serving(STORED) as mock, httpx.AsyncClient(verify=False) as web:
        ours = {"Origin": "http://localhost:5173"}
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "acp-connection-id"}
        before = await web.options(mock.url, headers=ours | asked)
        assert before.status_code == 204
        assert before.headers["access-control-allow-headers"] == "acp-connection-id"
        assert "DELETE" in before.headers["access-control-allow-methods"]
        reply = await web.post(mock.url, json=INITIALIZE, headers=ours)
        assert reply.headers["access-control-allow-origin"] == "http://localhost:5173"
        assert CONNECTION in reply.headers["access-control-expose-headers"]
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            foreign = await web.post(mock.url, json=INITIALIZE, headers=headers)
            assert foreign.status_code == 403


async def test_an_origin_that_was_named_may_come_in() -> None:
    settings = Settings(port=0, allow_origins=("https://app.example",))
    async with serving(STORED, settings=settings) as mock, httpx.AsyncClient(verify=False) as web:
        reply = await web.post(mock.url, json=INITIALIZE, headers={"Origin": "https://app.example"})
        assert reply.status_code == 200
        assert reply.headers["access-control-allow-origin"] == "https://app.example"


async def test_each_agent_has_its_own_address_and_connections_belong_to_one() -> None:
    async with serving(STORED, "agent: {name: second}\n") as mock:
        async with mock.http("/acp/agent1") as client:
            assert (await client.greet())["agentInfo"]["name"] == "second"
            wrong = await client.web.post(mock.url, json=NEW, headers=client.headers())
            assert wrong.status_code == 404
            assert await client.new()
        async with httpx.AsyncClient(verify=False) as web:
            nobody = await web.post(f"{mock.url}/nobody", json=INITIALIZE)
            assert nobody.status_code == 404
            assert "agent0, agent1" in nobody.json()["error"]["message"]


async def test_no_more_connections_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MOST_CONNECTIONS", 1)
    async with serving(STORED) as mock, httpx.AsyncClient(verify=False) as web:
        first = await web.post(mock.url, json=INITIALIZE)
        second = await web.post(mock.url, json=INITIALIZE)
        assert (first.status_code, second.status_code) == (200, 503)
        assert second.headers["retry-after"] == "1"


async def test_no_more_streams_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "MOST_STREAMS", 1)
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        await client.open("sess_a")
        reply = await client.web.get(mock.url, headers=SSE | client.headers("sess_b"))
        assert reply.status_code == 503


# --- what the journal says


async def test_taps_see_the_messages_of_acp_and_not_those_of_http() -> None:
    async with serving(STORED) as mock, mock.http() as client:
        await client.greet()
        session = await client.new()
        await client.prompt(session)
        kinds = [(kind, way) for kind, way, fate, _ in mock.notes.messages if fate is Fate.INTACT]
        assert ("initialize", "in") in kinds
        assert ("reply:initialize", "out") in kinds
        assert not [kind for kind, _ in kinds if "/acp" in kind]
        assert mock.notes.of("connected")[0]["agent"] == "agent0"
