-- Query: revoke link
DELETE FROM run_shares WHERE id = @id
  AND EXISTS (SELECT 1 FROM runs WHERE runs.id = run_id AND principal = @principal)

-- Query: revoke client
DELETE FROM login_rows WHERE principal = @principal
  AND (@id = 'everywhere' OR grant_id = @id OR (id = @id AND model = 'Grant'))

-- Query: find link
SELECT s.*, r.principal FROM run_shares AS s JOIN runs AS r ON r.id = s.run_id
WHERE s.id = @id AND s.expires_at > @now

-- Query: access
-- Without a principal: of all.
SELECT 'link' AS kind, s.id AS id, r.principal, s.run_id, substr(coalesce(r.name, r.task), 1, 200) AS name,
  s.created_at, s.expires_at, s.opened, NULL AS type, NULL AS url, s.credential, CAST(NULL AS INTEGER) AS used_at
FROM run_shares AS s JOIN runs AS r ON r.id = s.run_id
WHERE s.expires_at > @now AND r.principal = coalesce(CAST(@principal AS TEXT), r.principal)
UNION ALL
SELECT 'subscription', n.id, n.principal, n.run_id, substr(coalesce(r.name, r.task), 1, 200),
  n.created_at, n.expires_at, NULL, n.type, n.url, n.credential, NULL
FROM news_subscriptions AS n LEFT JOIN runs AS r ON r.id = n.run_id AND r.principal = n.principal
WHERE n.expires_at > @now AND n.principal = coalesce(CAST(@principal AS TEXT), n.principal)
UNION ALL
SELECT 'client', g.id, g.principal, NULL, g.name, g.created_at, g.expires_at, NULL, g.scopes, g.host, NULL, g.used_at
FROM login_rows AS g
WHERE g.model = 'Grant' AND g.name IS NOT NULL AND g.expires_at > @now
  AND g.principal = coalesce(CAST(@principal AS TEXT), g.principal)
ORDER BY expires_at, id

-- Query: run
SELECT id FROM runs WHERE id = @run AND principal = @principal

-- Query: remove expired
DELETE FROM run_shares WHERE run_id = @run AND expires_at <= @now

-- Query: count links
SELECT count(*) AS count FROM run_shares WHERE run_id = @run

-- Query: count opening
UPDATE run_shares SET opened = opened + 1 WHERE id = @id
