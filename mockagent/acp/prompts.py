"""A prompt of ACP in the script's words: its text, its parts, and what conditions can see of it.

Works on messages as they come in, checked or not: faults look at prompts before any handler does.

Source: ACP v1, "Prompt Turn", "Slash Commands" (a command is the text of the prompt, behind a slash).
"""

from __future__ import annotations

from typing import Any

from mockagent.message import Message
from mockagent.script.match import command_of
from mockagent.script.prompt import Prompt
from mockagent.world.history import Part


def read(message: Message) -> Prompt:
    """The prompt that a checked `session/prompt` holds."""
    blocks = _blocks(message)
    beside = {"protocol": "acp", "transport": message.peer.transport, "connection": message.peer.id}
    told = facts(message) | beside | {"params": message.data["params"]}
    return Prompt(text=told["prompt"], parts=[_part(block) for block in blocks], message=message.data, facts=told)


def facts(message: Message) -> dict[str, Any]:
    """`prompt`, and `command` where it is one."""
    text = "\n".join(block["text"] for block in _blocks(message) if isinstance(block.get("text"), str))
    return {"prompt": text, "command": command_of(text)}


def _blocks(message: Message) -> list[dict[str, Any]]:
    params = message.data.get("params") if isinstance(message.data, dict) else None
    blocks = params.get("prompt") if isinstance(params, dict) else None
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def _part(block: dict[str, Any]) -> Part:
    """Plain text as text, everything else as ACP wrote it."""
    if block["type"] == "text" and block.keys() <= {"type", "text"}:
        text: str = block["text"]
        return text
    return block
