import type { Migration } from "../sqlite/migrations.ts";

/**
 * `namespace` is its encoded path, so that everything below a prefix is one range. `id` is never used again, so `id`
 * and `version` together name one state of one item. `body` is what a search looks at, `words` the index of it:
 * null for items that a search leaves out.
 */
const TABLES = `
CREATE TABLE store_items (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  namespace TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  value TEXT NOT NULL,
  body TEXT,
  words TSVECTOR,
  version BIGINT NOT NULL DEFAULT 1,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  ttl BIGINT,
  expires_at BIGINT,
  UNIQUE (namespace, key)
);
CREATE INDEX store_items_words ON store_items USING gin (words);
CREATE INDEX store_items_expiring ON store_items (expires_at) WHERE expires_at IS NOT NULL;`;

export const POSTGRES_STORE: readonly Migration[] = [
  { version: 1, name: "items and the index of their words", sql: TABLES },
];
