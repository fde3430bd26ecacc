//go:build cgo

package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// A page is read from the index that suits its filter, whether or not SQLite has statistics:
// none of these reads the runs one after the other.
func TestAPageIsReadFromTheIndexOfItsFilter(t *testing.T) {
	s, err := OpenOptions(filepath.Join(t.TempDir(), "plan.db"), Options{Synchronous: Off})
	require.NoError(t, err)
	defer s.Close()
	var changes []store.Change
	for i := range 2000 {
		row := &store.Run{
			ID: fmt.Sprintf("r%04d", i), Workflow: "w", Status: store.Completed, Epoch: 1, CreatedAt: store.Time(i + 1), EndedAt: store.Time(i + 2),
			Attributes: map[string]string{"region": "south"},
		}
		switch i {
		case 7:
			row.Status, row.Owner, row.EndedAt = store.Running, "gone", 0
		case 8:
			row.Status, row.Paused, row.EndedAt = store.Waiting, true, 0
		case 9:
			row.Status, row.Code = store.Failed, "quarantined"
		}
		e := store.Event{Seq: 1, Type: store.WorkflowCreated}
		e.Sum = store.Seal(row.ID, 0, &e)
		changes = append(changes, store.Change{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}})
	}
	for _, err := range s.Commit(t.Context(), changes) {
		require.NoError(t, err)
	}
	for _, statistics := range []bool{false, true} {
		if statistics {
			_, err := s.readers.ExecContext(t.Context(), "PRAGMA query_only = 0; ANALYZE; PRAGMA query_only = 1")
			require.NoError(t, err)
		}
		for index, f := range map[string]store.Filter{
			"durable_runs_paused":             {Paused: true, Statuses: []store.Status{store.Pending, store.Waiting, store.Interrupted}},
			"durable_runs_code":               {Codes: []string{"quarantined"}, Statuses: []store.Status{store.Failed}},
			"durable_runs_queue":              {Queues: []string{"q"}},
			"durable_runs_ended":              {EndedTo: 2, Statuses: []store.Status{store.Completed, store.Failed}},
			"durable_runs_owned":              {Orphaned: true},
			"durable_runs_owned_ended":        {Owners: []string{"gone"}},
			"durable_runs_mail":               {Mail: true},
			"durable_runs_status":             {Statuses: []store.Status{store.Failed, store.Waiting}},
			"durable_attributes_value":        {Attributes: map[string]string{"region": "north"}},
			"durable_runs_created":            {Workflows: []string{"w"}},
			"durable_runs_parent":             {Parents: []string{"p"}},
			"sqlite_autoindex_durable_runs_1": {IDPrefix: "r00"},
		} {
			f.WithLast = true
			l, err := s.q.dialect.List(f, []string{"gone"})
			require.NoError(t, err)
			var steps []struct {
				ID, Parent, NotUsed int
				Detail              string
			}
			rows, err := s.readers.QueryxContext(t.Context(), "EXPLAIN QUERY PLAN "+l.SQL, l.Args...)
			require.NoError(t, err)
			for rows.Next() {
				var st struct {
					ID, Parent, NotUsed int
					Detail              string
				}
				require.NoError(t, rows.Scan(&st.ID, &st.Parent, &st.NotUsed, &st.Detail))
				steps = append(steps, st)
			}
			require.NoError(t, rows.Err())
			var plan strings.Builder
			for _, st := range steps {
				fmt.Fprintln(&plan, st.Detail)
				if strings.HasPrefix(st.Detail, "SCAN durable_runs") {
					require.Contains(t, st.Detail, "USING", "the whole table, in no order, with statistics %v", statistics)
				}
			}
			require.Regexp(t, index+`\b[^_]`, plan.String(), "statistics %v: %s", statistics, l.SQL)
		}
	}
}
