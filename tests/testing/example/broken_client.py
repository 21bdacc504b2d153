"""Clients that do something wrong, to see what their developers read. Run it by its name; it is meant to fail."""

import pytest
from test_sync import Client


class Hasty(Client):
    """Grants what it is asked, although it has just cancelled the turn."""

    def handle(self, message):
        if message["method"] == "session/request_permission":
            session = message["params"]["sessionId"]
            self.write({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
            outcome = {"outcome": "selected", "optionId": "allow_once"}
            self.write({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}})

    def write(self, message):
        import json

        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


@pytest.mark.mockagent("scenarios/inbox.yaml")
def test_a_permission_after_cancel(mockagent):
    client = Hasty(mockagent.stdio_command)
    client.introduce()
    session = client.request("session/new", cwd="/home/dev/project", mcpServers=[])["sessionId"]
    client.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "delete it"}])
    client.close()


@pytest.mark.mockagent("scenarios/inbox.yaml")
def test_a_wrong_assertion(mockagent):
    client = Client(mockagent.stdio_command)
    client.introduce()
    client.request("session/list")
    client.close()
    assert len(mockagent.journal.requests("session/list")) == 2
