"""Content in both directions: kinds of blocks, what gates them, local files, diffs, locations."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from mockagent.scenario.load import load
from tests.harness import CWD, Json, Theatre, played, updates


def turn(steps: str) -> str:
    return f"{{turns: [{{steps: [{steps}]}}], sessions: {{auto_title: null}}}}"


def said(part: str) -> Json:
    [body] = updates(played(turn(f"say: {part}")))
    content: Json = body["content"]
    return content


PNG = b"\x89PNG\r\n\x1a\n"

# --- what the agent shows


@pytest.mark.parametrize("verb", ["say", "think", "user"])
def test_a_local_file_is_read_and_its_type_known(verb: str, tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(PNG)
    (tmp_path / "beep.mp3").write_bytes(b"mp3")
    path = tmp_path / "a.yaml"
    path.write_text(turn(f"{verb}: [{{image: logo.png, uri: 'https://x/l.png'}}, {{audio: beep.mp3}}]"))
    client = Theatre(load(str(path))).client()
    client.prompt(client.new())
    image, audio = [body["content"] for body in updates(client.sent)][:2]
    data = base64.b64encode(PNG).decode()
    assert image == {"type": "image", "data": data, "mimeType": "image/png", "uri": "https://x/l.png"}
    assert audio == {"type": "audio", "data": base64.b64encode(b"mp3").decode(), "mimeType": "audio/mpeg"}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ("{image: 'data:image/gif;base64,R0lG'}", {"type": "image", "data": "R0lG", "mimeType": "image/gif"}),
        ("{audio: 'data:audio/ogg,%00a'}", {"type": "audio", "data": "AGE=", "mimeType": "audio/ogg"}),
        (
            "{image: 'https://x.org/p.webp'}",
            {"type": "resource_link", "uri": "https://x.org/p.webp", "name": "p.webp", "mimeType": "image/webp"},
        ),
        (
            "{link: 'file:///a/b.md', title: T, description: d, size: 3, mime: text/markdown}",
            {
                "type": "resource_link", "uri": "file:///a/b.md", "name": "b.md", "title": "T", "description": "d",
                "size": 3, "mimeType": "text/markdown",
            },
        ),
        (
            "{resource: {uri: 'x:y', blob: AA==, mime: a/b, meta: {k: 1}}}",
            {"type": "resource", "resource": {"uri": "x:y", "blob": "AA==", "mimeType": "a/b", "_meta": {"k": 1}}},
        ),
        (
            "{text: t, annotations: {audience: [user], priority: 1}, meta: {k: 1}}",
            {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 1}, "_meta": {"k": 1}},
        ),
        ("{type: image, data: AA==, mimeType: image/png}", {"type": "image", "data": "AA==", "mimeType": "image/png"}),
    ],
)  # fmt: skip
def test_each_kind_of_block_is_as_the_schema_has_it(part: str, block: Json) -> None:
    assert said(part) == block


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        ("{path: a, new: x}", {"path": f"{CWD}/a", "newText": "x"}),
        ("{path: a, old: null, new: x}", {"path": f"{CWD}/a", "newText": "x", "oldText": None}),
        ("{path: a, old: x, new: y}", {"path": f"{CWD}/a", "newText": "y", "oldText": "x"}),
        ("{path: /b, old: x, new: ''}", {"path": "/b", "newText": "", "oldText": "x"}),
    ],
)
def test_files_are_shown_as_new_changed_or_emptied(diff: str, expected: Json) -> None:
    bodies = updates(played(turn(f"tool_start: {{id: c, title: T, content: [{{diff: {diff}}}]}}")))
    assert bodies[0]["content"] == [{"type": "diff", **expected}]


def test_parts_of_a_tool_call_carry_meta() -> None:
    content = "[{diff: {path: a, new: x}, meta: {k: 1}}, {terminal: t, meta: {k: 2}}, {text: x, meta: {k: 3}}]"
    [body] = updates(played(turn(f"tool_start: {{id: c, title: T, content: {content}}}")))
    diff, terminal, text = body["content"]
    assert (diff["_meta"], terminal["_meta"], text["content"]["_meta"]) == ({"k": 1}, {"k": 2}, {"k": 3})


def test_locations_are_absolute_and_may_have_a_line() -> None:
    [body] = updates(played(turn("tool_start: {id: c, title: T, locations: [a.py, {path: b.py, line: 7}]}")))
    assert body["locations"] == [{"path": f"{CWD}/a.py"}, {"path": f"{CWD}/b.py", "line": 7}]


def test_a_message_has_its_own_id_a_given_one_or_none() -> None:
    steps = "{say: a}, {say: b, message_id: mine}, {say: c, message_id: null}"
    ids = [body.get("messageId") for body in updates(played(turn(steps)))]
    assert ids == ["msg_1", "mine", None]
    off = updates(played("{agent: {message_ids: false}, turns: [{steps: [{say: a}]}], sessions: {auto_title: null}}"))
    assert "messageId" not in off[0]


def test_the_reply_carries_the_meta_of_the_stop() -> None:
    messages = played(turn("{stop: refusal, meta: {why: x}}"))
    assert messages[-1]["result"] == {"stopReason": "refusal", "_meta": {"why": "x"}}


@pytest.mark.parametrize("able", [True, False])
def test_notices_and_compaction_are_for_clients_that_advertised_them(able: bool) -> None:
    steps = "{notice: {title: T, description: d}}, {compaction: {id: c, status: failed, error: e, summary: s}}"
    theatre = Theatre(turn(steps))
    client = theatre.client(capabilities={"session": {"notices": {}, "compaction": {}}} if able else {})
    client.prompt(client.new())
    expected = [
        {"sessionUpdate": "notice", "severity": "info", "title": "T", "description": "d"},
        {
            "sessionUpdate": "compaction_update", "compactionId": "c", "status": "failed", "error": "e",
            "summary": [{"type": "text", "text": "s"}],
        },
    ]  # fmt: skip
    assert updates(client.sent) == (expected if able else [])


# --- what the client may say

BLOCKS: dict[str, Json] = {
    "image": {"type": "image", "data": "AA==", "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
    "embedded_context": {"type": "resource", "resource": {"uri": "x:y", "text": "t"}},
    "text": {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.1}, "_meta": {"a": 1}},
    "link": {"type": "resource_link", "uri": "x:y", "name": "n", "size": 1, "title": None},
}


def prompted(scenario: str, block: Any) -> Json:
    client = Theatre(scenario).client()
    return client.call("session/prompt", {"sessionId": client.new(), "prompt": [block]})


@pytest.mark.parametrize("kind", BLOCKS)
def test_every_kind_of_content_can_be_in_a_prompt(kind: str) -> None:
    assert "result" in prompted("{}", BLOCKS[kind])


@pytest.mark.parametrize("kind", ["image", "audio", "embedded_context"])
def test_what_the_agent_did_not_advertise_is_refused(kind: str) -> None:
    error = prompted(f"agent: {{capabilities: {{prompt: {{{kind}: false}}}}}}", BLOCKS[kind])["error"]
    assert (error["code"], error["data"]["field"]) == (-32602, "prompt[0]")
    assert "promptCapabilities" in error["data"]["rule"]
    for other in {"text", "link"}:
        assert "result" in prompted("agent: {capabilities: {prompt: false}}", BLOCKS[other])


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"type": "text"}, "prompt[0].text"),
        ({"text": "t"}, "prompt[0].type"),
        ({"type": "video", "data": ""}, "prompt[0].type"),
        ({"type": "image", "data": "AA=="}, "prompt[0].mimeType"),
        ({"type": "image", "data": 5, "mimeType": "a/b"}, "prompt[0].data"),
        ({"type": "resource", "resource": {"uri": "x:y"}}, "prompt[0].resource"),
        ({"type": "resource", "resource": {"uri": "x:y", "text": 1}}, "prompt[0].resource"),
        ({"type": "resource_link", "uri": "x:y"}, "prompt[0].name"),
        ({"type": "text", "text": "t", "annotations": {"audience": ["nobody"]}}, "prompt[0].annotations.audience[0]"),
        ({"type": "text", "text": "t", "_meta": []}, "prompt[0]._meta"),
        ("text", "prompt[0]"),
    ],
)
def test_a_block_that_is_none_is_named(block: Any, field: str) -> None:
    error = prompted("{}", block)["error"]
    assert (error["code"], error["data"]["field"]) == (-32602, field)
    assert field in error["message"]
