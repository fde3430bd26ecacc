-- What cannot be claimed must cost a claim and a beat nothing, however much of
-- it there is: runs that are delayed or asleep, runs of workflows that are not
-- served, runs that are paused. So every condition is a column or the condition
-- of an index, and none is left to be tried row by row.
--
-- What waits for nothing, in the order of claiming.
DROP INDEX durable_runs_pending_idx;
CREATE INDEX durable_runs_pending_idx ON durable_runs (workflow, version, queue, priority DESC, created_at, no)
  WHERE status = 'pending' AND wake_at = 0 AND NOT paused;
DROP INDEX durable_runs_interrupted_idx;
CREATE INDEX durable_runs_interrupted_idx ON durable_runs (workflow, version, queue, priority DESC, created_at, no)
  WHERE status = 'interrupted' AND code IN ('', 'not_registered') AND NOT paused;
-- What waits for its time, in lanes: the first of each lane says when it has come.
CREATE INDEX durable_runs_lane_idx ON durable_runs (status, workflow, version, queue, owner, priority, wake_at, no)
  WHERE wake_at <> 0 AND NOT paused;
DROP INDEX durable_runs_wake_idx;
CREATE INDEX durable_runs_wake_idx ON durable_runs (owner, wake_at) WHERE wake_at <> 0 AND owner <> '';
-- What has mail: for whoever may claim it, and for its owner.
DROP INDEX durable_runs_mail_idx;
CREATE INDEX durable_runs_mail_idx ON durable_runs (status, workflow, version, paused, queue, owner, no) WHERE mail;
CREATE INDEX durable_runs_news_idx ON durable_runs (owner, no) WHERE mail AND owner <> '';
