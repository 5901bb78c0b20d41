-- Version 1: events
CREATE TABLE stream_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session TEXT NOT NULL,
  owner TEXT NOT NULL,
  stream TEXT NOT NULL,
  message TEXT NOT NULL,
  size INTEGER NOT NULL,
  time INTEGER NOT NULL
) STRICT;
CREATE INDEX stream_events_of_session ON stream_events (session, id);
CREATE INDEX stream_events_by_time ON stream_events (time);
-- A sum of sizes reads this index instead of the long messages.
CREATE INDEX stream_events_sizes ON stream_events (size);
