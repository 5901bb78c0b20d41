-- Version 1: items and the index of their words
-- `namespace` is its encoded path, so that everything below a prefix is one range. `id` is never used again, so `id`
-- and `version` together name one state of one item. `body` is the searched text, `words` its index:
-- null for items that a search leaves out.
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
CREATE INDEX store_items_expiring ON store_items (expires_at) WHERE expires_at IS NOT NULL;

-- Version 2: vectors of passages, and the queue of items without
-- Same as in SQLite: `store_models` are the embedding models in use, `store_unembedded` is the queue of each, and
-- `store_passages` has vectors of length 1 as 32-bit floats. Items older than a model are added to its queue from
-- `to_fill` downwards, newer and changed ones by the trigger.
CREATE TABLE store_models (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  dims BIGINT,
  to_fill BIGINT NOT NULL,
  used_at BIGINT NOT NULL
);
CREATE TABLE store_unembedded (
  model BIGINT NOT NULL REFERENCES store_models ON DELETE CASCADE,
  item BIGINT NOT NULL,
  due_at BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (model, item)
);
CREATE TABLE store_passages (
  item BIGINT NOT NULL REFERENCES store_items ON DELETE CASCADE,
  model BIGINT NOT NULL,
  number BIGINT NOT NULL,
  vector BYTEA NOT NULL,
  PRIMARY KEY (item, model, number)
);
CREATE INDEX store_passages_of_model ON store_passages (model);

CREATE FUNCTION embed_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM store_passages WHERE item = NEW.id;
    DELETE FROM store_unembedded WHERE item = NEW.id AND model IN (SELECT id FROM store_models);
  END IF;
  IF NEW.body IS NOT NULL THEN
    INSERT INTO store_unembedded (model, item) SELECT id, NEW.id FROM store_models ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER store_items_to_embed AFTER INSERT OR UPDATE OF value, body ON store_items
FOR EACH ROW EXECUTE FUNCTION embed_item();
