"""Rules about AAP clients: what the protocol demands of them, as far as requests and answers alone decide it.

One small class a rule; the engine is `watch.audit`. A rule stands here only if the spec says so, and if it is true
under every interleaving of requests in flight.
"""

from mockagent.aap.rules import content, requests, tools
from mockagent.aap.rules.book import RULES

__all__ = ["RULES", "content", "requests", "tools"]
