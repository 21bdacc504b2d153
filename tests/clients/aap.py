"""Misbehaving AAP clients. Each gets an HTTP client whose base is the server's."""

from __future__ import annotations

from typing import Any

import httpx

from tests.clients.registry import breaks

Json = dict[str, Any]

FULL = """
agent:
  tools: [{name: search}, {name: edit}]
  options:
    - {id: model, name: Model, type: select, value: a, choices: [{value: a, name: A}, {value: b, name: B}]}
    - {id: key, name: Key, type: secret, value: ""}
turns:
  - when: {prompt: "*run*"}
    steps: [{together: [{tool: {name: search, id: A}}, {tool: {name: edit, id: B}}]}]
  - when: {prompt: "*mine*"}
    steps: [{tool: {name: weather, id: M, side: client}}]
"""
BARE = """
agent:
  capabilities: {history: {full: true, compacted: false}, stream: {delta: false, message: true, none: true},
                 client_tools: false, images: {http: false, data: false}}
"""
TWO = "sessions: {synthetic: {count: 60}, page_size: 10}"

ENABLED: Json = {"name": "mock-agent", "tools": [{"name": "search"}, {"name": "edit"}]}
WEATHER: Json = {"name": "weather", "description": "The weather", "parameters": {"type": "object"}}


def user(content: Any = "hi") -> Json:
    return {"role": "user", "content": content}


def image(url: str) -> Json:
    return user([{"type": "image", "url": url}])


def grant(id: str) -> Json:
    return {"role": "tool_permission", "toolCallId": id, "granted": True}


def result(id: str) -> Json:
    return {"role": "tool", "toolCallId": id, "content": "fine"}


async def meta(http: httpx.AsyncClient) -> None:
    assert (await http.get("/meta")).status_code == 200


async def create(http: httpx.AsyncClient, **body: Any) -> str:
    await meta(http)
    reply = await http.post("/sessions", json={"agent": {"name": "mock-agent"}} | body)
    id: str = reply.json().get("sessionId", "")
    return id


async def turn(http: httpx.AsyncClient, session: str, *messages: Any, **body: Any) -> httpx.Response:
    made = {"messages": list(messages) or [user()], "stream": "message"} | body
    return await http.post(f"/sessions/{session}/turns", json=made)


@breaks("AAP-AUTH-01", over="aap")
async def sends_its_key_bare(http: httpx.AsyncClient) -> None:
    await http.get("/meta", headers={"Authorization": "Token abc"})


@breaks("AAP-BODY-01", over="aap")
async def posts_a_form(http: httpx.AsyncClient) -> None:
    await http.post("/sessions", json=["mock-agent"])


@breaks("AAP-AGENT-01", over="aap")
async def names_no_agent(http: httpx.AsyncClient) -> None:
    await create(http, agent={})


@breaks("AAP-AGENT-02", over="aap")
async def names_an_agent_that_there_is_not(http: httpx.AsyncClient) -> None:
    await create(http, agent={"name": "nobody"})


@breaks("AAP-AGENT-03", over="aap")
async def changes_the_agent(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), agent={"name": "other"})


@breaks("AAP-OPTION-01", over="aap", scenario=FULL)
async def sets_an_option_that_there_is_not(http: httpx.AsyncClient) -> None:
    await create(http, agent={"name": "mock-agent", "options": {"colour": "red"}})


@breaks("AAP-OPTION-02", over="aap", scenario=FULL)
async def sets_a_value_that_there_is_not(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), agent={"options": {"model": "c"}})


@breaks("AAP-OPTION-03", over="aap", scenario=FULL)
async def sets_a_number(http: httpx.AsyncClient) -> None:
    await create(http, agent={"name": "mock-agent", "options": {"key": 1}})


@breaks("AAP-SECRET-01", over="aap", scenario=FULL)
async def sends_the_placeholder_back(http: httpx.AsyncClient) -> None:
    session = await create(http, agent={"name": "mock-agent", "options": {"key": "hunter2"}})
    shown = (await http.get(f"/sessions/{session}")).json()
    await turn(http, session, agent={"options": shown["agent"]["options"]})


@breaks("AAP-TOOL-01", over="aap", scenario=FULL)
async def enables_a_tool_that_there_is_not(http: httpx.AsyncClient) -> None:
    await create(http, agent={"name": "mock-agent", "tools": [{"name": "delete"}]})


