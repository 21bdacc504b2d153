"""The official npm SDK as client: over stdio, over WebSocket, and over Streamable HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.interop.conversation import judge, run
from tests.official import INTEROP


def test_the_npm_sdk_talks_over_stdio(node: str, command: str, scenario: str) -> None:
    happened = run(node, "stdio.mjs", command, "acp", scenario)
    judge(happened)
    assert happened["status"] == 0


@pytest.mark.parametrize(("program", "scheme"), [("websocket.mjs", "ws"), ("http.mjs", "http")])
def test_the_npm_sdk_talks_over_the_network(node: str, address: str, program: str, scheme: str) -> None:
    judge(run(node, program, f"{scheme}://{address}/acp"))


def test_many_npm_clients_share_a_server(node: str, address: str) -> None:
    clients = [
        subprocess.Popen(
            [node, str(INTEROP / "websocket.mjs"), f"ws://{address}/acp"], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    happened = [json.loads(client.communicate(timeout=60)[0]) for client in clients]
    assert [client.returncode for client in clients] == [0] * 4
    assert len({each["sessionId"] for each in happened}) == 4
    for each in happened:
        assert each["stops"] == ["end_turn", "refusal", "cancelled"]
        assert each["sessionId"] in each["listed"]
