"""Takes committed rows; gives change rows, written by triggers in the same transaction, and a wake-up."""
