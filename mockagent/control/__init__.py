"""The control API under `/_mock`, with which a test steers a mock that is already running."""
