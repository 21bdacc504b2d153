"""A plain synchronous client over `subprocess`."""

import json
import subprocess

import pytest


class Client:
    """Just enough of a client to show a list of sessions."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.titles = {}
        self.last_id = 0

    def request(self, method, **params):
        self.last_id += 1
        self.process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}) + "\n"
        )
        self.process.stdin.flush()
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]
            self.handle(message)

    def introduce(self):
        self.request("initialize", protocolVersion=1, clientInfo={"name": "plain", "version": "1.0"})

    def handle(self, message):
        update = message["params"]["update"]
        if update["sessionUpdate"] == "session_info_update":
            self.titles[message["params"]["sessionId"]] = update["title"]

    def load_list(self):
        """All pages; begins again, once, when the agent does not know the cursor any more."""
        for last_try in (False, True):
            found, cursor = {}, None
            try:
                while True:
                    page = self.request("session/list", **({"cursor": cursor} if cursor else {}))
                    found |= {row["sessionId"]: row.get("title") for row in page["sessions"]}
                    cursor = page.get("nextCursor")
                    if not cursor:
                        self.titles = found
                        return
            except RuntimeError:
                if last_try:
                    raise

    def close(self):
        with self.process:
            self.process.stdin.close()


@pytest.fixture
def client(mockagent):
    client = Client(mockagent.stdio_command)
    client.introduce()
    yield client
    client.close()


@pytest.mark.mockagent("scenarios/inbox.yaml")
def test_all_pages_are_shown(client):
    client.load_list()
    assert list(client.titles.values()) == ["First", "Second", None]


@pytest.mark.mockagent("scenarios/inbox.yaml")
def test_a_cursor_that_has_expired_begins_the_list_anew(client, mockagent):
    mockagent.fault("list", error="invalid_cursor", when={"nth": 2})
    client.load_list()
    assert len(client.titles) == 3
    assert len(mockagent.journal.requests("session/list")) == 4


@pytest.mark.mockagent("scenarios/inbox.yaml")
def test_a_title_that_arrives_late_is_shown(client, mockagent):
    client.load_list()
    mockagent.push("sess_c", title="Third")
    client.request("session/list")
    assert client.titles["sess_c"] == "Third"


def test_a_client_that_is_killed_leaves_nothing_behind(mockagent):
    client = Client(mockagent.stdio_command)
    client.introduce()
    client.process.kill()
    mockagent.wait_for("closed", timeout=10)
    with client.process:
        pass
