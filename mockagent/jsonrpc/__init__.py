"""JSON-RPC 2.0: messages, errors and the correlation of requests with replies, without any protocol on top."""
