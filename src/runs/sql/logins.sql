-- Query: put
INSERT INTO login_rows (model, id, principal, grant_id, uid, body, created_at, expires_at)
VALUES (@model, @id, @principal, @grant_id, @uid, @body, @now, @expires_at)
ON CONFLICT (model, id) DO UPDATE SET principal = excluded.principal, grant_id = excluded.grant_id,
  uid = excluded.uid, body = excluded.body, expires_at = excluded.expires_at

-- Query: find
SELECT body, expires_at, used_at FROM login_rows WHERE model = @model AND id = @id AND expires_at > @now

-- Query: find by uid
SELECT body, expires_at, used_at FROM login_rows WHERE model = @model AND uid = @uid AND expires_at > @now

-- Query: token
-- The token of a removed person is none.
SELECT r.body, r.principal, r.expires_at FROM login_rows AS r JOIN login_owners AS o ON o.name = r.principal
WHERE r.model = 'AccessToken' AND r.id = @id AND r.expires_at > @now

-- Query: use up
UPDATE login_rows SET used_at = coalesce(used_at, @now)
WHERE model = @model AND id = @id AND (used_at IS NULL OR used_at > @since)

-- Query: remove
DELETE FROM login_rows WHERE model = @model AND id = @id

-- Query: revoke grant
DELETE FROM login_rows WHERE grant_id = @id OR (model = 'Grant' AND id = @id)

-- Query: open page
INSERT INTO login_rows (model, id, principal, grant_id, uid, body, created_at, expires_at, used_at, name, scopes)
VALUES ('Grant', @id, @principal, NULL, @uid, '{}', @now, @expires_at, @now, 'The page in a browser', @scopes),
  ('AccessToken', @uid, @principal, @id, @uid, @body, @now, @expires_at, NULL, NULL, NULL)

-- Query: leave page
DELETE FROM login_rows WHERE uid = @uid AND model IN ('AccessToken', 'Grant')

-- Query: log out
DELETE FROM login_rows WHERE principal = @name

-- Query: remove expired
DELETE FROM login_rows WHERE expires_at <= @now

-- Query: make room
-- Leaves the newest 999 registered clients with which nobody has logged in.
DELETE FROM login_rows WHERE model = 'Client' AND used_at IS NULL AND created_at <= (
  SELECT created_at FROM login_rows WHERE model = 'Client' AND used_at IS NULL ORDER BY created_at DESC LIMIT 1 OFFSET 999)

-- Query: describe grant
UPDATE login_rows SET name = @name, host = @host, scopes = @scopes, used_at = @now WHERE model = 'Grant' AND id = @id

-- Query: keep
-- A grant and a registered client live as long as the newest refresh token.
UPDATE login_rows SET used_at = @now, expires_at = @expires_at
WHERE (model = 'Grant' AND id = @grant) OR (model = 'Client' AND id = @client)

-- Query: owners
SELECT name, created_at FROM login_owners ORDER BY name

-- Query: owner
SELECT password FROM login_owners WHERE name = @name

-- Query: add owner
INSERT INTO login_owners (name, password, last_code, tries, tried_at, created_at)
VALUES (@name, @password, 0, 0, 0, @now) ON CONFLICT (name) DO NOTHING

-- Query: remove owner
DELETE FROM login_owners WHERE name = @name

-- Query: count try
-- Changes nothing after too many tries.
UPDATE login_owners SET tries = CASE WHEN tried_at <= @since THEN 1 ELSE tries + 1 END,
  tried_at = CASE WHEN tried_at <= @since THEN @now ELSE tried_at END
WHERE name = @name AND (tried_at <= @since OR tries < @most)

-- Query: accept code
-- Changes nothing if this code or a newer one was accepted before.
UPDATE login_owners SET last_code = @code, tries = 0 WHERE name = @name AND last_code < @code
