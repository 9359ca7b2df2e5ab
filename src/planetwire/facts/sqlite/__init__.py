"""The observation store on SQLite."""
