"""An AAP application as a page in a browser: from another origin, with a token, reading the stream as it comes."""

from __future__ import annotations

from pathlib import Path

from tests.interop.browser import visit
from tests.interop.client import Child

SCENARIO = """\
include: {base}
agent: {{auth: {{tokens: [open-sesame], public_meta: false}}}}
"""


def test_a_page_of_another_origin_reads_the_stream(start: type[Child], tmp_path: Path) -> None:
    base = Path(__file__).parents[2] / "scenarios" / "tool-permission.yaml"
    scenario = tmp_path / "guarded.yaml"
    scenario.write_text(SCENARIO.format(base=base), encoding="utf-8")
    address = start("serve", str(scenario), "--port", "0", "--speed", "0").address()
    happened = visit("aap.html", tmp_path / "profile", agent=f"http://{address}/aap")
    assert "error" not in happened, happened
    mine, theirs = happened["origins"]
    assert mine != theirs
    assert happened["agent"] == "release-agent"
    assert happened["first"] == [
        "turn_start", "thinking_delta", "tool_call", "tool_result", "tool_call", "turn_stop",
    ]  # fmt: skip
    assert happened["last"] == {"event": "turn_stop", "stopReason": "end_turn"}
    assert happened["shown"] == "Version 1.4.0 is out."
    assert happened["missing"] == [404, "session_not_found"]
    assert happened["stranger"] == [401, "Bearer"]
    assert happened["deleted"] == 204
