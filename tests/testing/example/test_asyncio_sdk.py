"""A client built on the official Python SDK, under asyncio."""

import asyncio

import pytest
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, Implementation, RequestPermissionResponse

from mockagent.testing import MockAgent


class Recorder:
    """Keeps what it hears, and allows everything."""

    def __init__(self):
        self.said = []
        self.asked = []

    async def session_update(self, session_id, update, **more):
        if update.session_update == "agent_message_chunk":
            self.said.append(update.content.text)

    async def request_permission(self, options, session_id, tool_call, **more):
        self.asked.append(tool_call.title)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    def on_connect(self, connection):
        pass


async def talk(mock, *prompts):
    """One session with some prompts; returns the client and the stop reasons."""
    client = Recorder()
    command, *arguments = mock.stdio_command
    async with spawn_agent_process(client, command, *arguments) as (connection, _process):
        await connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(),
            client_info=Implementation(name="recorder", version="1.0"),
        )
        session = await connection.new_session(cwd="/home/dev/project", mcp_servers=[])
        replies = [
            await connection.prompt(session_id=session.session_id, prompt=[text_block(prompt)]) for prompt in prompts
        ]
    return client, [reply.stop_reason for reply in replies]


@pytest.mark.mockagent("scenarios/inbox.yaml", speed=0)
def test_a_permission_is_granted_and_the_turn_goes_on(mockagent):
    client, reasons = asyncio.run(talk(mockagent, "delete it"))
    assert client.asked == ["Delete a file"]
    assert (client.said, reasons) == (["Done."], ["end_turn"])
    assert mockagent.journal.requests("answer:session/request_permission")


def test_with_the_object_in_place_of_the_fixture():
    async def test():
        async with MockAgent("scenarios/inbox.yaml", speed=0) as mock:
            client, _ = await talk(mock, "Hello", "Hello again")
            assert client.said == ["A moment.", "Here you are."] * 2
            assert (await mock.until("session/new")).params["cwd"] == "/home/dev/project"
            mock.verify()

    asyncio.run(test())
