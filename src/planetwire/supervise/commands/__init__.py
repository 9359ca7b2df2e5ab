"""The commands of an operator: what they do, and their words and options."""
