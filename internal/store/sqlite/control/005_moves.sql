-- What a move between databases has made of this one; no row if none has.
CREATE TABLE moves (
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  state TEXT NOT NULL,   -- see package move
  move  TEXT NOT NULL,   -- the same in both databases
  peer  TEXT NOT NULL,   -- the other database
  at    INTEGER NOT NULL -- Unix nanoseconds
) STRICT;
