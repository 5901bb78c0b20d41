-- Version 1: what is left of limits of requests
-- A crash of Postgres may empty it: then every limit starts from zero.
CREATE UNLOGGED TABLE rate_buckets (
  key TEXT PRIMARY KEY,
  tokens DOUBLE PRECISION NOT NULL,
  filled BIGINT NOT NULL
);
