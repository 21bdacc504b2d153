"""What people see in the terminal: the agent-and-client show, and tables."""
