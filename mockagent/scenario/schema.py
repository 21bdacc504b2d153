"""The JSON Schema of the scenario format, for editors. Made from the same types as the validator.

It is a little more lenient than `check`: it cannot look at a file as a whole, and says yes to values that only a
scenario which is not `allowed` may hold.
"""

from __future__ import annotations

from typing import Any

from mockagent.scenario.top import Top

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema of a scenario file, in JSON Schema draft 2020-12."""
    defs: dict[str, Any] = {}
    top = Top.schema(defs)
    return {
        "$schema": DIALECT,
        "title": "mockagent scenario",
        "description": "A fake agent: what it says, which sessions it has, and where it departs from the right way.",
        **top,
        "$defs": dict(sorted(defs.items())),
    }
