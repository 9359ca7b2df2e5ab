-- The law of one running job of a source is asked for by lane, as everything else (decision 26). `_one_write` named the
-- task types, for the sake of a version that did too.
drop index collection_tasks_one_write, collection_tasks_busy;
create unique index collection_tasks_busy on collection_tasks (source)
    where status in ('running', 'cancelling') and lane <> 'free';
