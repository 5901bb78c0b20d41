-- Query: claim
UPDATE runs SET lease_owner = @owner, lease_epoch = lease_epoch + 1, lease_expires_at = @expires,
  heartbeat_at = @now, claimed_at = @now, in_flight = 1, crashes = @crashes, reserved_tokens = 0
WHERE id = @id

-- Query: lease ended run
UPDATE runs SET lease_owner = @owner, lease_epoch = lease_epoch + 1, lease_expires_at = @expires, heartbeat_at = @now
WHERE id = @id AND principal = @principal AND NOT EXISTS (SELECT 1 FROM runs other
  WHERE other.thread_id = runs.thread_id AND (other.lease_owner IS NOT NULL OR other.ended_at IS NULL))
RETURNING *

-- Query: environment of queued run
SELECT environment FROM runs
WHERE id = @id AND runnable = 1 AND lease_owner IS NULL AND status = 'working'

-- Query: queue
SELECT count(*) AS waiting, min(updated_at) AS since FROM runs
WHERE environment > '' AND runnable = 1 AND lease_owner IS NULL AND status = 'working'

-- Query: renew
UPDATE runs SET lease_expires_at = @expires, heartbeat_at = @now
WHERE lease_owner = @owner AND id IN (SELECT value FROM json_each(@ids))
