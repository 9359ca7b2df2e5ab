"""Planetwire: public data about the planet, kept in PostgreSQL, seen in browsers as soon as it is committed."""

__version__ = "0.1.0"
