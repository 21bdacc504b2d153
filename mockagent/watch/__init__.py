"""The onlookers: journal, audit, expectations and report fold over messages and change none."""
