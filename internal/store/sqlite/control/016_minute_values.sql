-- Values of each minute, which the console plots.
CREATE TABLE minute_values (
  at   INTEGER PRIMARY KEY, -- start of the minute, Unix seconds
  body TEXT NOT NULL        -- JSON: counts and amounts, nothing of persons
) STRICT;
