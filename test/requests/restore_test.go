package requests_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// A backup has the queues, the schedules and the requests, and programs that ask by SQL go
// on as before once it is restored.
func TestWhatIsRestoredTakesRequestsAsBefore(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		o := options(ship)
		o.Queues = []durable.Queue{{Name: "q", Max: 1, Rate: 7, Per: time.Hour}}
		o.Schedules = []durable.Schedule{ship.Schedule("nightly", durable.Cron("0 0 2 * * *"), order{Item: "x"})}
		st, err := p.open()
		require.NoError(t, err)
		eng, err := durable.Open(t.Context(), st, o)
		require.NoError(t, err)
		_, err = eng.Recover(t.Context())
		require.NoError(t, err)
		c := p.program(t)
		if p.kind == "postgres" {
			c.exec(`DROP ROLE IF EXISTS asker; CREATE ROLE asker; GRANT USAGE ON SCHEMA public TO asker;
				GRANT INSERT (kind, run_id, workflow, queue, input) ON durable_requests TO asker; GRANT SELECT (no, done_at, code) ON durable_requests TO asker;
				GRANT SELECT ON durable_history TO asker; GRANT SELECT ON durable_queues TO PUBLIC`)
			t.Cleanup(func() { p.program(t).exec(`DROP OWNED BY asker; DROP ROLE asker`) })
		}
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, queue) VALUES ('start', 'ship', 'before', 'q')`)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'before' AND status = 'completed'`)
		require.NoError(t, operate.On(eng).PauseQueue(t.Context(), "q", "the provider is down"))
		require.NoError(t, operate.On(eng).PauseSchedule(t.Context(), "nightly", "month end"))
		require.NoError(t, eng.Close())
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'open', '{"item":"a"}')`)

		to := filepath.Join(t.TempDir(), "copy.db")
		if p.kind == "postgres" {
			to = "copied"
		}
		require.NoError(t, st.(store.Backuper).Backup(t.Context(), to))
		for range 5 {
			c.exec(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', 'after')`)
		}
		require.NoError(t, st.Close())
		require.NoError(t, c.db.Close())
		var sc store.Migrator
		var closeSchema func() error
		if p.kind == "sqlite" {
			s, err := sqlite.OpenSchema(p.dsn, sqlite.Options{})
			require.NoError(t, err)
			sc, closeSchema = s, s.Close
		} else {
			s, err := postgres.OpenSchema(p.dsn, postgres.Options{})
			require.NoError(t, err)
			sc, closeSchema = s, s.Close
		}
		_, err = sc.Restore(t.Context(), to)
		require.NoError(t, err)
		require.NoError(t, closeSchema())

		c = p.program(t)
		require.Equal(t, 1, c.int(`SELECT count(*) FROM durable_requests WHERE done_at IS NULL AND run_id = 'open'`))
		require.Zero(t, c.int(`SELECT count(*) FROM durable_requests WHERE run_id = 'after'`))
		next := p.engine(t, o)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'open' AND status = 'completed'`)
		queues, err := operate.On(next).Queues(t.Context(), "q")
		require.NoError(t, err)
		require.True(t, queues[0].Paused)
		require.EqualValues(t, 1, queues[0].Begun, "the rate remembers")
		schedules, err := operate.On(next).Schedules(t.Context())
		require.NoError(t, err)
		require.Equal(t, "month end", schedules[0].PausedReason)
		if p.kind == "postgres" {
			c.db.SetMaxOpenConns(1)
			c.exec(`SET ROLE asker`)
		}
		began := time.Now()
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', 'later')`)
		if p.kind == "postgres" {
			require.Zero(t, c.int(`SELECT count(*) FROM durable_history WHERE run = 'nobody'`))
			require.Equal(t, 1, c.int(`SELECT count(*) FROM durable_queues`))
			_, err := c.db.Exec(`SELECT input FROM durable_requests`)
			require.ErrorContains(t, err, "permission denied")
			c.exec(`RESET ROLE`)
		}
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'later' AND status = 'completed'`)
		t.Log(time.Since(began))
		require.Equal(t, 1, c.int(`SELECT count(*) FROM durable_requests WHERE run_id = 'later' AND no > (SELECT max(no) FROM durable_requests WHERE run_id = 'open')`))
	})
}
