"""What a client can get wrong: the right status, an error body that names the field, and nothing changed."""

from __future__ import annotations

import pytest

AGENT = """
agent:
  tools: [{name: web_search}]
  capabilities: {stream: {message: false}, images: {http: false}}
  options:
    - {id: model, name: Model, type: select, value: fast, choices: [{value: fast, name: F}]}
    - {id: brave, name: Brave, type: boolean, value: false}
    - {id: key, name: Key, type: secret, value: ""}
turns: [{steps: [{say: ok}]}]
"""
ME = {"name": "mock-agent"}
TOOL = {"name": "mine", "description": "", "parameters": {"type": "object"}}
USER = {"role": "user", "content": "x"}


def image(url):
    return {"role": "user", "content": [{"type": "image", "url": url}]}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "agent"),
        ([], "the body"),
        ({"agent": {}}, "agent.name"),
        ({"agent": {"name": 1}}, "agent.name"),
        ({"agent": {"name": "nobody"}}, "agent.name"),
        ({"agent": ME | {"tools": [{"name": "no"}]}}, "agent.tools[0].name"),
        ({"agent": ME | {"tools": [{"trust": True}]}}, "agent.tools[0].name"),
        ({"agent": ME | {"tools": [{"name": "web_search"}, {"name": "web_search"}]}}, "agent.tools[1].name"),
        ({"agent": ME | {"options": {"nope": "x"}}}, "agent.options.nope"),
        ({"agent": ME | {"options": {"brave": "true"}}}, "agent.options.brave"),
        ({"agent": ME | {"options": {"model": "slow"}}}, "agent.options.model"),
        ({"agent": ME | {"options": {"model": 1}}}, "agent.options.model"),
        ({"agent": ME, "tools": [{"name": "mine", "description": ""}]}, "tools[0].parameters"),
        ({"agent": ME, "tools": [{"name": "mine", "parameters": {}}]}, "tools[0].description"),
        ({"agent": ME, "tools": [TOOL, TOOL]}, "tools[1].name"),
        (
            {"agent": ME | {"tools": [{"name": "web_search"}]}, "tools": [TOOL | {"name": "web_search"}]},
            "tools[0].name",
        ),
        (
            {"agent": ME, "messages": [{"role": "tool_permission", "toolCallId": "a", "granted": True}]},
            "messages[0].role",
        ),
        ({"agent": ME, "messages": [{"role": "user"}]}, "messages[0].content"),
        ({"agent": ME, "messages": [{"role": "tool", "toolCallId": "a", "content": "x"}]}, "messages[0].toolCallId"),
        ({"agent": ME, "messages": [image("https://x/y.png")]}, "messages[0].content[0].url"),
        ({"agent": ME, "messages": [image("http://x/y.png")]}, "messages[0].content[0].url"),
    ],
)
async def test_a_wrong_session_is_refused_and_the_field_is_named(serve, body, field):
    server = await serve(AGENT)
    reply = await server.http.post("/sessions", json=body)
    assert reply.status_code == 400
    assert set(reply.json()["error"]) == {"code", "message"}
    assert reply.json()["error"]["code"] == "invalid_params"
    assert reply.json()["error"]["message"].startswith(f"{field}: ")
    assert (await server.http.get("/sessions")).json() == {"sessions": []}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [USER, USER]}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type"),
        ({"messages": [USER], "stream": "message"}, "stream"),
        ({"messages": [USER], "stream": "all"}, "stream"),
        ({"messages": [USER], "agent": {"name": "other"}}, "agent.name"),
        ({"messages": [USER], "agent": {"options": {"nope": "x"}}}, "agent.options.nope"),
        ({"messages": [USER], "agent": {"tools": [{"name": "mine"}]}}, "agent.tools[0].name"),
        ({"messages": [USER], "tools": [TOOL | {"name": "web_search"}]}, "tools"),
        ({"messages": [image("ftp://x")]}, "messages[0].content[0].url"),
    ],
)
async def test_a_wrong_turn_is_refused_and_changes_nothing(serve, body, field):
    server = await serve(AGENT)
    session = await server.create(agent=ME | {"tools": [{"name": "web_search"}]})
    before = (await server.http.get(f"/sessions/{session}")).json()
    reply = await server.http.post(f"/sessions/{session}/turns", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith(f"{field}: ")
    assert (await server.http.get(f"/sessions/{session}")).json() == before
    assert await server.history(session) == []


async def test_a_secret_is_never_repeated_in_an_error(serve):
    server = await serve(AGENT)
    reply = await server.http.post("/sessions", json={"agent": ME | {"options": {"key": {"v": "hunter2hunter2"}}}})
    assert reply.status_code == 400
    assert "hunter2" not in reply.text


@pytest.mark.parametrize("body", [b"{", b'"\xff"', b"", b"nonsense", b"[" * 100_000])
async def test_a_body_that_is_no_json_is_refused(serve, body):
    server = await serve(AGENT)
    reply = await server.http.post("/sessions", content=body, headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_params")
    assert server.seen.noted("malformed")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
async def test_another_content_type_is_refused(serve, kind):
    server = await serve(AGENT)
    headers = {"content-type": kind} if kind else {}
    reply = await server.http.post("/sessions", content=b'{"agent": {"name": "mock-agent"}}', headers=headers)
    assert reply.status_code == 415


async def test_the_content_type_may_have_parameters(serve):
    server = await serve(AGENT)
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    reply = await server.http.post("/sessions", content=b'{"agent": {"name": "mock-agent"}}', headers=headers)
    assert reply.status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/meta", "GET, HEAD, OPTIONS"),
        ("PUT", "/sessions", "GET, HEAD, POST, OPTIONS"),
        ("PATCH", "/sessions/x", "GET, HEAD, DELETE, OPTIONS"),
        ("GET", "/sessions/x/turns", "POST, OPTIONS"),
        ("DELETE", "/sessions/x/history", "GET, HEAD, OPTIONS"),
    ],
)
async def test_a_wrong_method_is_told_what_is_possible(serve, method, path, allow):
    server = await serve(AGENT)
    reply = await server.http.request(method, path)
    assert (reply.status_code, reply.headers["allow"]) == (405, allow)
    assert reply.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/", "/nope", "/sessions/", "/sessions/x/y", "/sessions/x/turns/z", "/meta/"])
async def test_there_is_nothing_elsewhere(serve, path):
    server = await serve(AGENT)
    reply = await server.http.get(path)
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")


async def test_head_is_get_without_a_body_and_options_says_what_is_possible(serve):
    server = await serve(AGENT)
    got, head = await server.http.get("/meta"), await server.http.head("/meta")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    reply = await server.http.options("/sessions")
    assert (reply.status_code, reply.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")


@pytest.mark.parametrize("base", ["", "/v1", "/a/b"])
async def test_everything_is_below_the_base(serve, base):
    server = await serve(AGENT, base=base)
    session = await server.create()
    assert (await server.http.get(f"/sessions/{session}")).status_code == 200
    assert server.seen.kinds("in") == ["POST /sessions", f"GET /sessions/{session}"]
