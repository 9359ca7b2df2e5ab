"""Authentication, authorisation and auditing: tokens, sessions, codes, audit rows."""
