"""The observation store: code shared by both engines, and the store on PostgreSQL."""
