-- Statements on the inbox. place is (run number << 28) | seq.

-- name: message_exists (own)
SELECT 1 FROM durable_inbox WHERE run_no = ?1 AND kind = ?2 AND id = ?3

-- name: message_count (own)
-- Assigns the message its number; the archive does not have it yet (S13). ?2 says that it requests
-- a cancel (S15).
UPDATE durable_runs SET inbox = inbox + 1, archived_seq = min(archived_seq, 1), cancel_asked = max(cancel_asked, ?2),
  wake_at = iif(?2 AND status = 'pending', 0, wake_at), updated_at = max(updated_at, ?3) WHERE no = ?1

-- name: message_insert (own)
-- After message_count: run_no << 28 | inbox is the place.
INSERT INTO durable_inbox (place, run_no, kind, name, id, at, data, payload)
SELECT no << 28 | inbox, no, ?2, ?3, ?4, ?5, ?6, ?7 FROM durable_runs WHERE no = ?1

-- name: messages_of (own)
SELECT place & 268435455 AS seq, kind, name, id, at, data, payload FROM durable_inbox WHERE place > ?1 AND place < ?2 ORDER BY place

-- name: messages_delete (own)
DELETE FROM durable_inbox WHERE place > ?1 AND place < ?2
