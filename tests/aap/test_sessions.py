"""Sessions and their histories: made, listed, shown, deleted, across agents and protocols."""

from __future__ import annotations

import pytest

from mockagent.aap import transcript
from mockagent.aap.params import ImageBlock
from mockagent.acp import render

OPTIONS = """
agent:
  title: Mock
  version: 2.1.0
  description: Does nothing.
  tools:
    - {name: web_search, title: Web, description: Search, parameters: {type: object, properties: {}}}
    - {name: inner, listed: false}
  options:
    - {id: model, name: Size, type: select, value: fast, choices: [{value: fast, name: F}, {value: slow, name: S}]}
    - {id: brave, name: Brave, type: boolean, value: false}
    - {id: language, name: Tongue, description: Which, type: text, value: en}
    - {id: api_key, name: Key, type: secret, value: ""}
"""


async def test_meta_says_what_the_agent_is(serve):
    server = await serve(OPTIONS)
    reply = await server.http.get("/meta")
    assert reply.json() == {
        "version": 3,
        "agents": [
            {
                "name": "mock-agent",
                "title": "Mock",
                "version": "2.1.0",
                "description": "Does nothing.",
                "tools": [
                    {
                        "name": "web_search",
                        "title": "Web",
                        "description": "Search",
                        "parameters": {"type": "object", "properties": {}},
                    }
                ],
                "options": [
                    {
                        "name": "model",
                        "title": "Size",
                        "type": "select",
                        "options": ["fast", "slow"],
                        "default": "fast",
                    },
                    {"name": "language", "title": "Tongue", "description": "Which", "type": "text", "default": "en"},
                    {"name": "api_key", "title": "Key", "type": "secret", "default": ""},
                ],
                "capabilities": {
                    "history": {"compacted": {}, "full": {}},
                    "stream": {"delta": {}, "message": {}, "none": {}},
                    "application": {"tools": {}},
                    "image": {"http": {}, "data": {}},
                },
            }
        ],
    }


async def test_what_is_off_is_not_declared(serve):
    server = await serve(
        "agent: {capabilities: {history: {compacted: false}, stream: {delta: false, message: false, none: false},"
        " client_tools: false, images: {http: false, data: false}}}"
    )
    agent = (await server.http.get("/meta")).json()["agents"][0]
    assert agent["capabilities"] == {"history": {"full": {}}}


async def test_a_session_is_shown_as_it_stands_with_its_secrets_hidden(serve):
    server = await serve(OPTIONS)
    options = {"model": "slow", "api_key": "sk-12345678"}
    tools = [{"name": "mine", "description": "", "parameters": {"type": "object"}}]
    agent = {"name": "mock-agent", "tools": [{"name": "web_search"}], "options": options}
    session = await server.create(agent=agent, tools=tools)
    shown = {
        "sessionId": session,
        "agent": {
            "name": "mock-agent",
            "tools": [{"name": "web_search", "trust": False}],
            "options": {"model": "slow", "language": "en", "api_key": "***"},
        },
        "tools": tools,
    }
    assert (await server.http.get(f"/sessions/{session}")).json() == shown
    listed = await server.http.get("/sessions")
    assert listed.json() == {"sessions": [shown]}
    assert "sk-12345678" not in listed.text


async def test_a_deleted_session_is_gone(serve):
    server = await serve()
    session = await server.create()
    reply = await server.http.delete(f"/sessions/{session}")
    assert (reply.status_code, reply.content) == (204, b"")
    for method, path in [("GET", ""), ("DELETE", ""), ("GET", "/history?type=full"), ("POST", "/turns")]:
        body = {"messages": [{"role": "user", "content": "x"}]} if method == "POST" else None
        reply = await server.http.request(method, f"/sessions/{session}{path}", json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "session_not_found")


async def test_ids_in_paths_are_percent_decoded(serve):
    server = await serve("sessions: {stored: [{id: 'a/b ?#%', history: [{user: hi}]}]}")
    reply = await server.http.get("/sessions/a%2Fb%20%3F%23%25")
    assert reply.json()["sessionId"] == "a/b ?#%"
    assert "GET /sessions/a%2Fb%20%3F%23%25" in server.seen.kinds("in")
    assert (await server.http.get("/sessions/a/b")).status_code == 404


async def test_seeds_are_given_back_exactly(serve):
    server = await serve()
    use = {"type": "tool_use", "toolCallId": "t1", "name": "look", "input": {"a": 1}}
    image = {"type": "image", "url": "data:image/png;base64,AAAA"}
    seeds = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "I"}, use]},
        {"role": "tool", "toolCallId": "t1", "content": [{"type": "text", "text": "seen"}]},
        {"role": "assistant", "content": "A cat."},
    ]
    assert await server.history(await server.create(messages=seeds)) == seeds


