-- Query: append
INSERT INTO stream_events (session, owner, stream, message, size, time)
VALUES (@session, @owner, @stream, @message, @size, @time) RETURNING id

-- Query: stream
SELECT stream FROM stream_events WHERE id = @id AND session = @session

-- Query: page
SELECT id, owner, message FROM stream_events
WHERE session = @session AND stream = @stream AND id >= @from ORDER BY id LIMIT @limit

-- Query: shrink
-- Deletes all but the newest that have so many characters together.
DELETE FROM stream_events WHERE id <= (
  SELECT max(id) FROM (SELECT id, sum(size) OVER (ORDER BY id DESC) AS total FROM stream_events) AS newest
  WHERE total > @characters)

-- Query: make secret
INSERT INTO secrets (name, value) VALUES (@name, @value) ON CONFLICT DO NOTHING

-- Query: secret
SELECT value FROM secrets WHERE name = @name
