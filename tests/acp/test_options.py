"""Modes and options: kept in step, dependent on each other, changed by either side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CWD, Client, Json, Theatre, updates, words

AGENT = """
agent:
  modes: [{id: ask, name: Ask}, {id: code, name: Code}]
  options:
    - {id: mode, category: mode, type: select, value: code, choices: [ask, code]}
    - {id: model, type: select, value: small, choices: [{group: g, choices: [small]}, {group: h, choices: [large]}]}
    - id: effort
      type: select
      value: low
      choices: [{value: high, when: {option: {model: large}}}, {value: low, when: {option: {model: small}}}, none]
    - {id: cache, type: boolean, value: false, when: {mode: code}}
    - {id: deep, type: select, value: a, choices: [{value: a, when: {option: {effort: low}}}, {value: b}]}
sessions: {auto_title: null}
"""


def opened(rest: str = "", **options: Any) -> tuple[Client, str, Json]:
    client = Theatre(AGENT + rest).client(**options)
    client.initialize()
    result = client.call("session/new", {"cwd": CWD, "mcpServers": []})["result"]
    return client, result["sessionId"], result


def values(options: list[Json]) -> Json:
    return {option["id"]: option["currentValue"] for option in options}


def choices(options: list[Json], id: str) -> list[str]:
    [option] = [option for option in options if option["id"] == id]
    return [inner["value"] for choice in option["options"] for inner in choice.get("options", [choice])]


def choose(client: Client, session: str, id: str, value: Any) -> list[Json]:
    params: Json = {"sessionId": session, "configId": id, "value": value}
    if isinstance(value, bool):
        params["type"] = "boolean"
    options: list[Json] = client.call("session/set_config_option", params)["result"]["configOptions"]
    return options


def test_the_option_says_what_is_current_at_first_and_its_modes_agree() -> None:
    _, _, result = opened()
    assert result["modes"]["currentModeId"] == "code"
    assert values(result["configOptions"])["mode"] == "code"


def test_a_mode_changes_the_option_and_an_option_the_mode() -> None:
    client, session, _ = opened()
    assert client.call("session/set_mode", {"sessionId": session, "modeId": "ask"})["result"] == {}
    options = choose(client, session, "model", "small")
    assert values(options)["mode"] == "ask"
    assert "cache" not in values(options)
    choose(client, session, "mode", "code")
    loaded = client.call("session/load", {"sessionId": session, "cwd": CWD, "mcpServers": []})["result"]
    assert loaded["modes"]["currentModeId"] == "code"
    assert updates(client.sent) == []


def test_groups_are_kept_and_their_values_can_be_chosen() -> None:
    client, session, result = opened()
    [model] = [option for option in result["configOptions"] if option["id"] == "model"]
    assert model["options"][0] == {"group": "g", "name": "g", "options": [{"value": "small", "name": "small"}]}
    assert values(choose(client, session, "model", "large"))["model"] == "large"


def test_one_change_brings_about_the_next() -> None:
    client, session, result = opened()
    assert choices(result["configOptions"], "effort") == ["low", "none"]
    options = choose(client, session, "model", "large")
    assert choices(options, "effort") == ["high", "none"]
    assert choices(options, "deep") == ["b"]
    assert values(options) | {"effort": "high", "deep": "b"} == values(options)
    back = choose(client, session, "model", "small")
    assert values(back) | {"effort": "low", "deep": "b"} == values(back)


def test_what_is_not_there_now_cannot_be_chosen() -> None:
    client, session, _ = opened()
    for id, value in (("effort", "high"), ("deep", "c")):
        wrong = {"sessionId": session, "configId": id, "value": value}
        assert client.call("session/set_config_option", wrong)["error"]["data"]["field"] == "value"
    client.call("session/set_mode", {"sessionId": session, "modeId": "ask"})
    params: Json = {"sessionId": session, "configId": "cache", "value": True, "type": "boolean"}
    assert client.call("session/set_config_option", params)["error"]["data"]["field"] == "configId"


def test_the_agent_tells_a_mode_in_both_ways() -> None:
    client, session, _ = opened("turns: [{steps: [{mode: ask}, {option: {id: mode, value: code}}]}]")
    client.prompt(session)
    kinds = [body["sessionUpdate"] for body in updates(client.sent)]
    assert kinds == ["current_mode_update", "config_option_update", "config_option_update", "current_mode_update"]
    first, second = updates(client.sent)[0], updates(client.sent)[-1]
    assert (first["currentModeId"], second["currentModeId"]) == ("ask", "code")
    assert values(updates(client.sent)[1]["configOptions"])["mode"] == "ask"


def test_an_option_of_the_agent_brings_about_the_next_too() -> None:
    client, session, _ = opened("turns: [{steps: [{option: {id: model, value: large}}]}]")
    client.prompt(session)
    [body] = updates(client.sent)
    assert values(body["configOptions"])["effort"] == "high"


def test_a_schedule_hears_of_what_the_client_chose() -> None:
    client, session, _ = opened(
        "schedule:\n"
        "  - {event: option_changed, when: {option: {model: large}}, steps: [{option: {id: effort, value: none}}]}\n"
        "  - {event: mode_changed, steps: [{notice: changed}]}\n"
    )
    id = client.request("session/set_config_option", {"sessionId": session, "configId": "model", "value": "large"})
    client.run()
    reply = client.sent.index(client.reply_to(id))
    [body] = updates(client.sent[reply:])
    assert values(body["configOptions"])["effort"] == "none"
    client.call("session/set_mode", {"sessionId": session, "modeId": "ask"})
    assert updates(client.sent)[-1]["title"] == "changed"


@pytest.mark.parametrize("capabilities", [{}, {"session": {"configOptions": {"boolean": None}}}])
def test_boolean_options_are_for_clients_that_know_them_in_updates_too(capabilities: Json) -> None:
    client, session, result = opened(
        "turns: [{steps: [{option: {id: cache, value: true}}]}]", capabilities=capabilities
    )
    assert "cache" not in values(result["configOptions"])
    client.prompt(session)
    assert "cache" not in values(updates(client.sent)[0]["configOptions"])


def test_conditions_see_both_names_of_a_mode() -> None:
    rest = "turns: [{when: {mode: ask, option: {mode: ask}}, steps: [{say: both}]}]"
    client, session, _ = opened(rest)
    choose(client, session, "mode", "ask")
    client.prompt(session)
    assert words(client.sent) == "both"


@pytest.mark.parametrize(
    ("method", "params"),
    [("session/set_mode", {"modeId": "x"}), ("session/set_config_option", {"configId": "x", "value": "y"})],
)
def test_without_any_there_is_no_such_method(method: str, params: Json) -> None:
    client = Theatre("agent: {options: [{id: key, type: secret, value: ''}]}").client()
    session = client.new()
    assert client.call(method, {"sessionId": session, **params})["error"]["code"] == -32601


# --- slash commands


async def test_a_turn_matches_on_the_command_and_on_its_input() -> None:
    client = Theatre(
        "turns:\n"
        "  - {when: {command: deploy, prompt: '/^.deploy (?P<where>prod.*)$/'}, steps: [{say: '!${match.where}'}]}\n"
        "  - {when: {command: deploy, prompt: '*staging*'}, steps: [{say: quiet}]}\n"
        "  - {when: {command: deploy}, steps: [{say: where}]}\n"
        "  - {when: {command: '*'}, steps: [{say: what}]}\n"
        "  - {steps: [{say: none}]}\n"
        "sessions: {auto_title: null}\n"
    ).client()
    session = client.new()
    for text in ("/deploy prod eu", "/deploy staging", "/deploy", "/other", "deploy prod"):
        client.prompt(session, text)
    said = [body["content"]["text"] for body in updates(client.sent)]
    assert said == ["!prod eu", "quiet", "where", "what", "none"]
