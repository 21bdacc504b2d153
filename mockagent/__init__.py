"""A scriptable fake AI agent for the people who write clients: one scenario file, played over ACP and AAP.

Nothing is imported here, so that the command starts fast; the public API is `mockagent.testing`.
"""

__version__ = "0.1.0"
