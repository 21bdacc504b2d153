"""Rules about ACP clients: what the spec demands of them, as far as frames alone decide it.

One small class a rule (or a kind of rule), in a module for each theme; the engine is `watch.audit`. A rule stands here
only if the spec says so, and if it is true under every interleaving of messages in flight.
"""

from mockagent.acp.rules import answers, lifecycle, lists, params, prompts, services, settings, transports
from mockagent.acp.rules.book import RULES

__all__ = ["RULES", "answers", "lifecycle", "lists", "params", "prompts", "services", "settings", "transports"]
