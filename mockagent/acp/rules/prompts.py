"""Rules about the content of prompts: only what the agent takes, and each block with all that belongs to it."""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Any, Final

from mockagent.acp.rules.book import RULES, Introduced, params
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import Check, got

CONTENT: Final = "protocol/v1/content"

_BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/=-_" + string.whitespace)
"""Either alphabet, and line ends: decoders take all of that."""


def _blocks(message: Message) -> list[Any]:
    return items(params(message).get("prompt"))


class GatedContent(Introduced):
    """Blocks of a type are sent only if the agent advertised it: `about` is the type, and the capability."""

    @got("session/prompt")
    def prompted(self, message: Message) -> None:
        kind, capability = self.about
        if not any(at(block, "type") == kind for block in _blocks(message)):
            return
        if self.supports("agentCapabilities", "promptCapabilities", capability):
            self.met()
        else:
            self.broken(f"the agent does not advertise promptCapabilities.{capability}", *self.told, message)


for _id, _kind, _capability in (
    ("ACP-CONTENT-01", "image", "image"),
    ("ACP-CONTENT-02", "audio", "audio"),
    ("ACP-CONTENT-03", "resource", "embeddedContext"),
):
    RULES.add(
        _id,
        "MUST",
        f"A prompt has blocks of type {_kind} only if the agent advertises promptCapabilities.{_capability}.",
        GatedContent,
        source="protocol/v1/prompt-turn#1-user-message; protocol/v1/initialization#prompt-capabilities",
        about=(_kind, _capability),
    )

_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("name", "uri"),
    "resource": (),
}
"""Types of content blocks, with the members (all strings) that they have to have."""


@RULES.rule(
    "ACP-CONTENT-04",
    "MUST",
    "Each block of a prompt is of a type that the protocol knows.",
    source=f"{CONTENT}#content-types; protocol/v1/schema#contentblock",
)
class KnowsItsBlocks(Check):
    @got("session/prompt")
    def prompted(self, message: Message) -> None:
        for index, block in enumerate(_blocks(message)):
            kind = at(block, "type")
            if not isinstance(kind, str) or kind not in _NEEDS:
                self.broken(f"prompt[{index}] was of type {word(kind)}", message)
                return
        self.met()


@RULES.rule(
    "ACP-CONTENT-05",
    "MUST",
    "Each block of a prompt has the members of its type.",
    source=f"{CONTENT}#content-types; protocol/v1/schema#contentblock",
)
class CompletesItsBlocks(Check):
    @got("session/prompt")
    def prompted(self, message: Message) -> None:
        for index, block in enumerate(_blocks(message)):
            for problem in _problems(block):
                self.broken(f"prompt[{index}] {problem}", message)
                return
        self.met()


def _problems(block: Any) -> Iterator[str]:
    kind = at(block, "type")
    for name in _NEEDS.get(kind, ()) if isinstance(kind, str) else ():
        if not isinstance(block.get(name), str):
            yield f"({kind}) has {word(block.get(name))} for {name}"
    if kind == "resource":
        inner = block.get("resource")
        if not isinstance(at(inner, "uri"), str):
            yield "(resource) has no uri"
        elif not (isinstance(inner.get("text"), str) or isinstance(inner.get("blob"), str)):
            yield "(resource) has neither text nor blob"


@RULES.rule(
    "ACP-CONTENT-06",
    "MUST",
    "The data of images and audio, and the blob of resources, are base64.",
    source=f"{CONTENT}#image-content; {CONTENT}#audio-content; {CONTENT}#embedded-resource",
)
class EncodesItsData(Check):
    """Judged by the alphabet alone: a data URL, or raw bytes, do not pass for base64."""

    @got("session/prompt")
    def prompted(self, message: Message) -> None:
        seen = False
        for index, block in enumerate(_blocks(message)):
            data = at(block, "resource", "blob") if at(block, "type") == "resource" else at(block, "data")
            if isinstance(data, str):
                seen = True
                if wrong := set(data) - _BASE64:
                    self.broken(f"prompt[{index}] has {word(sorted(wrong)[0])} in its data", message)
                    return
        if seen:
            self.met()
