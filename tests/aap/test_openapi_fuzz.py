"""Requests made from the OpenAPI document, to a live server: no 500, and no answer that the document does not name.

The requests are right by the schemas, wrong here and there, and about sessions that are there, or not. One server takes
all of them.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mockagent.aap.openapi import document

SCENARIO = """
name: fuzz
agent:
  tools: [{name: web_search}, {name: read_file}]
  options: [{id: model, name: Model, type: select, value: a, choices: [{value: a, name: A}, {value: b, name: B}]},
            {id: key, name: Key, type: secret, value: ''}]
sessions: {stored: [{id: "a/b %"}, {id: open, history: [{user: hi}, {tool: {name: mine, id: t1, side: client}}]}]}
turns: [{steps: [{think: hm}, {tool: {name: web_search, output: x}}, {tool: {name: any, side: client}}, {say: hi}]}]
"""
MADE = document("/aap")
KNOWN = [
    "mock-agent",
    "web_search",
    "read_file",
    "mine",
    "model",
    "a",
    "t1",
    "call_1",
    "https://x/y",
    "data:,x",
    "none",
]
IDS = ["a/b %", "open", "nowhere", "..", "\N{SNOWMAN}"]
HINTS: dict[tuple[str, str], list[Any]] = {
    ("AgentConfig", "name"): ["mock-agent"],
    ("AgentOverride", "name"): ["mock-agent"],
    ("EnabledTool", "name"): ["web_search", "read_file"],
    ("AgentConfig", "options"): [{}, {"model": "b"}, {"key": "k", "model": "a"}],
    ("AgentOverride", "options"): [{}, {"model": "b"}, {"key": "k", "model": "a"}],
    ("ImageBlock", "url"): ["https://x/y", "data:,x"],
}
OPERATIONS = [
    (method, path, {"parameters": [], **operation})
    for path, item in MADE["paths"].items()
    for method, operation in item.items()
    if method != "parameters"
]
WORDS = st.sampled_from(KNOWN) | st.sampled_from(KNOWN) | st.text(max_size=8)
JUNK: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.just([]) | st.just({})
)


def value(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """What fits a schema, and now and then what does not."""
    return st.integers(0, 40).flatmap(lambda luck: JUNK if luck == 0 else _fitting(schema, depth))


def _member(kind: str, name: str, schema: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    """A member of an object: what this agent knows, mostly, else what fits."""
    known = HINTS.get((kind, name))
    if known is None:
        return value(schema, depth)
    return st.integers(0, 9).flatmap(lambda luck: WORDS if luck == 0 else st.sampled_from(known))


def _fitting(schema: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return _fitting(MADE["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return st.one_of(*[value(one, depth + 1) for one in schema[key]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = {"string": WORDS, "boolean": st.booleans(), "integer": st.integers(), "null": st.none()}
    if schema.get("type") == "array":
        return st.lists(value(schema["items"], depth + 1), min_size=schema.get("minItems", 0), max_size=3)
    if schema.get("type") == "object":
        properties = {
            name: _member(schema.get("title", ""), name, inner, depth + 1)
            for name, inner in schema.get("properties", {}).items()
        }
        needed = {name: properties.pop(name) for name in schema.get("required", ()) if name in properties}
        made = st.fixed_dictionaries(needed, optional=properties)
        more = schema.get("additionalProperties")
        if isinstance(more, dict) or more is True:
            extra = st.dictionaries(WORDS, JUNK, max_size=2)
            return st.tuples(extra, made).map(lambda both: both[0] | both[1])
        return made
    return kinds.get(schema.get("type", ""), JUNK)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, str | None, dict[str, Any], dict[str, str], Any]:
    """Method, path, the session's id (None: one that is there), operation, query, body."""
    method, path, operation = draw(st.sampled_from(OPERATIONS))
    id = draw(st.none() | st.none() | st.sampled_from(IDS) | st.text(min_size=1, max_size=6).filter(_encodable))
    query = {
        parameter["name"]: draw(st.sampled_from(parameter["schema"].get("enum", [""])) | WORDS.filter(_encodable))
        for parameter in operation["parameters"]
        if parameter["in"] == "query" and draw(st.integers(0, 3))
    }
    body = None
    if "requestBody" in operation:
        body = draw(value(operation["requestBody"]["content"]["application/json"]["schema"]))
    return method.upper(), path, id, operation, query, body


def _encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


class Link:
    """A connection that is kept, and sessions that are there."""

    def __init__(self, address: str) -> None:
        self.link = http.client.HTTPConnection(address, timeout=20)
        self.seen: Counter[tuple[str, int]] = Counter()
        self._session: str | None = None

    def ask(self, method: str, target: str, body: Any = None) -> tuple[int, str | None, bytes]:
        """A request: status, media type and body of its answer."""
        data = json.dumps(body) if method == "POST" else None
        self.link.request(method, f"/aap{target}", data, {} if data is None else {"Content-Type": "application/json"})
        reply = self.link.getresponse()
        kind = reply.getheader("Content-Type")
        return reply.status, kind and kind.partition(";")[0], reply.read()

    def session(self) -> str:
        """One that is there; the same as long as it is."""
        if self._session is None or self.ask("GET", f"/sessions/{self._session}")[0] != 200:
            body = {"agent": {"name": "mock-agent"}, "tools": [{"name": "mine", "description": "", "parameters": {}}]}
            self._session = json.loads(self.ask("POST", "/sessions", body)[2])["sessionId"]
        return str(self._session)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Link]:
    """A server of its own."""
    file: Path = tmp_path_factory.mktemp("fuzz") / "fuzz.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    argv = [sys.executable, "-m", "mockagent", "serve", str(file), "--port", "0", "--speed", "0"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    link = Link(process.stderr.readline().removeprefix("listening on http://").strip())
    try:
        yield link
    finally:
        link.link.close()
        process.terminate()
        told = process.communicate(timeout=20)[1]
    assert "internal error" not in told
    assert process.returncode == 0


@settings(max_examples=300, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(request=requests())
def every_answer_is_in_the_document(link: Link, request: Any) -> None:
    method, path, id, operation, query, body = request
    target = path.replace("{id}", quote(link.session() if id is None else id, safe=""))
    status, kind, content = link.ask(method, target + (f"?{urlencode(query)}" if query else ""), body)
    link.seen[f"{method} {path}", status] += 1
    assert status < 500, content
    assert str(status) in operation["responses"], (status, content)
    declared = operation["responses"][str(status)].get("content", {})
    if not declared:
        assert (kind, content) == (None, b"")
        return
    assert kind in declared, (kind, content)
    if kind == "application/json":
        schema = declared[kind]["schema"] | {"components": MADE["components"]}
        jsonschema.Draft202012Validator(schema).validate(json.loads(content))


def test_every_answer_is_in_the_document_and_every_endpoint_has_worked(link: Link) -> None:
    every_answer_is_in_the_document(link)
    for method, path, operation in OPERATIONS:
        good = int(min(operation["responses"]))
        assert link.seen[f"{method.upper()} {path}", good], link.seen
