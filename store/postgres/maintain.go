package postgres

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Maintainer = (*Store)(nil)

// Maintain implements store.Maintainer: it removes events that were left by an
// append under way while their run was deleted, and lets the server reuse the
// space of deleted rows and take new statistics (VACUUM, ANALYZE), as its
// autovacuum does in its own time. It needs the tables to be the user's own. To
// give space back to the disk the server needs VACUUM FULL, which locks a table
// for as long as it takes, and is left to the operator.
func (s *Store) Maintain(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	s.count("sweep_events")
	// database/sql may run it a second time: then there is nothing left to do.
	if _, err := s.long.ExecContext(ctx, s.sql.Text("sweep_events")); err != nil {
		return described("remove events of deleted runs", err)
	}
	care := "ANALYZE "
	if s.genuine {
		// What somebody else looks after already is passed over.
		care = "VACUUM (ANALYZE, SKIP_LOCKED) "
	}
	for _, table := range []string{"runs", "events", "inbox", "branches", "attributes", "holds", "executors"} {
		if _, err := s.long.ExecContext(ctx, care+in(s.schema, "durable_"+table)); err != nil {
			return described(fmt.Sprintf("look after durable_%s", table), err)
		}
	}
	return nil
}
