"""An MCP server over stdio that is there at once: a loop over lines, without the official package.

For tests about the mock's side of it. It knows what `mcp_server.py` knows of the tools `forecast` and `slow`.
"""

from __future__ import annotations

import json
import os
import sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("forecast", "slow")]


def result(method: str, params: dict) -> dict | None:
    """What a request is answered with; None for one that never is."""
    if method == "initialize":
        about = {"name": "weather", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and params["name"] == "slow":
        return None
    if method == "tools/call" and params["name"] == "forecast":
        words = f"{params['arguments']['city']}: 18°C{os.environ.get('UNIT_NOTE', '')}"
        return {"content": [{"type": "text", "text": words}]}
    raise LookupError(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    try:
        answer = {"result": result(message["method"], message.get("params", {}))}
    except LookupError:
        answer = {"error": {"code": -32601, "message": "not here"}}
    if answer.get("result", {}) is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)  # noqa: T201 - MCP's own
