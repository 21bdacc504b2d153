"""The Agent Client Protocol: handlers, rendering, rules, and its bindings to stdio, WebSocket and HTTP."""
