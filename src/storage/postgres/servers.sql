-- Version 1: the servers that are there
-- `number` is the order in which they came. `seen_at` is in milliseconds, by the clock of Postgres.
CREATE TABLE servers (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  environment TEXT NOT NULL,
  seen_at BIGINT NOT NULL
);
