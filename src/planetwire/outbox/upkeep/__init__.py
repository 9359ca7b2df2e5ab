"""The outbox for operators and the diagnostic, and its pruning."""