@breaks("AAP-TOOL-02", over="aap", scenario=FULL)
async def takes_the_name_of_a_tool(http: httpx.AsyncClient) -> None:
    await create(http, agent=ENABLED, tools=[WEATHER | {"name": "search"}])


@breaks("AAP-TOOL-03", over="aap", scenario=BARE)
async def brings_tools_without_asking(http: httpx.AsyncClient) -> None:
    await create(http, tools=[WEATHER])


@breaks("AAP-TOOL-04", over="aap")
async def does_not_describe_its_tool(http: httpx.AsyncClient) -> None:
    await create(http, tools=[{"name": "weather", "parameters": {}}])


@breaks("AAP-TOOL-05", over="aap", scenario=FULL)
async def trusts_in_words(http: httpx.AsyncClient) -> None:
    await create(http, agent={"name": "mock-agent", "tools": [{"name": "search", "trust": "yes"}]})


@breaks("AAP-IMAGE-01", over="aap", scenario=BARE)
async def links_an_image_without_asking(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), image("https://example.com/a.png"))


@breaks("AAP-IMAGE-02", over="aap", scenario=BARE)
async def sends_an_image_without_asking(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), image("data:image/png;base64,AAEC"))


@breaks("AAP-IMAGE-03", over="aap")
async def links_a_file(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), image("file:///home/dev/a.png"))


@breaks("AAP-BLOCK-01", over="aap")
async def sends_a_block_without_text(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), user([{"type": "text"}]))


@breaks("AAP-MESSAGE-01", over="aap")
async def seeds_with_a_permission(http: httpx.AsyncClient) -> None:
    await create(http, messages=[grant("x")])


@breaks("AAP-MESSAGE-02", over="aap")
async def sends_the_answer_again(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), {"role": "assistant", "content": "Hello!"})


@breaks("AAP-MESSAGE-03", over="aap")
async def sends_two_messages_at_once(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), user(), user("and another"))


@breaks("AAP-MESSAGE-04", over="aap")
async def says_nothing(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), {"role": "user"})


@breaks("AAP-STREAM-01", over="aap")
async def streams_in_another_way(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), stream="full")


@breaks("AAP-STREAM-02", over="aap", scenario=BARE)
async def asks_for_deltas_without_asking(http: httpx.AsyncClient) -> None:
    await turn(http, await create(http), stream="delta")


@breaks("AAP-HISTORY-01", over="aap")
async def asks_for_any_history(http: httpx.AsyncClient) -> None:
    await http.get(f"/sessions/{await create(http)}/history")


@breaks("AAP-HISTORY-02", over="aap", scenario=BARE)
async def asks_for_a_history_that_there_is_not(http: httpx.AsyncClient) -> None:
    await http.get(f"/sessions/{await create(http)}/history", params={"type": "compacted"})


@breaks("AAP-CURSOR-01", over="aap", scenario=TWO)
async def makes_up_a_cursor(http: httpx.AsyncClient) -> None:
    cursor = (await http.get("/sessions")).json()["next"]
    await http.get("/sessions", params={"after": cursor + "x"})


@breaks("AAP-TOOLS-01", over="aap", scenario=FULL)
async def answers_one_of_two(http: httpx.AsyncClient) -> None:
    session = await create(http, agent=ENABLED)
    await turn(http, session, user("run"))
    await turn(http, session, grant("A"))


@breaks("AAP-TOOLS-02", over="aap", scenario=FULL)
async def answers_one_too_many(http: httpx.AsyncClient) -> None:
    session = await create(http, agent=ENABLED)
    await turn(http, session, user("run"))
    await turn(http, session, grant("A"), grant("B"), grant("C"))


@breaks("AAP-TOOLS-03", over="aap", scenario=FULL)
async def allows_its_own_tool(http: httpx.AsyncClient) -> None:
    session = await create(http, tools=[WEATHER])
    await turn(http, session, user("mine"), stream="none")
    await turn(http, session, grant("M"))


@breaks("AAP-TOOLS-04", over="aap", scenario=FULL)
async def answers_twice(http: httpx.AsyncClient) -> None:
    session = await create(http, tools=[WEATHER])
    await turn(http, session, user("mine"))
    await turn(http, session, result("M"), result("M"))
