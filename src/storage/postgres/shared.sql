-- Version 1: messages of sessions, and secrets of all servers
CREATE TABLE stream_events (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session TEXT COLLATE "C" NOT NULL,
  owner TEXT NOT NULL,
  stream TEXT NOT NULL,
  message TEXT NOT NULL,
  size BIGINT NOT NULL,
  time BIGINT NOT NULL
);
CREATE INDEX stream_events_of_session ON stream_events (session, id);
CREATE INDEX stream_events_by_time ON stream_events (time);
CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  value BYTEA NOT NULL
);
