"""Prints the migration of a table that a dataset declares, to be saved in `_schema/`."""

from __future__ import annotations

import argparse

from planetwire.datasets.registry import owned_tables
from planetwire.outbox.owned_tables import migration_of


def main() -> None:
    tables = {table.name: table for table in owned_tables()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=sorted(tables))
    print(migration_of(tables[parser.parse_args().table]), end="")


if __name__ == "__main__":
    main()
