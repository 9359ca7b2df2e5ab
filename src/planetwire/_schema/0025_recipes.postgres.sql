-- By what the derived rows of a source were made: a sum over the program that makes them. A version that derives
-- otherwise finds another sum here when it starts, and notes the sources' facts anew, whatever its migrations say.
create table derivation_recipes (
    source text not null, -- as layers declare it, other spellings too; '*': every source without a line of its own
    layer text not null,
    recipe text not null,
    noted_at timestamptz not null default clock_timestamp(),
    primary key (source, layer)
);
