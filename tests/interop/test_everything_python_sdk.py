"""The scenario `everything`, played to the official Python SDK with all its callbacks: each is called exactly once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    FileSystemCapabilities,
    Implementation,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

PATIENCE = 30.0

ONCE = Counter(
    {
        "request_permission": 1,
        "read_text_file": 1,
        "write_text_file": 1,
        "create_terminal": 1,
        "terminal_output": 1,
        "kill_terminal": 1,
        "wait_for_terminal_exit": 1,
        "release_terminal": 1,
        "elicit form": 1,
        "elicit url": 1,
        "complete_elicitation": 1,
        "ext_method": 1,
        "ext_notification": 1,
    }
)
UPDATES = Counter(
    {
        "user_message_chunk": 1,
        "agent_thought_chunk": 1,
        "agent_message_chunk": 8,
        "plan": 1,
        "usage_update": 1,
        "available_commands_update": 2,
        "current_mode_update": 1,
        "config_option_update": 1,
        "session_info_update": 1,
        "tool_call": 1,
        "tool_call_update": 2,
    }
)


class Everybody:
    """A client with every callback that the SDK knows."""

    def __init__(self) -> None:
        self.called: Counter[str] = Counter()
        self.updates: Counter[str] = Counter()
        self.content: Counter[str] = Counter()
        self.paths: set[str] = set()

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates[update.session_update] += 1
        if update.session_update == "agent_message_chunk":
            self.content[update.content.type] += 1

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **more: Any) -> Any:
        self.called["request_permission"] += 1
        assert sorted(option.kind for option in options) == [
            "allow_always", "allow_once", "reject_always", "reject_once",
        ]  # fmt: skip
        chosen = AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return RequestPermissionResponse(outcome=chosen)

    async def read_text_file(self, session_id: str, path: str, **more: Any) -> Any:
        self.called["read_text_file"] += 1
        self.paths.add(path)
        return ReadTextFileResponse(content="text")

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> Any:
        self.called["write_text_file"] += 1
        self.paths.add(path)

    async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:
        self.called["create_terminal"] += 1
        return CreateTerminalResponse(terminal_id="term_1")

    async def terminal_output(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.called["terminal_output"] += 1
        return TerminalOutputResponse(output="hello\n", truncated=False)

    async def release_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.called["release_terminal"] += 1

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.called["wait_for_terminal_exit"] += 1
        return WaitForTerminalExitResponse(exit_code=0)

    async def kill_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.called["kill_terminal"] += 1

    async def create_elicitation(self, message: str, mode: Any, **more: Any) -> Any:
        self.called["elicit url" if hasattr(mode, "url") else "elicit form"] += 1
        return AcceptElicitationResponse(action="accept", content=None if hasattr(mode, "url") else {"pace": "fast"})

    async def complete_elicitation(self, elicitation_id: str, **more: Any) -> None:
        self.called["complete_elicitation"] += 1

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.called["ext_method"] += 1
        return params

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.called["ext_notification"] += 1

    def on_connect(self, conn: Any) -> None:
        """The connection is not needed here."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> object:
    """The SDK logs what it cannot read; there is nothing of the kind."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def play(command: str, client: Everybody) -> str:
    """Plays one turn; returns its stop reason."""
    able = ClientCapabilities(
        fs=FileSystemCapabilities(read_text_file=True, write_text_file=True),
        terminal=True,
        elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities()),
    )
    async with (
        asyncio.timeout(PATIENCE),
        spawn_agent_process(cast(Client, client), command, "acp", "everything", use_unstable_protocol=True) as (
            agent,
            process,
        ),
    ):
        about = Implementation(name="interop", version="1")
        await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able, client_info=about)
        session = (await agent.new_session(cwd="/home/dev/project", mcp_servers=[])).session_id
        turn = await agent.prompt(session_id=session, prompt=[text_block("Everything, please")])
    assert process.stderr is not None
    assert await process.stderr.read() == b""
    process._transport.close()  # type: ignore[attr-defined]
    return turn.stop_reason


def test_each_callback_of_the_sdk_is_called_once(command: str) -> None:
    client = Everybody()
    assert asyncio.run(play(command, client)) == "end_turn"
    assert client.called == ONCE
    assert client.updates == UPDATES
    assert client.content == Counter({"text": 3, "resource": 2, "image": 1, "audio": 1, "resource_link": 1})
    assert client.paths == {"/home/dev/project/src/app.py", "/home/dev/project/notes.txt"}
