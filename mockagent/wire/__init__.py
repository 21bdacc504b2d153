"""The way between a protocol and its channels: outboxes, writer tasks, and the points where faults and taps act."""
