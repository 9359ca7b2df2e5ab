"""Who may do what: tokens, sessions, codes, and the note of who did it."""