async def test_any_block_may_stand_in_any_message_and_is_given_back(serve):
    server = await serve()
    thought = {"type": "thinking", "thinking": "Hm"}
    use = {"type": "tool_use", "toolCallId": "t1", "name": "look", "input": {"a": 1}}
    seeds = [
        {"role": "user", "content": [thought, use]},
        {"role": "user", "content": []},
        {"role": "assistant", "content": [use, {"type": "image", "url": "https://example.com/a.png"}]},
        {"role": "tool", "toolCallId": "t1", "content": [thought, {"type": "text", "text": "seen"}]},
    ]
    assert await server.history(await server.create(messages=seeds)) == seeds


async def test_compacted_history_keeps_the_last_messages_and_never_parts_a_result_from_its_call(serve):
    server = await serve("sessions: {compaction: {keep: 2}}")
    use = {"type": "tool_use", "toolCallId": "t1", "name": "look", "input": {}}
    seeds = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": [use]},
        {"role": "tool", "toolCallId": "t1", "content": "r"},
        {"role": "assistant", "content": "b"},
    ]
    history = await server.history(await server.create(messages=seeds), "compacted")
    assert history[1:] == seeds[3:]
    assert history[0]["role"] == "system"
    assert "3 earlier messages" in history[0]["content"]
    assert await server.history(await server.create(messages=seeds[:2]), "compacted") == seeds[:2]


async def names(server):
    return [agent["name"] for agent in (await server.http.get("/meta")).json()["agents"]]


async def pages(server, **headers):
    found, after, sizes = [], None, []
    while True:
        reply = await server.http.get("/sessions", params={"after": after} if after else None, headers=headers)
        assert reply.status_code == 200, reply.text
        rows = reply.json()["sessions"]
        sizes.append(len(rows))
        found += [(row["agent"]["name"], row["sessionId"]) for row in rows]
        after = reply.json().get("next")
        if after is None:
            return found, sizes


async def test_the_list_comes_in_pages_each_session_once(serve):
    server = await serve("sessions: {page_size: 2}")
    made = [await server.create() for _ in range(5)]
    found, sizes = await pages(server)
    assert sorted(id for _, id in found) == sorted(made)
    assert sizes == [2, 2, 1]


async def test_several_agents_share_one_server_and_each_has_its_own_sessions(serve):
    one = "agent: {name: one}\nsessions: {page_size: 2}\nturns: [{steps: [{say: I am one}]}]"
    two = "agent: {name: two}\nsessions: {page_size: 2}\nturns: [{steps: [{say: I am two}]}]"
    server = await serve(one, two)
    assert await names(server) == ["one", "two"]
    made = {}
    for name in ("two", "one", "two", "two", "one", "one"):
        made[await server.create(agent={"name": name})] = name
    assert len(made) == 6
    for session, name in made.items():
        assert (await server.turn(session, "hi")).json()["messages"][0]["content"] == f"I am {name}"
    found, _ = await pages(server)
    assert {id: name for name, id in found} == made
    assert len(found) == 6


async def test_agents_of_one_name_are_told_apart(serve):
    server = await serve("", "")
    assert await names(server) == ["mock-agent", "mock-agent-2"]


async def test_an_agent_that_does_not_speak_aap_is_not_there(serve):
    server = await serve("agent: {name: one, protocols: {aap: []}}", "agent: {name: two}")
    assert await names(server) == ["two"]


async def test_an_unknown_cursor_is_an_error(serve):
    server = await serve()
    reply = await server.http.get("/sessions", params={"after": "nonsense"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    ("query", "status", "word"), [("", 400, "type"), ("?type=all", 400, "type"), ("?type=compacted", 404, "compacted")]
)
async def test_histories_that_cannot_be_had(serve, query, status, word):
    server = await serve("agent: {capabilities: {history: {compacted: false}}}")
    reply = await server.http.get(f"/sessions/{await server.create()}/history{query}")
    assert reply.status_code == status
    assert word in reply.json()["error"]["message"]


async def test_a_session_of_the_store_takes_a_turn_and_is_opened_by_it(serve):
    server = await serve("sessions: {stored: [{id: old}]}\nturns: [{steps: [{say: back}]}]")
    assert (await server.turn("old", "hi")).json()["messages"][0]["content"] == "back"
    assert server.host.agents[0].world.sessions.get("old").state == "active"


@pytest.mark.parametrize("url", ["data:image/png;base64,AAAA", "data:,plain", "https://example.com/cat.png"])
def test_images_from_aap_clients_can_be_shown_over_acp_and_come_back_unchanged(url):
    part = transcript.parts([ImageBlock(url=url)])[0]
    assert transcript.block(part) == {"type": "image", "url": url}
    shown = render.block(part)
    if url.startswith("data:image"):
        assert shown == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    else:
        assert (shown["type"], shown["uri"]) == ("resource_link", url)


def test_blocks_from_acp_clients_can_be_shown_over_aap():
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert transcript.block(image) == {"type": "image", "url": "data:image/png;base64,AAAA"}
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    assert transcript.block(link)["type"] == "text"
