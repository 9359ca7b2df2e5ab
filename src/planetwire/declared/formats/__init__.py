"""How records are found in a body of each kind, and how a value is found in a record."""
