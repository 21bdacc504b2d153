"""Whatever the official schema lets an agent say or be asked is played by a bundled scenario, or listed with a reason.

The bundled scenarios that keep to the rules are played to a client that can do everything; what was seen is compared
with what the schema names. A new name in the schema fails here until it is played or listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from mockagent.scenario import library
from mockagent.scenario.model import Scenario
from tests.harness import EVERYTHING, Client, Error, Json, Theatre, select
from tests.official import official

ABLE: Json = EVERYTHING | {"auth": {"terminal": True}}

NOT_PLAYED: dict[tuple[str, str], str] = {
    ("error", "-32800"): "a cancelled prompt has the stop reason `cancelled`, and no other request takes long enough",
}
"""What no bundled scenario plays, by what it is and its name, with the reason."""

REGEXES = {
    r"/^.web\s+(?P<query>\S.*)$/": "/web acp",
    r"/^call (?P<server>\S+) (?P<tool>\S+) (?P<text>.+)$/": "call a b c",
    r"/^call (?P<server>\S+) (?P<tool>\S+)$/": "call a b",
}
"""Prompts for regexes of bundled scenarios that play something which no other scenario plays."""

Named = tuple[str, str]


# --- what the schema names


def definitions() -> dict[str, Any]:
    made: dict[str, Any] = official()._defs
    return made


def constants(name: str, member: str | None = None) -> list[str]:
    """The values that a definition allows: its own constants, or those of a member that tells its kinds apart."""
    found = []
    for way in definitions()[name].get("oneOf") or definitions()[name]["anyOf"]:
        value = way.get("const") if member is None else way.get("properties", {}).get(member, {}).get("const")
        if value is not None:
            found.append(str(value))
    return found


def methods(side: str) -> list[str]:
    return sorted({each["x-method"] for each in definitions().values() if each.get("x-side") == side})


def named() -> Iterator[Named]:
    """Everything that has to be played."""
    for side in ("agent", "client", "protocol"):
        yield from (("method", method) for method in methods(side))
    for what, name, member in (
        ("update", "SessionUpdate", "sessionUpdate"),
        ("content", "ContentBlock", "type"),
        ("tool content", "ToolCallContent", "type"),
        ("stop reason", "StopReason", None),
        ("tool kind", "ToolKind", None),
        ("tool status", "ToolCallStatus", None),
        ("option kind", "PermissionOptionKind", None),
        ("plan status", "PlanEntryStatus", None),
        ("priority", "PlanEntryPriority", None),
        ("severity", "NoticeSeverity", None),
        ("error", "ErrorCode", None),
        ("elicitation", "CreateElicitationRequest", "mode"),
        ("property", "ElicitationPropertySchema", "type"),
        ("format", "StringFormat", None),
        ("config option", "SessionConfigOption", "type"),
        ("config category", "SessionConfigOptionCategory", None),
    ):
        yield from ((what, value) for value in constants(name, member))
    yield from (("auth method", kind) for kind in ("agent", "terminal"))


# --- what is played


def prompts(scenario: Scenario) -> list[str]:
    """Prompts that bring every turn of a scenario on."""
    found = ["hello", "hello again"]
    for turn in scenario.turns:
        when = turn.when
        if when is None:
            continue
        if when.prompt is not None:
            found.append(REGEXES.get(when.prompt, when.prompt.replace("*", " ").strip()))
        elif when.command is not None:
            found.append(f"/{when.command}")
    return found


def answers(number: int) -> dict[str, Any]:
    """How the client answers, with another choice each time."""

    def choose(request: Json) -> Json:
        options = request["params"]["options"]
        return select(options[number % len(options)]["optionId"])

    elicited = [{"action": "accept", "content": {"strategy": "bold"}}, {"action": "decline"}, {"action": "cancel"}]
    return {
        "session/request_permission": choose,
        "fs/read_text_file": [{"content": "TODO\n"}, Error(), {"content": ""}][number % 3],
        "fs/write_text_file": {},
        "terminal/create": {"terminalId": f"term_{number}"},
        "terminal/output": {"output": "42 passed", "truncated": False},
        "terminal/kill": {},
        "terminal/release": {},
        "terminal/wait_for_exit": {"exitCode": 0, "signal": None},
        "elicitation/create": None if number == 3 else elicited[number % 3],
    }


def values(option: Json) -> list[Json]:
    """Everything that an option can be set to."""
    if option["type"] == "boolean":
        return [{"value": value, "type": "boolean"} for value in (True, False)]
    choices = [inner for choice in option["options"] for inner in choice.get("options", [choice])]
    return [{"value": choice["value"]} for choice in choices]


class Brief(Client):
    """A client that reads at once, and waits no longer than it has to: some agents never fall silent."""

    def wait(self, id: Any) -> None:
        """Plays until a request is answered, or half a minute has passed."""
        theatre = self.theatre
        until = theatre.now + 30
        while self.reply_to(id) is None:
            theatre.stage.pump()
            if self.read():
                continue
            if theatre.stage.deadline() > until:
                return
            theatre.run(until=max(theatre.stage.deadline(), theatre.now))

    def call(self, method: str, params: Any = None, *, id: Any = msgspec.UNSET) -> Json:
        id = self.request(method, params, id=id)
        self.wait(id)
        reply: Json = self.reply_to(id)
        return reply


@cache
def converse(name: str) -> Client:
    """Everything that a client can ask of a bundled scenario, and every turn with several answers."""
    scenario = library.open_scenario(name)
    theatre = Theatre(scenario)
    client = Brief(theatre, ABLE, 1024, True)
    theatre.clients.append(client)
    client.answers = answers(0)
    about = client.initialize()
    session_params = {"cwd": scenario.sessions.cwd, "mcpServers": []}
    if "error" in client.call("session/new", session_params):
        client.call("authenticate", {"methodId": about["authMethods"][0]["id"]})
    for row in client.call("session/list").get("result", {}).get("sessions", [])[:3]:
        params = {"sessionId": row["sessionId"], "cwd": row["cwd"], "mcpServers": []}
        client.call("session/load", params)
        client.call("session/resume", params)
    for number in range(4):
        client.answers = answers(number)
        made = client.call("session/new", session_params)["result"]
        for prompt in prompts(scenario):
            turn = client.prompt(made["sessionId"], prompt, run=False)
            client.wait(turn)
            if client.reply_to(turn) is None:
                client.notify("session/cancel", {"sessionId": made["sessionId"]})
                client.wait(turn)
        session = {"sessionId": made["sessionId"]}
        for mode in made.get("modes", {}).get("availableModes", []):
            client.call("session/set_mode", session | {"modeId": mode["id"]})
        for option in made.get("configOptions", []):
            for value in values(option):
                client.call("session/set_config_option", session | {"configId": option["id"]} | value)
        client.call("session/close", session)
        client.call("session/delete", session)
    if about["authMethods"]:
        client.call("authenticate", {"methodId": about["authMethods"][0]["id"]})
        client.call("logout")
    client.call("session/no_such_method")
    client.call("session/prompt", {"sessionId": "nobody", "prompt": []})
    client.call("session/prompt", {})
    client.call("initialize", {"protocolVersion": 1})
    client.write(b"{")
    client.read()
    return client


class Seen:
    """What was played, by what it is."""

    def __init__(self) -> None:
        self.found: set[Named] = set()

    def add(self, client: Client) -> None:
        for message in client.sent:
            self.message(client, message)

    def message(self, client: Client, message: Json) -> None:
        if "method" in message:
            self.found.add(("method", message["method"]))
            self.walk(message.get("params"))
        elif "error" in message:
            self.found.add(("error", str(message["error"]["code"])))
        else:
            self.found.add(("method", client.methods.get(message["id"], "")))
            self.walk(message["result"])

    def walk(self, value: Any) -> None:
        """Everything inside that has a kind."""
        if isinstance(value, list):
            for item in value:
                self.walk(item)
        if not isinstance(value, dict):
            return
        for member, look in LOOKS.items():
            if isinstance(value.get(member), str):
                self.found.update((what, value[member]) for what in look(value))
        if "name" in value and "id" in value and "type" not in value:
            self.found.add(("auth method", "agent"))
        for item in value.values():
            self.walk(item)


def _types(value: Json) -> list[str]:
    if "currentValue" in value:
        return ["config option"]
    return ["content", "tool content", "property", "auth method"]


LOOKS: dict[str, Callable[[Json], list[str]]] = {
    "sessionUpdate": lambda value: ["update"],
    "type": _types,
    "stopReason": lambda value: ["stop reason"],
    "kind": lambda value: ["option kind"] if "optionId" in value else ["tool kind"],
    "status": lambda value: ["plan status"] if "priority" in value else ["tool status"],
    "priority": lambda value: ["priority"],
    "severity": lambda value: ["severity"],
    "mode": lambda value: ["elicitation"],
    "format": lambda value: ["format"],
    "category": lambda value: ["config category"],
}


@cache
def played() -> frozenset[Named]:
    """What all bundled scenarios that keep to the rules say; each message has been judged by the schema on the way."""
    seen = Seen()
    for row in library.summaries():
        if row.legality == "allowed":
            seen.add(converse(row.name))
    # what a client says without waiting for an answer is heard by every agent: the turns above were cancelled with it
    seen.found.add(("method", "session/cancel"))
    return frozenset(seen.found)


def test_everything_that_the_schema_names_is_played_or_listed() -> None:
    official()
    missing = sorted(name for name in set(named()) - played() if name not in NOT_PLAYED)
    assert missing == []


def test_what_is_listed_is_in_the_schema_and_not_played() -> None:
    official()
    assert sorted(name for name in NOT_PLAYED if name not in set(named()) or name in played()) == []


@pytest.mark.parametrize("name", [row.name for row in library.summaries() if row.legality == "allowed"])
def test_every_message_of_a_lawful_scenario_is_valid(name: str) -> None:
    official()
    client = converse(name)
    assert client.sent
    assert client.theatre.notes.of("bug") == []
