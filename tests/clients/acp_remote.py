"""Misbehaving ACP clients over WebSocket and Streamable HTTP."""

from __future__ import annotations

import httpx

from tests.clients.registry import breaks
from tests.clients.speaker import CWD, INFO, Json
from tests.network import CONNECTION, SSE, Http, Ws

HELLO: Json = {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": INFO}


@breaks("ACP-WS-01", over="ws")
async def sends_binary_frames(client: Ws) -> None:
    client.binary = True
    await client.call("initialize", HELLO)


def call(id: int, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


async def introduced(client: Http) -> None:
    await client.call("initialize", HELLO)


@breaks("ACP-HTTP-01", over="http")
async def posts_plain_text(client: Http) -> None:
    await introduced(client)
    await client.post(call(9, "session/list", {}), **{"Content-Type": "text/plain"})


@breaks("ACP-HTTP-02", over="http")
async def accepts_json_where_events_come(client: Http) -> None:
    await introduced(client)
    await client.web.get(client.url, headers=client.headers("s") | {"Accept": "application/json"})


@breaks("ACP-HTTP-03", over="http")
async def forgets_the_connection(client: Http) -> None:
    await introduced(client)
    await client.web.get(client.url, headers=SSE)


@breaks("ACP-HTTP-04", over="http")
async def leaves_the_session_out(client: Http) -> None:
    await introduced(client)
    session = await client.new()
    params = {"sessionId": session, "cwd": CWD, "mcpServers": []}
    await client.post(call(9, "session/load", params))


@breaks("ACP-HTTP-05", over="http")
async def eats_the_cookie(client: Http) -> None:
    reply = await client.post(call(1, "initialize", HELLO))
    async with httpx.AsyncClient(verify=False) as other:
        headers = {CONNECTION: reply.headers[CONNECTION]}
        await other.post(client.url, json=call(2, "session/list", {}), headers=headers)


@breaks("ACP-HTTP-06", over="http")
async def posts_a_batch(client: Http) -> None:
    await introduced(client)
    await client.post([call(9, "session/list", {})])
