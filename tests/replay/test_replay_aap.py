"""A conversation over AAP plays again: streams, whole answers, calls that wait for the client, trouble."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mockagent.replay import replayed
from mockagent.testing import MockAgent

Json = dict[str, Any]

SCENARIO = """
clock: {now: "2026-01-15T09:00:00Z", speed: 0}
agent:
  tools: [{name: search, description: Looks it up, parameters: {type: object}}]
  options: [{id: model, name: Model, type: select, value: fast, choices: [{value: fast, name: Fast}]}]
sessions: {stored: [{id: sess_old, title: Old, history: [{user: Hi}, {say: Hello}]}]}
turns:
  - when: {prompt: "*weather*"}
    steps:
      - think: Let me look.
      - tool: {name: search, kind: fetch, input: {q: Osaka}, output: 18 degrees}
      - together:
          - tool: {name: get_place, side: client, input: {exact: true}}
          - tool: {name: get_time, side: client}
      - say: "That is all in ${session.id}, naïvely."
  - steps: [{say: "You said: ${prompt}"}, {stop: max_tokens}]
"""

TOOLS = [{"name": name, "description": "d", "parameters": {"type": "object"}} for name in ("get_place", "get_time")]


class Robust:
    """A client that takes whatever comes, and always says the same to the same."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=2)
        self.heard: list[Any] = []
        self.session = "sess_old"

    def call(self, method: str, path: str, **given: Any) -> httpx.Response | None:
        """An answer; None when there was none, or not all of it."""
        content = b""
        try:
            with self.http.stream(method, path.format(self.session), **given) as response:
                for piece in response.iter_bytes():
                    content += piece
        except httpx.HTTPError as error:
            self.heard.append((method, path, type(error).__name__, self._plain(content)))
            return None
        kind = response.headers.get("content-type")
        self.heard.append((method, path, response.status_code, kind, self._plain(content)))
        return httpx.Response(response.status_code, headers={"content-type": kind or ""}, content=content)

    def _plain(self, content: bytes) -> str:
        return content.decode(errors="replace").replace(self.session, "SESSION")

    def turn(self, mode: str, *messages: Json) -> Iterator[Json]:
        """Says something, and yields the calls that wait for an answer."""
        reply = self.call("POST", "/sessions/{}/turns", json={"stream": mode, "messages": messages})
        if reply is None or reply.status_code != 200:
            return
        said = list(events(reply.text)) if "stream" in reply.headers["content-type"] else whole(reply)
        done = {data.get("toolCallId") for name, data in said if name == "tool_result"}
        if said and said[-1][1].get("stopReason") == "tool_use":
            yield from (data for name, data in said if name == "tool_call" and data["toolCallId"] not in done)

    def converse(self) -> None:
        self.call("GET", "/meta")
        tools = {"agent": {"name": "mock-agent", "tools": [{"name": "search"}]}, "tools": TOOLS}
        made = self.call("POST", "/sessions", json=tools)
        if made is not None and made.status_code == 201:
            self.session = made.json()["sessionId"]
            self.heard[-1] = (*self.heard[-1][:-1], self._plain(made.content))
        self.call("GET", "/sessions")
        self.call("GET", "/sessions/sess_old/history", params={"type": "full"})
        self.call("GET", "/sessions/nobody")
        for mode in ("delta", "message", "none"):
            list(self.turn(mode, {"role": "user", "content": "hello ${x}"}))
            calls = list(self.turn(mode, {"role": "user", "content": "the weather"}))
            while calls:
                calls = list(self.turn(mode, *map(answer, calls)))
        self.call("DELETE", "/sessions/{}")


def events(text: str) -> Iterator[tuple[str, Json]]:
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        try:
            if "event" in lines:
                yield lines["event"], json.loads(lines.get("data", "{}"))
        except ValueError:
            continue


def whole(reply: httpx.Response) -> list[tuple[str, Json]]:
    try:
        body = reply.json()
        messages = body["messages"]
    except (ValueError, KeyError, TypeError):
        return []
    calls = [block for one in messages if isinstance(one["content"], list) for block in one["content"]]
    return [
        *(("tool_result", one) for one in messages if one["role"] == "tool"),
        *(("tool_call", block) for block in calls if block["type"] == "tool_use"),
        ("turn_stop", body),
    ]


def answer(call: Json) -> Json:
    if call["name"] == "search":
        return {"role": "tool_permission", "toolCallId": call["toolCallId"], "granted": True}
    return {"role": "tool", "toolCallId": call["toolCallId"], "content": f"what {call['name']} says"}


def talk(scenario: Path, journal: Path) -> list[Any]:
    """All that a client hears."""
    with MockAgent(scenario, journal=journal) as mock:
        client = Robust(mock.aap_url)
        with client.http:
            client.converse()
    return client.heard


def there_and_back(folder: Path, fault: str = "") -> tuple[list[Any], list[Any]]:
    """What is heard of a scenario, and of the one that was made of its journal."""
    scenario, fixture, journal = folder / "s.yaml", folder / "fixture.yaml", folder / "journal.jsonl"
    scenario.write_text(SCENARIO + (f"legality: violation\nfaults: [{fault}]\n" if fault else ""))
    first = talk(scenario, journal)
    text, left_out = replayed(str(journal))
    assert left_out == []
    fixture.write_text(text)
    return first, talk(fixture, folder / "again.jsonl")


def test_a_conversation_over_aap_plays_again(tmp_path: Path) -> None:
    first, again = there_and_back(tmp_path)
    assert again == first
    assert sum("tool_use" in said[-1] for said in first) == 6


TROUBLE = {
    "a turn that is refused": "{at: turn, when: {nth: 2}, error: rate_limited}",
    "an event that is lost": "{at: 'event:thinking*', drop: true}",
    "an event that comes twice": "{at: 'event:tool_result', copies: 2}",
    "an event that is another": "{at: 'event:text_delta', edit: [{set: /delta, to: 18}]}",
    "an event of an unknown name": "{at: 'event:text', edit: [{set: /text, to: x}], event_name: tixt}",
    "an event without its blank line": "{at: 'event:tool_call', when: {nth: 1}, no_blank: true}",
    "a stream that ends early": "{at: 'event:thinking_delta', disconnect: close}",
    "a stream that is cut in the middle of an event": "{at: 'event:thinking_delta', truncate: 20, disconnect: close}",
    "a last event that is lost": "{at: 'event:turn_stop', when: {nth: 1}, drop: true}",
    "a list that is another": "{at: 'reply:GET /sessions', edit: [{set: /next, to: more}]}",
    "a list with an error of its own": "{at: 'GET /sessions', error: {status: 503, headers: {X-A: b}, body: {a: 1}}}",
    "an answer that is cut": "{at: 'reply:GET /meta', truncate: 30, disconnect: close}",
    "a whole answer that is another": "{at: 'reply:POST *turns', when: {nth: 10}, edit: [{set: /more, to: 1}]}",
}


@pytest.mark.parametrize("fault", TROUBLE.values(), ids=TROUBLE)
def test_trouble_over_aap_plays_again(tmp_path: Path, fault: str) -> None:
    first, again = there_and_back(tmp_path, fault)
    assert again == first
