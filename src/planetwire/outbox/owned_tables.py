"""The migration text of a table that belongs to one layer, printed from its declaration."""

from __future__ import annotations

from planetwire.model import Column, OwnedTable
from planetwire.outbox.tables import FACTS, Watched, statements

ROOM = "fillfactor = 50"  # each run of the feed updates every row: the new versions fit on the same page
EVENTS = {
    "delete": "after delete on {facts}\n    referencing old table as old_rows for each statement",
    "truncate": "after truncate on {facts}\n    for each statement",
    "rename": "after update of source, external_key on {facts}\n    for each row"
    " when ((old.source, old.external_key) is distinct from (new.source, new.external_key))",
}


def migration_of(table: OwnedTable) -> str:
    """Creates it, the triggers that delete its rows with their facts, and its change triggers.

    No foreign key: it would refuse a plain TRUNCATE of the facts and be silent in a session that runs as a replica.
    """
    return "\n\n".join([_table(table), _follow(table.name), statements(Watched(table.name))]) + "\n"


def _table(table: OwnedTable) -> str:
    lines = [_column(column, last=column is table.columns[-1]) for column in table.columns]
    return "\n".join(
        [
            f"create table public.{table.name} (",
            "    id bigint generated always as identity primary key,",
            "    source text not null,",
            "    fact_key text not null,",
            "    unique (source, fact_key),",
            *lines,
            f"){f' with ({ROOM})' if table.rewritten else ''};",
        ]
    )


def _column(column: Column, *, last: bool) -> str:
    parts = [column.name, column.type]
    if column.required:
        parts.append("not null default ''" if column.type == "text" else "not null")
    if column.values:
        parts.append(f"check ({column.name} in ({', '.join(repr(value) for value in column.values)}))")
    return f"    {' '.join(parts)}{'' if last else ','} -- {column.what}{f', {column.unit}' if column.unit else ''}"


def _follow(name: str) -> str:
    """Nested loops only: the plan is cached, and one made for thousands of old rows is slow for a single one."""
    function = f"planet_follow_{name}"
    body = f"""create function public.{function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_hashjoin to off set enable_mergejoin to off as $$
begin
    if tg_op = 'TRUNCATE' then
        if exists (select from public.{name}) then
            truncate public.{name};
        end if;
    elsif tg_op = 'UPDATE' then
        delete from public.{name} d where d.source = old.source and d.fact_key = old.external_key;
    else
        delete from public.{name} d using old_rows o where d.source = o.source and d.fact_key = o.external_key;
    end if;
    return null;
end $$;"""
    triggers = (
        f"create trigger {function}_{event} {when.format(facts=f'public.{FACTS.name}')}\n"
        f"    execute function public.{function}();\n"
        f"alter table public.{FACTS.name} enable always trigger {function}_{event};"
        for event, when in EVENTS.items()
    )
    return "\n".join([body, *triggers])
