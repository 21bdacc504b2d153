"""AAP as `mockagent serve` mounts it, beside ACP on one port."""

from __future__ import annotations

from functools import partial

import httpx
import trio

from mockagent.host import Host, Options
from mockagent.scenario.load import load_text
from mockagent.site import Settings
from tests.network import serving


async def test_aap_is_below_its_base_and_foreign_pages_stay_out(nursery: trio.Nursery) -> None:
    host = Host([load_text("name: x\nclock: {speed: 0}\nturns: [{steps: [{say: hi}]}]")], Options())
    settings = Settings(port=0, aap_base="/v1", allow_origins=("https://app.example",))
    port = await nursery.start(partial(host.serve, settings))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
        assert (await http.get("/v1/meta")).json()["version"] == 3
        assert (await http.get("/v1/meta", headers={"Origin": "https://evil.example"})).status_code == 403
        reply = await http.get("/v1/meta", headers={"Origin": "https://app.example"})
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        session = (await http.post("/v1/sessions", json={"agent": {"name": "mock-agent"}})).json()["sessionId"]
        body = {"messages": [{"role": "user", "content": "x"}]}
        answer = await http.post(f"/v1/sessions/{session}/turns", json=body)
        assert answer.json()["messages"] == [{"role": "assistant", "content": "hi"}]
    nursery.cancel_scope.cancel()


async def test_a_server_that_ends_tells_the_clients_that_are_reading():
    async with serving("turns: [{steps: [{say: a}, {hang: true}]}]") as mock, httpx.AsyncClient(verify=False) as web:
        base = f"http://127.0.0.1:{mock.port}/aap"
        made = (await web.post(f"{base}/sessions", json={"agent": {"name": "mock-agent"}})).json()["sessionId"]
        body = {"stream": "delta", "messages": [{"role": "user", "content": "go"}]}
        lines = []
        async with web.stream("POST", f"{base}/sessions/{made}/turns", json=body) as reply:
            async for line in reply.aiter_lines():
                lines.append(line)
                if line == 'data: {"delta":"a"}':
                    mock.site.stop()
        assert lines[-3:] == ["event: turn_stop", 'data: {"stopReason":"error"}', ""]
