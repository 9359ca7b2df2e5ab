"""What jobs do, a file a task type."""
