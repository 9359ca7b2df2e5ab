"""Applies the schema in order, says beforehand what that costs, and waits for its locks with a bound."""
