"""Rules about single requests of AAP: headers, bodies, and only what the agent declared."""

from __future__ import annotations

from typing import Any, Final

from mockagent.aap.rules.book import CREATE, RULES, TURN, OfAgents, named
from mockagent.message import Message
from mockagent.watch.look import at, items, word
from mockagent.watch.rule import Check, got, sent

ENDPOINTS: Final = "endpoints"
SCHEMA: Final = "schema"

MODES: Final = ("delta", "message", "none")
HISTORIES: Final = ("compacted", "full")
PLACEHOLDER: Final = "***"


@RULES.rule(
    "AAP-AUTH-01",
    "MUST",
    "An API key comes in the header Authorization as Bearer, a space, and the key.",
    source=f"{ENDPOINTS}#authentication",
)
class BearsItsKey(Check):
    @got("*")
    def came(self, message: Message) -> None:
        headers = message.http.headers if message.http is not None else {}
        value = next((value for name, value in headers.items() if name.lower() == "authorization"), None)
        if value is None:
            return
        scheme, _, key = value.partition(" ")
        if scheme.lower() == "bearer" and key.strip():
            self.met()
        else:  # never repeats the key
            self.broken(f"the scheme was {word(scheme) if key else 'missing, or the key'}", message)


@RULES.rule(
    "AAP-BODY-01",
    "MUST",
    "The body of a POST is a JSON object.",
    source=f"{ENDPOINTS}#post-sessions; {ENDPOINTS}#post-sessions-id-turns",
)
class PostsObjects(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        if isinstance(message.data, dict):
            self.met()
        else:
            self.broken(f"the body was {word(message.data)}", message)


# --- agents, options, tools


@RULES.rule(
    "AAP-AGENT-01",
    "MUST",
    "POST /sessions names the agent to invoke.",
    source=f"{ENDPOINTS}#post-sessions; {SCHEMA}#requests",
)
class NamesAnAgent(Check):
    @got(CREATE)
    def posted(self, message: Message) -> None:
        if not isinstance(message.data, dict):
            return
        name = at(message.data, "agent", "name")
        if isinstance(name, str):
            self.met()
        else:
            self.broken(f"agent.name was {word(name)}", message)


@RULES.rule(
    "AAP-AGENT-02",
    "MUST",
    "The agent of a new session is one that /meta lists.",
    source=f"{ENDPOINTS}#get-meta",
    scope="process",
)
class NamesAListedAgent(OfAgents):
    def judge(self, message: Message, agent: str | None) -> None:
        agents = self.agents
        if agents is None or message.session is not None:
            return
        if agent in agents:
            self.met()
        else:
            self.broken(f"{word(agent)} is none of {', '.join(agents)}", *self.told, message)


@RULES.rule(
    "AAP-AGENT-03",
    "MUST",
    "A turn does not change the agent of its session.",
    source=f"{ENDPOINTS}#post-sessions-id-turns",
    scope="process",
)
class KeepsTheAgent(OfAgents):
    def judge(self, message: Message, agent: str | None) -> None:
        name = at(message.data, "agent", "name")
        if message.session is None or agent is None:
            return
        if name is None or name == agent:
            self.met()
        else:
            self.broken(f"the session belongs to {word(agent)}, and the turn named {word(name)}", message)


class Chosen(OfAgents):
    """Looks at option values, one by one."""

    def judge(self, message: Message, agent: str | None) -> None:
        given = at(message.data, "agent", "options")
        info = self.info(agent)
        if not isinstance(given, dict) or not given or info is None:
            return
        declared = {name: option for option in items(info.get("options")) for name in named([option])}
        for name, value in given.items():
            if problem := self.problem(name, value, declared):
                self.broken(problem, *self.told, message)
                return
        self.met()

    def problem(self, name: str, value: Any, declared: dict[str, Any]) -> str | None:
        """What is wrong with one value. Values are never repeated: one may be a secret."""
        raise NotImplementedError


@RULES.rule(
    "AAP-OPTION-01",
    "MUST",
    "Options that are set are ones that the agent declares.",
    source=f"{ENDPOINTS}#post-sessions",
    scope="process",
)
class SetsDeclaredOptions(Chosen):
    def problem(self, name: str, value: Any, declared: dict[str, Any]) -> str | None:
        return None if name in declared else f"the agent declares no option {word(name)}"


@RULES.rule(
    "AAP-OPTION-02",
    "MUST",
    "The value of a select option is one of its choices.",
    source=f"{ENDPOINTS}#get-meta",
    scope="process",
)
class ChoosesFromTheList(Chosen):
    def problem(self, name: str, value: Any, declared: dict[str, Any]) -> str | None:
        option = declared.get(name)
        choices = items(at(option, "options"))
        if at(option, "type") != "select" or not isinstance(value, str) or value in choices:
            return None
        return f"{name} was {word(value)}, none of {', '.join(map(str, choices))}"


@RULES.rule(
    "AAP-OPTION-03",
    "MUST",
    "Values of options are strings.",
    source=f"{SCHEMA}#agent",
)
class SetsStrings(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        given = at(message.data, "agent", "options")
        if not isinstance(given, dict) or not given:
            return
        wrong = [name for name, value in given.items() if not isinstance(value, str)]
        if wrong:
            self.broken(f"{wrong[0]} was no string", message)
        else:
            self.met()


@RULES.rule(
    "AAP-SECRET-01",
    "SHOULD",
    "The placeholder that stands for a secret is not sent back as its value.",
    source=f"{ENDPOINTS}#get-sessions-id",
    scope="process",
)
class KeepsPlaceholders(Chosen):
    tolerant = True  # of a damaged list, it only knows less

    def start(self) -> None:
        self.placeholders: set[tuple[str, str]] = set()

    @sent("reply:GET /sessions", "reply:GET /sessions/*")
    def redacted(self, message: Message) -> None:
        for row in items(at(message.data, "sessions")) or [message.data]:
            options = at(row, "agent", "options")
            for name, value in options.items() if isinstance(options, dict) else ():
                if value == PLACEHOLDER:
                    self.placeholders.add((name, value))

    def judge(self, message: Message, agent: str | None) -> None:
        given = at(message.data, "agent", "options")
        for name, value in given.items() if isinstance(given, dict) else ():
            kinds = [
                at(option, "type") for option in items(at(self.info(agent), "options")) if at(option, "name") == name
            ]
            if "secret" not in kinds and (name, PLACEHOLDER) not in self.placeholders:
                continue
            if value == PLACEHOLDER:
                self.broken(f"{name} was set to {PLACEHOLDER}", message)
            else:
                self.met()


@RULES.rule(
    "AAP-TOOL-01",
    "MUST",
    "Server-side tools that are enabled are ones that the agent lists in /meta.",
    source=f"{ENDPOINTS}#post-sessions",
    scope="process",
)
class EnablesListedTools(OfAgents):
    def judge(self, message: Message, agent: str | None) -> None:
        info = self.info(agent)
        wanted = list(named(at(message.data, "agent", "tools")))
        if info is None or not wanted:
            return
        unknown = [name for name in wanted if name not in list(named(info.get("tools")))]
        if unknown:
            self.broken(f"the agent lists no tool {word(unknown[0])}", *self.told, message)
        else:
            self.met()


@RULES.rule(
    "AAP-TOOL-02",
    "MUST",
    "Names of tools are unique in a request, on both sides together.",
    source="response#tool_call",
)
class NamesToolsApart(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        names = [*named(at(message.data, "agent", "tools")), *named(at(message.data, "tools"))]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            self.broken(f"{word(twice[0])} is there twice", message)
        elif names:
            self.met()


@RULES.rule(
    "AAP-TOOL-03",
    "MUST",
    "Client-side tools are sent only to an agent that declares application.tools.",
    source=f"{ENDPOINTS}#get-meta",
    scope="process",
)
class GatesItsTools(OfAgents):
    def judge(self, message: Message, agent: str | None) -> None:
        if self.info(agent) is None or not items(at(message.data, "tools")):
            return
        if self.declares(agent, "application", "tools"):
            self.met()
        else:
            self.broken("the agent does not declare application.tools", *self.told, message)


@RULES.rule(
    "AAP-TOOL-04",
    "MUST",
    "A client-side tool has a name, a description and the schema of its parameters.",
    source=f"{SCHEMA}#tools",
)
class DescribesItsTools(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        tools = items(at(message.data, "tools"))
        for index, tool in enumerate(tools):
            for name, kind in (("name", str), ("description", str), ("parameters", dict)):
                if not isinstance(at(tool, name), kind):
                    self.broken(f"tools[{index}].{name} was {word(at(tool, name))}", message)
                    return
        if tools:
            self.met()


@RULES.rule(
    "AAP-TOOL-05",
    "MUST",
    "A server-side tool is enabled by its name, and trust is a boolean.",
    source=f"{ENDPOINTS}#post-sessions; {SCHEMA}#tools",
)
class RefersToTools(Check):
    @got(CREATE, TURN)
    def posted(self, message: Message) -> None:
        tools = items(at(message.data, "agent", "tools"))
        for index, tool in enumerate(tools):
            if not isinstance(at(tool, "name"), str) or not isinstance(tool.get("trust", False), bool):
                self.broken(f"agent.tools[{index}] was {word(tool)}", message)
                return
        if tools:
            self.met()


# --- streams, history, pages


@RULES.rule(
    "AAP-STREAM-01",
    "MUST",
    "stream is delta, message or none.",
    source="response#response-modes",
)
class KnowsTheModes(Check):
    @got(TURN)
    def posted(self, message: Message) -> None:
        if not isinstance(message.data, dict) or "stream" not in message.data:
            return
        if message.data["stream"] in MODES:
            self.met()
        else:
            self.broken(f"stream was {word(message.data['stream'])}", message)


@RULES.rule(
    "AAP-STREAM-02",
    "MUST",
    "A response mode is asked for only if the agent declares it; with no declaration, only none.",
    source=f"{ENDPOINTS}#get-meta",
    scope="process",
)
class AsksForDeclaredModes(OfAgents):
    """`none` is not judged where the agent declares other modes only: it is the default of the request."""

    def judge(self, message: Message, agent: str | None) -> None:
        mode = at(message.data, "stream")
        if message.session is None or self.info(agent) is None or mode not in ("delta", "message"):
            return
        if self.declares(agent, "stream", mode):
            self.met()
        else:
            self.broken(f"the agent does not declare stream.{mode}", *self.told, message)


@RULES.rule(
    "AAP-HISTORY-01",
    "MUST",
    "A history is asked for with its type: compacted or full.",
    source=f"{ENDPOINTS}#get-sessions-id-history",
)
class NamesTheHistory(Check):
    @got("GET /sessions/*/history")
    def asked(self, message: Message) -> None:
        kind = message.http.query.get("type") if message.http is not None else None
        if kind in HISTORIES:
            self.met()
        else:
            self.broken(f"type was {word(kind)}", message)


@RULES.rule(
    "AAP-HISTORY-02",
    "MUST",
    "Only a history that the agent declares is asked for.",
    source=f"{ENDPOINTS}#get-sessions-id-history",
    scope="process",
)
class AsksForDeclaredHistories(OfAgents):
    @got("GET /sessions/*/history")
    def asked(self, message: Message) -> None:
        kind = message.http.query.get("type") if message.http is not None else None
        agent = self.owner(message)
        if self.info(agent) is None or kind not in HISTORIES:
            return
        if self.declares(agent, "history", kind):
            self.met()
        else:
            self.broken(f"the agent does not declare history.{kind}", *self.told, message)


@RULES.rule(
    "AAP-CURSOR-01",
    "MUST",
    "The cursor in after is one that this server has given out as next, unchanged.",
    source=f"{ENDPOINTS}#get-sessions",
    scope="process",
)
class TakesCursorsAsTheyAre(Check):
    def start(self) -> None:
        self.given: set[str] = set()

    @sent("reply:GET /sessions")
    def answered(self, message: Message) -> None:
        cursor = at(message.data, "next")
        if isinstance(cursor, str):
            self.given.add(cursor)
            self.blind = len(self.given) > 50_000

    def damaged(self, message: Message) -> None:
        """What was really given out stands in it."""
        self.answered(message)

    @got("GET /sessions")
    def asked(self, message: Message) -> None:
        cursor = message.http.query.get("after") if message.http is not None else None
        if cursor is None:
            return
        if cursor in self.given:
            self.met()
        else:
            self.broken(f"{word(cursor)} was never given out: it was made up, changed, or kept from before", message)
