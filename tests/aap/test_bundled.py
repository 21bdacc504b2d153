"""The bundled scenarios that are made for AAP: played over AAP by an application, and over ACP by an editor."""

from __future__ import annotations

import pytest

from mockagent.scenario.library import open_scenario
from tests.network import serving

MODES = ["delta", "message", "none"]


def declared(*names):
    return [{"name": name, "description": "", "parameters": {"type": "object"}} for name in names]


def result(id, content):
    return {"role": "tool", "toolCallId": id, "content": content}


def permission(id, granted, **more):
    return {"role": "tool_permission", "toolCallId": id, "granted": granted} | more


class Application:
    """A client with a session: it knows what is open, and collects what is said."""

    def __init__(self, server, session, mode):
        self.server, self.session, self.mode = server, session, mode

    async def send(self, *messages):
        """A turn: its stop reason, what was said and thought, and the calls that are open afterwards."""
        reply = await self.server.turn(self.session, *messages, stream=self.mode)
        assert reply.status_code == 200, reply.text
        history = await self.server.history(self.session)
        return (_of_answer if self.mode == "none" else _of_stream)(reply), _open(history)


def _of_answer(reply):
    body = reply.json()
    said = []
    for message in body["messages"]:
        if message["role"] == "assistant":
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            said += [block["text"] for block in blocks if block["type"] == "text"]
    return body["stopReason"], "".join(said)


def _of_stream(reply):
    from tests.aap.conftest import parsed

    events = parsed(reply.content)
    assert events[0] == ("turn_start", {})
    assert events[-1][0] == "turn_stop"
    said = [data.get("delta") or data.get("text") for name, data in events if name in ("text_delta", "text")]
    return events[-1][1]["stopReason"], "".join(said)


def _open(history):
    calls: dict[str, str] = {}
    for message in history:
        if message["role"] == "tool":
            del calls[message["toolCallId"]]
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                calls[block["toolCallId"]] = block["name"]
    return {name: id for id, name in calls.items()}


@pytest.fixture
def application(serve):
    async def start(name, mode, trusted=(), asked=(), tools=()):
        server = await serve(open_scenario(name))
        agent = server.host.agents[0].scenario.agent.name
        enabled = [{"name": tool, "trust": True} for tool in trusted] + [{"name": tool} for tool in asked]
        session = await server.create(agent={"name": agent, "tools": enabled}, tools=declared(*tools))
        return Application(server, session, mode)

    return start


@pytest.mark.parametrize("mode", MODES)
async def test_the_assistant_searches_asks_the_application_and_answers(application, mode):
    client = await application("assistant", mode, asked=["web_search"], tools=["lookup"])
    (stop, _), waiting = await client.send("owls")
    assert (stop, list(waiting)) == ("tool_use", ["web_search"])
    (stop, _), waiting = await client.send(permission(waiting["web_search"], True))
    assert (stop, list(waiting)) == ("tool_use", ["lookup"])
    (stop, said), waiting = await client.send(result(waiting["lookup"], "Owls are fine."))
    assert (stop, waiting) == ("end_turn", {})
    assert "Your application says: Owls are fine." in said
    assert "“owls”" in said


@pytest.mark.parametrize("mode", MODES)
async def test_the_assistant_does_without_tools(application, mode):
    client = await application("assistant", mode)
    (stop, said), waiting = await client.send("owls")
    assert (stop, waiting) == ("end_turn", {})
    assert "“owls”" in said
    assert "application" not in said


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ({"granted": True}, "Version 1.4.0 is out."),
        ({"granted": False}, "nothing was published"),
        ({"granted": False, "reason": "maybe later"}, "ask again tomorrow"),
    ],
)
async def test_what_the_user_decides_about_a_tool_decides_the_answer(application, mode, decision, words):
    client = await application("tool-permission", mode, trusted=["read_changelog"], asked=["publish"])
    (stop, _), waiting = await client.send("go")
    assert (stop, list(waiting)) == ("tool_use", ["publish"])
    (stop, said), waiting = await client.send(permission(waiting["publish"], **decision))
    assert (stop, waiting) == ("end_turn", {})
    assert words in said


async def test_a_trusted_tool_asks_nobody_and_one_that_is_off_is_not_called(application):
    trusting = await application("tool-permission", "delta", trusted=["read_changelog", "publish"])
    assert await trusting.send("go") == (("end_turn", "Version 1.4.0 is out, and nobody had to be asked."), {})
    without = await application("tool-permission", "delta")
    assert await without.send("go") == (("end_turn", "Publishing is switched off here."), {})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("weather", "words"), [("25°C", "25°C"), ("heavy rain", "umbrella")])
async def test_a_tool_of_the_client_is_called_by_its_name(application, mode, weather, words):
    client = await application("client-tools", mode, tools=["get_weather", "other"])
    (stop, _), waiting = await client.send("go")
    assert (stop, list(waiting)) == ("tool_use", ["get_weather"])
    (stop, said), _ = await client.send(result(waiting["get_weather"], weather))
    assert stop == "end_turn"
    assert words in said


async def test_any_tool_of_the_client_will_do(application):
    client = await application("client-tools", "delta", tools=["whatever"])
    _, waiting = await client.send("any tool, please")
    assert (await client.send(result(waiting["whatever"], "yes")))[0] == ("end_turn", "It says: yes")
    without = await application("client-tools", "delta")
    assert "no tool" in (await without.send("any tool, please"))[0][1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("granted", "words"), [(True, "planned"), (False, "No hotel, then.")])
async def test_all_that_waits_comes_back_in_one_request(application, mode, granted, words):
    client = await application(
        "parallel-tools", mode, trusted=["find_flights"], asked=["book_hotel"], tools=["get_weather", "get_calendar"]
    )
    (stop, _), waiting = await client.send("go")
    assert (stop, set(waiting)) == ("tool_use", {"get_weather", "get_calendar", "book_hotel"})
    answers = [result(waiting[name], "fine") for name in ("get_calendar", "get_weather")]
    (stop, said), waiting = await client.send(permission(waiting["book_hotel"], granted), *answers)
    assert (stop, waiting) == ("end_turn", {})
    assert words in said


@pytest.mark.parametrize(
    ("name", "calls", "asked"),
    [("assistant", 1, 0), ("tool-permission", 2, 1), ("client-tools", 0, 0), ("parallel-tools", 2, 1)],
)
async def test_the_same_scenarios_play_over_acp(name, calls, asked):
    async with serving(open_scenario(name)) as mock, mock.ws() as client:
        await client.greet()
        reply = await client.prompt(await client.new())
        assert reply["result"]["stopReason"] == "end_turn"
        assert len(client.updates("tool_call")) == calls
        final = [body["toolCallId"] for body in client.updates("tool_call_update") if body.get("status") == "completed"]
        assert len(final) == calls
        assert sum(one.get("method") == "session/request_permission" for one in client.seen) == asked
        assert client.words()
