"""Who may do what: bearer tokens, the public part of `/meta`, and pages from other origins."""

from __future__ import annotations

import pytest

GUARDED = "agent: {name: safe, auth: {required: true, tokens: [good, other]}}"
OPEN = "agent: {name: open}"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("headers", [{}, bearer("bad"), {"Authorization": "Basic good"}, {"Authorization": "Bearer"}])
async def test_without_a_token_that_fits_there_is_nothing_but_meta(serve, headers):
    server = await serve(GUARDED)
    session = await (await login(server)).create(agent={"name": "safe"})
    server.http.headers.pop("authorization")
    for method, path, body in [
        ("GET", "/sessions", None),
        ("POST", "/sessions", {"agent": {"name": "safe"}}),
        ("GET", f"/sessions/{session}", None),
        ("DELETE", f"/sessions/{session}", None),
        ("GET", f"/sessions/{session}/history?type=full", None),
        ("POST", f"/sessions/{session}/turns", {"messages": [{"role": "user", "content": "x"}]}),
        ("GET", "/sessions/unknown", None),
    ]:
        reply = await server.http.request(method, path, json=body, headers=headers)
        assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert reply.json()["error"]["code"] == "auth_required"
    assert (await server.http.get("/meta", headers=headers)).status_code == 200


async def login(server, token="good"):
    server.http.headers.update(bearer(token))
    return server


async def test_any_of_the_tokens_opens_the_agent(serve):
    server = await serve(GUARDED)
    for token in ("good", "other"):
        assert (await server.http.get("/sessions", headers=bearer(token))).status_code == 200
    assert (await server.http.get("/sessions", headers={"Authorization": "bearer  good"})).status_code == 200


async def test_meta_can_be_closed_too(serve):
    server = await serve("agent: {auth: {required: true, public_meta: false, tokens: [good]}}")
    assert (await server.http.get("/meta")).status_code == 401
    assert (await server.http.get("/meta", headers=bearer("good"))).status_code == 200


async def test_with_several_agents_each_has_its_own_tokens(serve):
    server = await serve(OPEN, GUARDED)
    await server.create(agent={"name": "open"})
    reply = await server.http.post("/sessions", json={"agent": {"name": "safe"}})
    assert reply.status_code == 401
    await server.http.post("/sessions", json={"agent": {"name": "safe"}}, headers=bearer("good"))
    names = [row["agent"]["name"] for row in (await server.http.get("/sessions")).json()["sessions"]]
    assert names == ["open"]
    reply = await server.http.get("/sessions", headers=bearer("good"))
    first, rest = reply.json(), {}
    if "next" in first:
        rest = (await server.http.get("/sessions", params={"after": first["next"]}, headers=bearer("good"))).json()
    names = [row["agent"]["name"] for row in first["sessions"] + rest.get("sessions", [])]
    assert names == ["open", "safe"]


# --- pages from elsewhere


async def test_a_page_from_loopback_may_read_answers_and_errors(serve):
    server = await serve()
    for path in ("/meta", "/sessions/none"):
        reply = await server.http.get(path, headers={"Origin": "http://localhost:5173"})
        assert reply.headers["access-control-allow-origin"] == "http://localhost:5173"
        assert reply.headers["vary"] == "Origin"


async def test_a_preflight_is_answered(serve):
    server = await serve(GUARDED)
    headers = {
        "Origin": "http://localhost:5173",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    reply = await server.http.options("/sessions/x/turns", headers=headers)
    assert (reply.status_code, reply.content) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == "http://localhost:5173"
    assert "POST" in reply.headers["access-control-allow-methods"]
    assert reply.headers["access-control-allow-headers"] == "authorization, content-type"


async def test_other_origins_get_no_permission_and_none_is_given_unasked(serve):
    server = await serve()
    reply = await server.http.get("/meta", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in reply.headers
    assert "access-control-allow-origin" not in (await server.http.get("/meta")).headers


async def test_a_stream_can_be_read_by_a_page(serve):
    server = await serve("turns: [{steps: [{say: a}]}]")
    session = await server.create()
    body = {"messages": [{"role": "user", "content": "x"}], "stream": "delta"}
    reply = await server.http.post(f"/sessions/{session}/turns", json=body, headers={"Origin": "http://127.0.0.1:1"})
    assert reply.headers["access-control-allow-origin"] == "http://127.0.0.1:1"


async def test_secrets_are_masked_in_the_journal_and_in_every_answer(serve, tmp_path):
    server = await serve(
        "agent: {auth: {tokens: [token-1234567]}, options: [{id: key, name: K, type: secret, value: default-secret}]}",
        journal=str(tmp_path / "journal"),
    )
    server.http.headers.update(bearer("token-1234567"))
    meta = await server.http.get("/meta")
    session = await server.create(agent={"name": "mock-agent", "options": {"key": "sk-abcdefgh"}})
    shown = await server.http.get(f"/sessions/{session}")
    assert shown.json()["agent"]["options"] == {"key": "***"}
    await server.turn(session, "hi", agent={"options": {"key": "sk-12345678"}})
    server.host.close()
    journal = (tmp_path / "journal").read_text()
    assert f"reply:GET /sessions/{session}" in journal
    for secret in ("token-1234567", "default-secret", "sk-abcdefgh", "sk-12345678"):
        assert secret not in journal + shown.text + meta.text
