"""A minimal agent written with the official Python SDK."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from acp import Agent, run_agent, update_agent_message_text
from acp.schema import InitializeResponse, NewSessionResponse, PromptResponse

CHUNKS = int(sys.argv[1])


class Peer(Agent):
    """Answers every prompt with so many chunks."""

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **rest: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **rest: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="s")

    async def prompt(self, session_id: str, **rest: Any) -> PromptResponse:
        for _ in range(CHUNKS):
            await self.client.session_update(session_id=session_id, update=update_agent_message_text("word "))
        return PromptResponse(stop_reason="end_turn")


asyncio.run(run_agent(Peer()))
