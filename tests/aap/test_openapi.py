"""The OpenAPI document: valid, and true of what the server really answers."""

from __future__ import annotations

import jsonschema
import openapi_spec_validator
import pytest

from mockagent.aap.openapi import document

TALK = """
agent:
  tools: [{name: web_search, title: T, description: D}]
  options: [{id: model, name: Model, type: select, value: a, choices: [{value: a, name: A}]}]
turns: [{steps: [{think: hm}, {say: hi}, {tool: {name: web_search, input: {q: 1}, output: [{text: x}]}}, {say: bye}]}]
"""


def validator(name):
    made = document("/aap")
    schema = {"$ref": f"#/components/schemas/{name}", "components": made["components"]}
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_a_public_validator_has_nothing_to_say():
    openapi_spec_validator.validate(document("/aap"))


async def test_the_document_is_served(serve):
    server = await serve(base="/v1")
    made = (await server.http.get("/openapi.json")).json()
    assert made["openapi"].startswith("3.1")
    assert made["servers"] == [{"url": "/v1"}]
    assert set(made["paths"]) == {
        "/meta", "/sessions", "/sessions/{id}", "/sessions/{id}/history", "/sessions/{id}/turns",
    }  # fmt: skip


def test_every_reference_leads_somewhere():
    made = document("/aap")

    def walk(value):
        if isinstance(value, dict):
            if "$ref" in value:
                assert value["$ref"].removeprefix("#/components/schemas/") in made["components"]["schemas"]
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(made)


async def test_real_answers_fit_the_document(serve):
    server = await serve(TALK)
    agent = {"name": "mock-agent", "tools": [{"name": "web_search", "trust": True}]}
    session = await server.create(
        agent=agent, tools=[{"name": "mine", "description": "", "parameters": {"type": "object"}}]
    )
    validator("TurnAnswer").validate((await server.turn(session, "hi")).json())
    validator("Meta").validate((await server.http.get("/meta")).json())
    validator("SessionList").validate((await server.http.get("/sessions")).json())
    validator("Session").validate((await server.http.get(f"/sessions/{session}")).json())
    for kind in ("full", "compacted"):
        history = await server.http.get(f"/sessions/{session}/history", params={"type": kind})
        validator("History").validate(history.json())
    validator("Error").validate((await server.http.get("/nowhere")).json())


@pytest.mark.parametrize("mode", ["delta", "message"])
async def test_real_events_fit_the_document(serve, mode):
    from mockagent.aap.replies import EVENTS

    server = await serve(TALK)
    agent = {"name": "mock-agent", "tools": [{"name": "web_search", "trust": True}]}
    for name, data in await server.events(await server.create(agent=agent), "hi", stream=mode):
        validator(EVENTS[name].__name__).validate(data)
