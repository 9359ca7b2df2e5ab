-- Where changes go on to other services. A row is made when an outlet is first switched on: it begins with what comes
-- after that. One process at a time sends, the one that holds the term.
create table change_outlets (
    outlet text primary key,
    term bigint not null default 0,
    holder text,
    expires_at timestamptz
) with (fillfactor = 50);

-- How far an outlet has come with each layer, moved after the other side took the event. No row: from the beginning.
-- `paused_at`: the other side refused the next event again and again; it is still asked, seldom, and never skipped.
create table change_outlet_cursors (
    outlet text not null references change_outlets (outlet) on delete cascade,
    layer text not null,
    epoch text not null,
    revision bigint not null,
    sent_at timestamptz,
    attempts integer not null default 0,
    next_attempt_at timestamptz,
    paused_at timestamptz,
    last_error text,
    primary key (outlet, layer)
) with (fillfactor = 50);
