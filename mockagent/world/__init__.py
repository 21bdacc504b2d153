"""The world a scenario plays in: sessions, clock, seeds, cursors and storage, without any protocol."""
