"""What jobs do: the handlers of task types."""
