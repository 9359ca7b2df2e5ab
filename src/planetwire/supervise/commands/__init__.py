"""The operator's commands: their options and implementations."""
