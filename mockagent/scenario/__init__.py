"""The scenario format: the table of verbs, the model, the loader that places every error, the bundled library."""
