"""Channels and frames: stdio, WebSocket, HTTP and SSE; it moves bytes and knows nothing of what they mean."""
