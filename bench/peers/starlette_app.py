"""What most people would write: Starlette on uvicorn, an event at a time from a generator."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

CHUNKS = int(sys.argv[2])


def event(name: str, data: object) -> str:
    """One event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


async def events() -> AsyncIterator[str]:
    """A turn."""
    yield event("turn_start", {})
    for _ in range(CHUNKS):
        yield event("text_delta", {"delta": "word "})
    yield event("turn_stop", {"stopReason": "end_turn"})


async def turns(request: Request) -> StreamingResponse:
    """`POST /sessions/:id/turns`."""
    await request.json()
    return StreamingResponse(events(), media_type="text/event-stream")


app = Starlette(routes=[Route("/sessions/{id}/turns", turns, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
