"""Rules about what AAP clients say: images, content blocks, and the messages of seeds and turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mockagent.aap.rules.book import CREATE, RULES, TURN, OfAgents, blocks
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import Check, got

ENDPOINTS: Final = "endpoints"
SCHEMA: Final = "schema"

ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
TURN_ROLES: Final = frozenset({"user", "tool", "tool_permission"})


# --- content


class GatedImages(OfAgents):
    """Images by URL of a kind are sent only if the agent declared that."""

    scheme = ""
    capability = ""

    def judge(self, message: Message, agent: str | None) -> None:
        urls = [at(block, "url") for _, block in blocks(message) if at(block, "type") == "image"]
        if self.info(agent) is None or not any(isinstance(url, str) and url.startswith(self.scheme) for url in urls):
            return
        if self.declares(agent, "image", self.capability):
            self.met()
        else:
            self.broken(f"the agent does not declare image.{self.capability}", *self.told, message)


@RULES.rule(
    "AAP-IMAGE-01",
    "MUST",
    "Images by https URL are sent only to an agent that declares image.http.",
    source=f"{ENDPOINTS}#get-meta",
    scope="process",
)
class GatesLinkedImages(GatedImages):
    scheme = "https:"
    capability = "http"


@RULES.rule(
    "AAP-IMAGE-02",
    "MUST",
    "Images by data URL are sent only to an agent that declares image.data.",
    source=f"{ENDPOINTS}#get-meta",
    scope="process",
)
class GatesImageData(GatedImages):
    scheme = "data:"
    capability = "data"


@RULES.rule(
    "AAP-IMAGE-03",
    "MUST",
    "The url of an image is an https or a data URL.",
    source=f"{SCHEMA}#content-block",
)
class LinksImages(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        seen = False
        for place, block in blocks(message):
            if at(block, "type") == "image" and isinstance(url := at(block, "url"), str):
                seen = True
                if not url.lower().startswith(("https:", "data:")):
                    self.broken(f"{place}.url was {word(url)}", message)
                    return
        if seen:
            self.met()


_BLOCKS: Final[dict[str, tuple[tuple[str, type], ...]]] = {
    "text": (("text", str),),
    "thinking": (("thinking", str),),
    "tool_use": (("toolCallId", str), ("name", str), ("input", dict)),
    "image": (("url", str),),
}


@RULES.rule(
    "AAP-BLOCK-01",
    "MUST",
    "Each content block is of a type of the protocol, and has its members.",
    source=f"{SCHEMA}#content-block",
)
class CompletesItsBlocks(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        seen = False
        for place, block in blocks(message):
            seen = True
            kind = at(block, "type")
            if not isinstance(kind, str) or kind not in _BLOCKS:
                self.broken(f"{place} was of type {word(kind)}", message)
                return
            for name, right in _BLOCKS[kind]:
                if not isinstance(at(block, name), right):
                    self.broken(f"{place}.{name} was {word(at(block, name))}", message)
                    return
        if seen:
            self.met()


# --- messages


@RULES.rule(
    "AAP-MESSAGE-01",
    "MUST",
    "A session is seeded with messages of system, user, assistant and tool.",
    source=f"{SCHEMA}#requests; {SCHEMA}#messages",
)
class SeedsWithHistory(Check):
    @got(CREATE)
    def posted(self, message: Message) -> None:
        _judge_roles(self, message, ROLES)


@RULES.rule(
    "AAP-MESSAGE-02",
    "MUST",
    "A turn brings new messages only: of the user, results of tools, and permissions.",
    source=f"history#server-history; {SCHEMA}#requests",
)
class SendsNewMessages(Check):
    @got(TURN)
    def posted(self, message: Message) -> None:
        _judge_roles(self, message, TURN_ROLES)


def _judge_roles(check: Check, message: Message, allowed: frozenset[str]) -> None:
    said = items(at(message.data, "messages"))
    for index, one in enumerate(said):
        role = at(one, "role")
        if not isinstance(role, str) or role not in allowed:
            check.broken(f"messages[{index}].role was {word(role)}", message)
            return
    if said:
        check.met()


@RULES.rule(
    "AAP-MESSAGE-03",
    "MUST",
    "A turn has messages: one of the user, or results and permissions together.",
    source=f"{ENDPOINTS}#post-sessions-id-turns; {SCHEMA}#requests",
)
class SendsOneKind(Check):
    @got(TURN)
    def posted(self, message: Message) -> None:
        if not isinstance(message.data, dict):
            return
        roles = [at(one, "role") for one in items(message.data.get("messages"))]
        users = roles.count("user")
        if not roles:
            self.broken("it had no messages", message)
        elif users and len(roles) > 1:
            self.broken(f"it had {users} of the user among {len(roles)}", message)
        else:
            self.met()


@RULES.rule(
    "AAP-MESSAGE-04",
    "MUST",
    "Each message has the members of its role.",
    source=f"{SCHEMA}#messages",
)
class CompletesItsMessages(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        said = items(at(message.data, "messages"))
        for index, one in enumerate(said):
            for problem in _message_problems(one):
                self.broken(f"messages[{index}] {problem}", message)
                return
        if said:
            self.met()


def _message_problems(one: Any) -> Iterator[str]:
    role = at(one, "role")
    if role in ("tool", "tool_permission") and not isinstance(one.get("toolCallId"), str):
        yield f"({role}) has no toolCallId"
    if role in ("user", "assistant", "tool") and not isinstance(one.get("content"), str | list):
        yield f"({role}) has {word(one.get('content'))} for content"
    if role == "system" and not isinstance(one.get("content"), str):
        yield "(system) has no text for content"
    if role == "tool_permission" and not isinstance(one.get("granted"), bool):
        yield f"(tool_permission) has {word(one.get('granted'))} for granted"
