"""An MCP server written with the official package, as a client of an agent might hand one over.

Run with the name of a transport: `stdio`, `http` or `sse`. The last two listen on a free port and print it.
"""

from __future__ import annotations

import os
import socket
import sys

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("weather", log_level="CRITICAL")


@server.tool()
def forecast(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 18°C{os.environ.get('UNIT_NOTE', '')}"


@server.tool()
def count(n: int) -> dict[str, int]:
    """Something with a structure."""
    return {"n": n, "next": n + 1}


@server.tool()
def broken() -> str:
    """Always fails."""
    raise ToolError("it is broken")


@server.tool()
async def slow() -> str:
    """Never answers."""
    await anyio.sleep_forever()
    return "never"


def main(transport: str) -> None:
    if transport == "stdio":
        server.run("stdio")
        return
    import uvicorn

    app = server.streamable_http_app() if transport == "http" else server.sse_app()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main(sys.argv[1])
