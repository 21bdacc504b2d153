"""The README's test of a client, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.plain import INFO, StdioClient

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def list_sessions(command: list[str]) -> list[Any]:
    """All rows of the list; an error on the way starts it again, once."""
    with StdioClient(command) as client:
        client.ask("initialize", protocolVersion=1, clientInfo=INFO)
        rows: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            answer = client.ask("session/list", **cursor)
            if "error" in answer:
                rows, cursor = [], {}
                continue
            rows += answer["result"]["sessions"]
            if "nextCursor" not in answer["result"]:
                return rows
            cursor = {"cursor": answer["result"]["nextCursor"]}


def test_the_test_in_the_readme_passes() -> None:
    (example,) = re.findall(r"^```python\n(from mockagent.testing.*?)^```$", README, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"my_client": SimpleNamespace(list_sessions=list_sessions)}
    exec(example, names)
    names["test_a_bad_cursor_starts_the_list_again"]()
