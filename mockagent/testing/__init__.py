"""mockagent for tests in Python: the public API."""
