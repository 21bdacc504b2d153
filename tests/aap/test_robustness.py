"""Nothing a client sends makes the server fail: every answer is one that the OpenAPI document names."""

from __future__ import annotations

import json
import random

import jsonschema
import trio

from mockagent.aap.openapi import document

SCENARIO = """
agent:
  tools: [{name: web_search}]
  options: [{id: model, name: Model, type: select, value: a, choices: [{value: a, name: A}]},
            {id: key, name: Key, type: secret, value: ''}]
turns: [{steps: [{think: hm}, {tool: {name: web_search, output: x}}, {tool: {name: any, side: client}}, {say: hi}]}]
"""
TOOL = {"name": "mine", "description": "", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
CREATE = {
    "agent": {"name": "mock-agent", "tools": [{"name": "web_search", "trust": True}], "options": {"model": "a"}},
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "x"}, {"type": "image", "url": "data:image/png;base64,A"}],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "toolCallId": "a", "name": "mine", "input": {}}]},
        {"role": "tool", "toolCallId": "a", "content": "r"},
    ],
    "tools": [TOOL],
}
TURN = {
    "agent": {"tools": [], "options": {"key": "k"}},
    "stream": "message",
    "messages": [{"role": "user", "content": "x"}],
    "tools": [TOOL],
}
ODD: list = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "\ud800",
    "\0",
    [],
    {},
    [[]],
    {"": None},
    {"type": []},
    "none",
    "delta",
]


def spoiled(value, rng):
    """The value with something in it changed, removed or added."""
    value = json.loads(json.dumps(value))
    holders: list = [[value]]
    for holder in holders:
        inner = list(holder.values()) if isinstance(holder, dict) else holder
        holders += [child for child in inner if isinstance(child, dict | list)]
    holder = rng.choice(holders)
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys or rng.random() < 0.1:
        if isinstance(holder, dict):
            holder[rng.choice(["x", "agent", "messages", "role", "type", "content"])] = rng.choice(ODD)
        else:
            holder.append(rng.choice(ODD))
    elif rng.random() < 0.3 and holder is not holders[0]:
        del holder[rng.choice(keys)]
    else:
        holder[rng.choice(keys)] = rng.choice(ODD)
    return holders[0][0]


async def test_spoiled_bodies_get_documented_answers(serve):
    made = document("/aap")
    schema = {"$ref": "#/components/schemas/Error", "components": made["components"]}
    error = jsonschema.Draft202012Validator(schema)
    server = await serve(SCENARIO)
    rng = random.Random(7)
    seen = set()
    for _ in range(400):
        session = await server.create()
        for path, name, body in [
            ("/sessions", "/sessions", CREATE),
            (f"/sessions/{session}/turns", "/sessions/{id}/turns", TURN),
        ]:
            for _ in range(rng.randint(1, 3)):
                body = spoiled(body, rng)
            content = json.dumps(body).encode("utf-8", "surrogatepass")
            with trio.fail_after(10):
                headers = {"content-type": "application/json"}
                reply = await server.http.post(path, content=content, headers=headers)
            assert str(reply.status_code) in made["paths"][name]["post"]["responses"], (body, reply.text)
            assert reply.status_code < 500, (body, reply.text)
            seen.add(reply.status_code)
            if reply.status_code >= 400:
                error.validate(reply.json())
            history = await server.http.get(f"/sessions/{session}/history?type=full")
            assert history.status_code == 200
    assert seen == {200, 201, 400}
    assert not server.seen.noted("bug")


async def test_odd_targets_and_headers_get_an_answer(serve):
    server = await serve(SCENARIO)
    for target in [
        "/aap",
        "/aap/",
        "/aap//",
        "/aap/sessions/%",
        "/aap/sessions/%00",
        "/aap/sessions/..",
        "/aap?x",
        "*",
    ]:
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            request = f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\nConnection: close\r\n\r\n"
            await stream.send_all(request.encode("latin-1"))
            with trio.fail_after(5):
                data = b""
                while part := await stream.receive_some():
                    data += part
        assert data.startswith(b"HTTP/1.1 4"), (target, data)
    assert not server.seen.noted("bug")
