"""A client under trio, in memory: the mock plays in the test's own event loop, and its waits take no time."""

import json

import trio

from mockagent.testing import MockAgent


class Client:
    """Requests over a trio stream; `run` hands out answers."""

    def __init__(self, stream):
        self.stream = stream
        self.said = []
        self.waiting = {}

    async def run(self):
        rest = b""
        async for data in self.stream:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.take(json.loads(line))

    def take(self, message):
        if "id" in message:
            self.waiting.pop(message["id"]).send_nowait(message)
        elif message["params"]["update"]["sessionUpdate"] == "agent_message_chunk":
            self.said.append((trio.current_time(), message["params"]["update"]["content"]["text"]))

    async def request(self, method, **params):
        id = len(self.waiting) + trio.current_time()
        send, receive = trio.open_memory_channel(1)
        self.waiting[id] = send
        text = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        await self.stream.send_all(text.encode() + b"\n")
        with trio.fail_after(60):
            return (await receive.receive())["result"]


async def test_text_that_streams_slowly_is_shown_as_it_comes(autojump_clock, nursery):
    async with MockAgent("scenarios/inbox.yaml").in_memory() as mock:
        client = Client(mock.connect())
        nursery.start_soon(client.run)
        await client.request("initialize", protocolVersion=1, clientInfo={"name": "trio", "version": "1.0"})
        session = await client.request("session/new", cwd="/home/dev/project", mcpServers=[])
        await client.request(
            "session/prompt", sessionId=session["sessionId"], prompt=[{"type": "text", "text": "Hello"}]
        )
        (first, _), (second, _) = client.said
        assert 1.9 < second - first < 2.1
        mock.verify()
        nursery.cancel_scope.cancel()
