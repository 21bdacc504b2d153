"""Whatever a client writes: nothing breaks, nothing hangs, each request is answered once, and bad params never pass.

Random messages, and good ones with something changed at a random place, by the thousand. The official schema says which
params are bad.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mockagent.scenario.load import load_text
from tests.harness import CWD, Client, Error, Json, Theatre
from tests.official import SCHEMA, official

SCENARIO = load_text("""
agent:
  auth: {methods: [{id: login}, {id: term, type: terminal}]}
  modes: [{id: ask}, {id: code}]
  capabilities: {fork: true}
  options:
    - {id: mode, category: mode, type: select, value: ask, choices: [ask, code]}
    - {id: model, type: select, value: fast, choices: [fast, {value: slow, when: {mode: code}}]}
    - {id: brave, type: boolean, value: false, when: {mode: code}}
  commands: [{name: plan, description: d}]
sessions:
  auto_title: null
  page_size: 2
  stored: [{id: sess_a, cwd: /a, history: [{user: hi}, {say: ho}]}, {id: sess_b, cwd: /a}, {id: sess_c, cwd: /c}]
turns:
  - when: {prompt: "*hang*"}
    steps: [{terminal: {command: sleep, kill_after: 1s}}, {hang: true}]
  - steps:
      - {tool: {name: t, ask: true}}
      - {read: a, then: [{when: {outcome: error}, steps: [{say: no}]}]}
      - {elicit: {message: m, schema: {}}, timeout: 1s}
      - {terminal: a}
      - {request: _acme/x, save: {v: /result/v}}
      - {say: "${saved.v}"}
      - {say: "${prompt}"}
      - {stop: end_turn}
      - {after: 1s, say: late}
