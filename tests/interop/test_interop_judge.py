"""The judge itself: it lets a right conversation pass, and sees each kind of wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.official import official
from tests.transcript import Transcript

Json = dict[str, Any]


def call(id: int, method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def reply(id: int, result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def update(kind: str, session: str = "s", **fields: Any) -> Json:
    body = {"sessionUpdate": kind} | fields
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": body}}


def chunk(text: str, **fields: Any) -> Json:
    return update("agent_message_chunk", content={"type": "text", "text": text}, **fields)


def tool(id: str = "t", **fields: Any) -> Json:
    return update("tool_call", toolCallId=id, title="Look", **fields)


def ask(id: int, *options: str) -> Json:
    offered = [{"optionId": option, "name": option, "kind": "allow_once"} for option in options]
    return call(id, "session/request_permission", sessionId="s", toolCall={"toolCallId": "t"}, options=offered)


END = reply(2, {"stopReason": "end_turn"})


def judged(*messages: Json, cancel: bool = False, capabilities: Json | None = None) -> list[str]:
    """The problems of a turn in which the agent sends these messages."""
    judge = Transcript(official())
    judge.to_agent(call(0, "initialize", protocolVersion=1, clientCapabilities=capabilities or {}))
    judge.from_agent(reply(0, {"protocolVersion": 1}))
    judge.to_agent(call(1, "session/new", cwd="/", mcpServers=[]))
    judge.from_agent(reply(1, {"sessionId": "s"}))
    judge.to_agent(call(2, "session/prompt", sessionId="s", prompt=[]))
    if cancel:
        judge.to_agent({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}})
    for message in messages:
        judge.from_agent(message)
        if "method" in message and "id" in message:
            judge.to_agent(reply(message["id"], {"outcome": {"outcome": "selected", "optionId": "x"}}))
    judge.ended()
    return judge.problems


def test_a_right_turn_passes() -> None:
    done = update("tool_call_update", toolCallId="t", status="completed")
    title = update("session_info_update", title="x")
    assert (
        judged(chunk("hi", messageId="m"), tool(), ask(0, "yes", "no"), done, chunk("done", messageId="n"), END, title)
        == []
    )


def test_a_right_cancel_passes() -> None:
    assert judged(tool(), reply(2, {"stopReason": "cancelled"}), cancel=True) == []


WRONG: dict[str, tuple[list[Any], str]] = {
    "an unknown kind of update": ([update("agent_song_chunk"), END], "agent_song_chunk"),
    "a chunk without content": ([update("agent_message_chunk"), END], "SessionNotification"),
    "a slip in an optional member": ([tool(rawinput={}, status="completed"), END], "rawinput"),
    "an unknown stop reason": ([reply(2, {"stopReason": "bored"})], "PromptResponse"),
    "no jsonrpc": ([{"id": 2, "result": {"stopReason": "end_turn"}}], "no JSON-RPC"),
    "a reply to nothing": ([END, reply(7, {})], "nothing that was asked"),
    "a second reply": ([END, END], "second reply"),
    "no reply": ([], "never answered"),
    "text behind the reply": ([END, chunk("more")], "while no turn runs"),
    "an update for an unknown session": ([update("plan", "other", entries=[]), END], "does not know"),
    "an update for a tool call that is not there": (
        [update("tool_call_update", toolCallId="u", status="completed"), END],
        "not announced",
    ),
    "a tool call announced twice": ([tool(status="completed"), tool(status="completed"), END], "announced twice"),
    "a tool call left open": ([tool(), END], "'t' is pending"),
    "a relative path": ([tool(status="completed", locations=[{"path": "a.py"}]), END], "not absolute"),
    "a message id for two kinds": (
        [
            chunk("a", messageId="m"),
            update("agent_thought_chunk", content={"type": "text", "text": ""}, messageId="m"),
            END,
        ],
        "another kind",
    ),
    "two options with one id": ([tool(status="completed"), ask(0, "a", "a"), END], "each its own"),
    "permission for nothing": ([ask(0, "a"), END], "not announced"),
    "a request id twice": ([tool(status="completed"), ask(0, "a"), ask(0, "b"), END], "used before"),
    "cancelled by nobody": ([reply(2, {"stopReason": "cancelled"})], "nobody cancelled"),
    "a notice that was not asked for": ([update("notice", severity="info", title="x"), END], "did not advertise"),
    "a request of the other side": ([call(0, "session/prompt", sessionId="s", prompt=[]), END], "session/prompt"),
}


@pytest.mark.parametrize(("messages", "problem"), WRONG.values(), ids=WRONG)
def test_a_wrong_turn_is_seen(messages: list[Any], problem: str) -> None:
    assert [found for found in judged(*messages) if problem in found]
