"""What goes wrong on request: selecting the rules of a scenario, and applying their effects."""