""")

SERVERS: list[Json] = [
    {"name": "a", "command": "/bin/a", "args": [], "env": [{"name": "K", "value": "v"}]},
    {"type": "http", "name": "b", "url": "https://x", "headers": [{"name": "K", "value": "v"}]},
    {"type": "sse", "name": "c", "url": "https://x", "headers": []},
]
PROMPT: list[Json] = [
    {"type": "text", "text": "go", "annotations": {"audience": ["user"], "priority": 1.5, "lastModified": "now"}},
    {"type": "image", "data": "AA==", "mimeType": "image/png", "uri": None},
    {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "x:y", "name": "n", "size": 4, "title": "t", "description": "d"},
    {"type": "resource", "resource": {"uri": "x:y", "text": "t", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "x:y", "blob": "AA=="}},
]
ABLE: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "session": {"compaction": {}, "notices": {}, "configOptions": {"boolean": {}}},
    "elicitation": {"form": {}, "url": {"_meta": None}},
}
GOOD: list[tuple[str, Json]] = [
    ("initialize", {"protocolVersion": 1, "clientCapabilities": ABLE, "clientInfo": {"name": "n", "version": "1"}}),
    ("authenticate", {"methodId": "login"}),
    ("logout", {"_meta": {"a": 1}}),
    ("session/new", {"cwd": CWD, "mcpServers": SERVERS, "additionalDirectories": ["/more"]}),
    ("session/load", {"sessionId": "sess_a", "cwd": "/a", "mcpServers": []}),
    ("session/resume", {"sessionId": "sess_b", "cwd": "/a", "mcpServers": SERVERS}),
    ("session/list", {"cwd": "/a", "cursor": None}),
    ("session/close", {"sessionId": "sess_a"}),
    ("session/delete", {"sessionId": "sess_c"}),
    ("session/set_mode", {"sessionId": "sess_a", "modeId": "code"}),
    ("session/set_config_option", {"sessionId": "sess_a", "configId": "model", "value": "slow"}),
    ("session/set_config_option", {"sessionId": "sess_b", "configId": "brave", "value": True, "type": "boolean"}),
    ("session/prompt", {"sessionId": "sess_a", "prompt": PROMPT}),
    ("session/prompt", {"sessionId": "sess_b", "prompt": [{"type": "text", "text": "hang"}]}),
    ("_acme/ping", {"x": 1}),
    ("session/no_such", {}),
]
TOLD: list[tuple[str, Json]] = [
    ("session/cancel", {"sessionId": "sess_a"}),
    ("session/cancel", {"sessionId": "sess_b"}),
    ("$/cancel_request", {"requestId": 3}),
    ("_acme/told", {"x": 1}),
]
ANSWERS: list[Any] = [
    None, {}, [], 5,
    {"outcome": {"outcome": "selected", "optionId": "allow_once"}}, {"outcome": {"outcome": "cancelled"}},
    {"outcome": {"outcome": "selected", "optionId": ["x"]}}, {"content": "x"}, {"content": 7}, {"terminalId": "t"},
    {"output": "o", "truncated": False}, {"exitCode": 1}, {"action": "accept", "content": {"a": [1]}}, {"action": {}},
    {"v": {"deep": [None]}}, Error(-32800), Error(-32601), Error(7),
]  # fmt: skip

odd = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(0.1, 0.9),
    st.text(max_size=5), st.sampled_from(["", "/", "a", "sess_a", "http", "text", "\ud7ff", "0"]),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside a JSON value: what holds it, and its key or index."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found += [(value, key), *places(inner)]
    return found


@st.composite
def changed(draw: st.DrawFn, value: Json) -> Json:
    """A value with up to two changes at random places."""
    made = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, 2))):
        there = places(made)
        if not there:
            return {"odd": draw(odd)}
        holder, key = draw(st.sampled_from(there))
        if draw(st.booleans()):
            holder[key] = draw(odd)
        elif isinstance(holder, dict):
            del holder[key]
        else:
            holder.append(draw(odd))
    return made


calls = st.sampled_from(GOOD).flatmap(lambda row: st.tuples(st.just(row[0]), changed(row[1])))
notices = st.sampled_from(TOLD).flatmap(lambda row: st.tuples(st.just(row[0]), changed(row[1])))
actions = st.lists(
    st.one_of(
        calls.map(lambda call: ("call", call)),
        calls.map(lambda call: ("call", call)),
        notices.map(lambda notice: ("tell", notice)),
        st.sampled_from(ANSWERS).map(lambda answer: ("answer", answer)),
        st.integers(0, 3).map(lambda seconds: ("wait", seconds)),
        st.binary(max_size=20).map(lambda text: ("write", text)),
        st.one_of(odd, st.lists(odd, max_size=3)).map(lambda value: ("json", value)),
    ),
    min_size=20,
    max_size=60,
)


class Game:
    """A client that does what it is told, and keeps count of what it asked."""

    def __init__(self) -> None:
        self.theatre = Theatre(SCENARIO)
        self.client: Client = self.theatre.client(judge=False)
        self.asked: dict[int, tuple[str, Any]] = {}
        self.open: list[Json] = []

    def look(self) -> None:
        self.open += [message for message in self.client.read() if "method" in message and "id" in message]

    def do(self, what: str, how: Any) -> None:
        client = self.client
        if what == "call":
            id = client.request(*how)
            self.asked[id] = how
        elif what == "tell":
            client.notify(*how)
        elif what == "answer" and self.open:
            client.answer(self.open.pop(0), how)
        elif what == "wait":
            self.theatre.run(until=self.theatre.now + how)
        elif what == "write":
            client.write(how)
        elif what == "json":
            client.write(how if isinstance(how, dict | list) else [how])
        self.look()

    def end(self) -> None:
        """Everything that may still be open is ended by the client."""
        for session in self.theatre.agent.world.sessions.listed():
            self.client.notify("session/cancel", {"sessionId": session.id})
        self.theatre.run(until=self.theatre.now + 30)
        self.look()

    def replies(self) -> Counter[Any]:
        """How often each id of ours was answered."""
        return Counter(
            message["id"]
            for message in self.client.sent
            if isinstance(message, dict) and "method" not in message and type(message.get("id")) is int
        )


@settings(max_examples=80)
@given(introduced=st.booleans(), played=actions)
def test_each_request_is_answered_once_and_nothing_breaks(introduced: bool, played: list[tuple[str, Any]]) -> None:
    game = Game()
    if introduced:
        game.client.initialize()
        for id, directory in (("sess_a", "/a"), ("sess_b", "/a")):
            game.client.call("session/resume", {"sessionId": id, "cwd": directory})
    for what, how in played:
        game.do(what, how)
    game.end()
    answered = game.replies()
    assert {id: answered[id] for id in game.asked} == dict.fromkeys(game.asked, 1)
    assert game.theatre.notes.of("bug") == []
    assert [text for text in game.theatre.said if "internal" in text] == []
    errors = [message["error"] for message in game.client.sent if isinstance(message, dict) and "error" in message]
    assert [error for error in errors if error["code"] == -32603] == []
    assert all(error["data"]["rule"] and error["data"]["field"] for error in errors if _names_a_field(error))


def _names_a_field(error: Json) -> bool:
    """Params that are bad name the field and the rule; a cursor that is none has its reason."""
    return error["code"] == -32602 and error["data"].get("reason") != "invalid_cursor"


@settings(max_examples=400)
@given(call=calls)
def test_what_the_schema_refuses_is_refused(call: tuple[str, Json]) -> None:
    if not SCHEMA.exists():
        official()
    method, params = call
    name = official().names.get((method, "Request"))
    client = Theatre(SCENARIO).client(judge=False)
    if method != "initialize":
        client.initialize()
    for id in ("sess_a", "sess_b"):
        if method != "initialize":
            client.call("session/resume", {"sessionId": id, "cwd": "/a"})
    id = client.request(method, params)
    client.read()
    client.notify("session/cancel", {"sessionId": "sess_a"})
    client.notify("session/cancel", {"sessionId": "sess_b"})
    client.run()
    reply = client.reply_to(id)
    if name is not None and official().problems(name, params):
        assert reply["error"]["code"] == -32602, reply
        assert reply["error"]["data"]["field"] in reply["error"]["message"]
    elif reply.get("error", {}).get("code") == -32602:
        assert not _is_about_types(reply["error"]), reply


def _is_about_types(error: Json) -> bool:
    """Whether params were refused for what the schema itself judges."""
    return str(error["data"].get("rule", "")).startswith(("Expected", "Invalid", "is required"))
