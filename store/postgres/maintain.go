package postgres

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Maintainer = (*Store)(nil)

// Maintain implements store.Maintainer: it removes events left by an append that
// was in progress while its run was deleted, lets the server reuse the space of
// deleted rows, and updates the statistics (VACUUM, ANALYZE), as autovacuum does
// in its own time. The role must own the tables. Returning space to the disk takes
// VACUUM FULL, which locks a table throughout; that is left to the operator.
func (s *Store) Maintain(ctx context.Context) error {
	if err := s.opts.writes(); err != nil {
		return described("maintain", err)
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	s.count("sweep_events")
	// database/sql may run it a second time; by then there is nothing left to do.
	if _, err := s.long.ExecContext(ctx, s.sql.Text("sweep_events")); err != nil {
		return described("remove events of deleted runs", err)
	}
	care := "ANALYZE "
	if s.genuine {
		// Skip tables that another session is already vacuuming.
		care = "VACUUM (ANALYZE, SKIP_LOCKED) "
	}
	for _, table := range []string{"runs", "events", "inbox", "branches", "attributes", "holds", "executors", "queues", "queue_begun", "schedules", "requests"} {
		if _, err := s.long.ExecContext(ctx, care+in(s.schema, "durable_"+table)); err != nil {
			return described(fmt.Sprintf("look after durable_%s", table), err)
		}
	}
	return nil
}
