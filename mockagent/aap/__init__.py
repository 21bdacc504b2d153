"""The Agent Application Protocol: handlers, rendering, rules, and its binding to HTTP and server-sent events."""
