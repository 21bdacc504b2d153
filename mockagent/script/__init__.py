"""The runner: turns steps into output items and questions, ordered by one heap of timers, without any I/O."""
