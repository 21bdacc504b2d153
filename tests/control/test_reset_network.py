"""A reset, and clients that are connected over the network: nothing of theirs reaches what comes after it.

The clients here are bare sockets, because what matters is what becomes of a TCP connection that nobody reads.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mockagent.control import desk
from mockagent.testing import MockAgent

SCENARIO = """\
name: flood
agent: {name: mock-agent}
sessions: {stored: [{id: sess_old, title: Old, cwd: /home/dev/project}]}
turns:
  - when: {prompt: hang}
    steps: [{say: A moment}, {hang: true}]
  - steps: [{repeat: {times: 400, steps: [{say: "LONG"}]}}]
""".replace("LONG", "word " * 20_000)
"""A turn that says far more than sockets hold."""

GREETING = {"protocolVersion": 1, "clientCapabilities": {}}


@pytest.fixture
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockAgent]:
    monkeypatch.setattr(desk, "SETTLE", 0.1)
    with MockAgent(SCENARIO) as running:
        yield running


class Raw:
    """A connection of which no more is read than a test wants."""

    def __init__(self, mock: MockAgent) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", int(mock.url.rsplit(":", 1)[1])))

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        fields = {
            "Host": "127.0.0.1",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            **headers,
        }
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content)

    def frame(self, id: int, method: str, params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        data = json.dumps(message).encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
        self.socket.sendall(b"\x81" + size + bytes(4) + data)

    def until(self, text: bytes) -> bytes:
        """Reads up to some text."""
        read = b""
        while text not in read:
            read += self._more()
        return read

    def _more(self) -> bytes:
        data = self.socket.recv(4096)
        assert data, "the connection has ended"
        return data

    def rest(self) -> bool:
        """Reads to the end; whether that was a reset."""
        try:
            while self.socket.recv(2**20):
                pass
        except ConnectionResetError:
            return True
        return False


def greeted(mock: MockAgent) -> Raw:
    """A client over WebSocket."""
    client = Raw(mock)
    key = "AAAAAAAAAAAAAAAAAAAAAA=="
    client.request(
        "GET", "/acp", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version="13", Sec_WebSocket_Key=key
    )
    client.until(b"\r\n\r\n")
    client.frame(1, "initialize", GREETING)
    client.until(b'"id":1')
    return client


def opened(mock: MockAgent, prompt: str) -> Raw:
    """A client over WebSocket that has sent a prompt."""
    client = greeted(mock)
    client.frame(2, "session/resume", {"sessionId": "sess_old", "cwd": "/home/dev/project", "mcpServers": []})
    client.until(b'"id":2')
    client.frame(3, "session/prompt", {"sessionId": "sess_old", "prompt": [{"type": "text", "text": prompt}]})
    return client


def posted(mock: MockAgent, method: str, params: Any, **headers: str) -> httpx.Response:
    """What a client over Streamable HTTP says."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    reply = httpx.post(mock.acp_url, json=body, headers=headers)
    return reply.raise_for_status()


def nothing_is_left(mock: MockAgent) -> None:
    """Nothing but what the new play has brought about is in the journal, and nobody is connected."""
    health = httpx.get(f"{mock.control_url}/health").json()
    assert (health["connections"], mock.journal.entries) == (0, [])


def test_a_client_over_websocket_that_does_not_read_is_reset(mock):
    with opened(mock, "flood") as client:
        mock.wait_for("turn")
        mock.reset()
        assert client.rest()
        nothing_is_left(mock)


def test_a_client_over_websocket_whose_agent_has_stalled_is_reset(mock):
    mock.fault("turn", stall={"read": "forever", "write": "forever"})
    with opened(mock, "hang") as client:
        mock.wait_for("turn")
        mock.reset()
        assert client.rest()
        nothing_is_left(mock)


def test_a_client_over_streamable_http_that_does_not_read_is_reset(mock):
    name = {"Acp-Connection-Id": posted(mock, "initialize", GREETING).headers["Acp-Connection-Id"]}
    with Raw(mock) as client:
        client.request("GET", "/acp", Accept="text/event-stream", **name)
        client.until(b"\r\n\r\n")
        session = {"sessionId": "sess_old"}
        posted(mock, "session/resume", session | {"cwd": "/home/dev/project", "mcpServers": []}, **name)
        about = {"Acp-Session-Id": "sess_old", **name}
        posted(mock, "session/prompt", session | {"prompt": [{"type": "text", "text": "flood"}]}, **about)
        mock.reset()
        assert client.rest()
        nothing_is_left(mock)


def test_a_client_over_aap_that_does_not_read_is_reset(mock):
    with Raw(mock) as client:
        body = {"stream": "delta", "messages": [{"role": "user", "content": "flood"}]}
        client.request("POST", "/aap/sessions/sess_old/turns", body)
        client.until(b"\r\n\r\n")
        mock.reset()
        assert client.rest()
        nothing_is_left(mock)


def test_a_client_over_aap_that_waits_for_an_answer_in_vain_is_reset(mock):
    mock.fault("list", drop=True)
    with Raw(mock) as client:
        client.request("GET", "/aap/sessions")
        mock.wait_for("list")
        mock.reset()
        assert client.rest()
        nothing_is_left(mock)


def test_a_connection_without_a_request_ends_in_order(mock):
    with Raw(mock) as client:
        client.request("GET", "/aap/meta")
        client.until(b"mock-agent")
        mock.reset()
        assert not client.rest()
        nothing_is_left(mock)


def test_the_connection_that_brings_the_reset_takes_its_answer_along(mock):
    with Raw(mock) as client:
        client.request("GET", "/aap/meta")
        client.until(b"mock-agent")
        client.request("POST", "/_mock/reset")
        head, _, _ = client.until(b'"connections":0').partition(b"\r\n\r\n")
        assert b"connection: close" in head.lower()
        assert not client.rest()
        nothing_is_left(mock)


def test_who_comes_while_others_are_still_asked_to_go_meets_the_new_play(mock, monkeypatch):
    monkeypatch.setattr(desk, "SETTLE", 20)
    with opened(mock, "flood") as stuck, greeted(mock) as witness, Raw(mock) as control, Raw(mock) as later:
        mock.wait_for("turn")
        control.request("POST", "/_mock/reset")
        witness.until(b"everything begins anew")
        later.request("GET", "/aap/meta")
        stuck.socket.close()
        later.until(b"mock-agent")
        control.until(b"connections")
        assert [entry.kind for entry in mock.journal.requests()] == ["GET /meta"]
