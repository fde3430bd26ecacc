package requests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func TestAProgramStartsSignalsAndReadsTheResultBySQL(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options(ship))
		c := p.program(t)
		c.exec(`CREATE TABLE orders (id text, item text)`)
		tx, err := c.db.Begin()
		require.NoError(t, err)
		for _, statement := range []string{
			`INSERT INTO orders (id, item) VALUES ('order-42', 'lamp')`,
			`INSERT INTO durable_requests (kind, workflow, run_id, input, attributes, headers) VALUES ('start', 'ship', 'order-42', '{"item":"lamp","n":2}', '{"customer":"ann"}', '{"from":"shop"}')`,
			`INSERT INTO durable_requests (kind, run_id, name, input) VALUES ('signal', 'order-42', 'word', '"now"')`,
		} {
			_, err := tx.Exec(statement)
			require.NoError(t, err)
		}
		require.NoError(t, tx.Commit())
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'order-42' AND status = 'waiting'`)
		c.exec(`INSERT INTO durable_requests (kind, run_id, name, signal_id, input) VALUES ('signal', 'order-42', 'word', 'once', '"please"')`)
		c.exec(`INSERT INTO durable_requests (kind, run_id, name, signal_id, input) VALUES ('signal', 'order-42', 'word', 'once', '"please"')`)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'order-42' AND status = 'completed'`)
		var output string
		require.NoError(t, c.db.QueryRow(`SELECT payload FROM durable_history WHERE run = 'order-42' AND type = 'workflow_completed'`).Scan(&output))
		require.Contains(t, output, `"lamp now please"`)
		c.until(`SELECT CASE count(*) WHEN 4 THEN 1 ELSE 0 END FROM durable_requests WHERE done_at IS NOT NULL AND error IS NULL AND run_id = 'order-42'`)
		h, err := p.store(t).Load(t.Context(), "order-42", store.Cursor{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"customer": "ann"}, h.Run.Attributes)
		require.Len(t, h.Inbox, 2, "the same signal id counts once")
	})
}

func TestARequestThatIsRolledBackIsNone(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options(ship))
		c := p.program(t)
		tx, err := c.db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'never', '{}')`)
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'after', '{}')`)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'after' AND status = 'completed'`)
		require.Zero(t, c.int(`SELECT count(*) FROM durable_runs WHERE id = 'never'`))
	})
}

func TestACancelBySQLEndsARunThatWaitsAndOneThatIsDelayed(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options(ship))
		c := p.program(t)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'waits', '{"n":1}')`)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input, wake_at) VALUES ('start', 'ship', 'delayed', '{"n":1}', ?)`, time.Now().Add(time.Hour).UnixMicro())
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'waits' AND status = 'waiting'`)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'delayed' AND status = 'pending'`)
		for _, id := range []string{"waits", "delayed"} {
			c.exec(`INSERT INTO durable_requests (kind, run_id, reason) VALUES ('cancel', ?, 'out of stock')`, id)
			c.until(`SELECT count(*) FROM durable_runs WHERE id = ? AND status = 'cancelled' AND reason LIKE '%out of stock%'`, id)
		}
	})
}

func TestWhatAStartBySQLSaysOfItsQueueIsKept(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options(ship))
		c := p.program(t)
		at := time.Now().Add(time.Hour).UnixMicro()
		c.exec(`INSERT INTO durable_requests (kind, workflow, input, queue, partition, dedup, priority, wake_at) VALUES ('start', 'ship', '{}', 'mail', 'acme', 'today', 7, ?)`, at)
		run, code, text := c.answer(`dedup = 'today'`)
		require.Empty(t, code, text)
		require.True(t, strings.HasPrefix(run, "ship-"), run)
		h, err := p.store(t).Load(t.Context(), run, store.Cursor{NoEvents: true})
		require.NoError(t, err)
		require.Equal(t, []any{"mail", "acme", "today", int32(7), store.Time(at)}, []any{h.Run.Queue, h.Run.Partition, h.Run.Dedup, h.Run.Priority, h.Run.WakeAt})
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, queue, dedup) VALUES ('start', 'ship', 'second', 'mail', 'today')`)
		_, code, text = c.answer(`run_id = 'second'`)
		require.Equal(t, store.RequestConflict, code)
		require.Contains(t, text, run, "it names the run that has the key")
	})
}

func TestARequestThatCannotBeCarriedOutSaysWhyAndHoldsUpNone(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options(ship))
		c := p.program(t)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'there', '{"item":"a"}')`)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'there' AND status = 'completed'`)
		for name, r := range map[string]struct{ columns, values, code, says string }{
			"no JSON":            {"kind, workflow, reason, input", `'start', 'ship', 'no JSON', '{"item":'`, store.RequestInvalid, "order"},
			"another type":       {"kind, workflow, reason, input", `'start', 'ship', 'another type', '{"item":7}'`, store.RequestInvalid, "order"},
			"an unknown field":   {"kind, workflow, reason, input", `'start', 'ship', 'an unknown field', '{"itme":"x"}'`, store.RequestInvalid, "itme"},
			"another input":      {"kind, workflow, reason, run_id, input", `'start', 'ship', 'another input', 'there', '{"item":"b"}'`, store.RequestConflict, "there"},
			"a control":          {"kind, workflow, reason, run_id", `'start', 'ship', 'a control', 'x` + "\x01" + `y'`, store.RequestInvalid, "control character"},
			"priority":           {"kind, workflow, reason, priority", `'start', 'ship', 'priority', 5000`, store.RequestInvalid, "5000"},
			"partition alone":    {"kind, workflow, reason, partition", `'start', 'ship', 'partition alone', 'acme'`, store.RequestInvalid, "queue"},
			"attributes":         {"kind, workflow, reason, attributes", `'start', 'ship', 'attributes', '{"a":1}'`, store.RequestInvalid, "attributes"},
			"a null":             {"kind, workflow, reason, attributes", `'start', 'ship', 'a null', '{"a":null}'`, store.RequestInvalid, "null"},
			"headers":            {"kind, workflow, reason, headers", `'start', 'ship', 'headers', '[]'`, store.RequestInvalid, "headers"},
			"nobody":             {"kind, run_id, name, reason, input", `'signal', 'nobody', 'word', 'nobody', '1'`, store.RequestNotFound, "nobody"},
			"ended":              {"kind, run_id, name, reason, input", `'signal', 'there', 'word', 'ended', '1'`, store.RequestEnded, "completed"},
			"signal is no JSON":  {"kind, run_id, name, reason, input", `'signal', 'there', 'word', 'signal is no JSON', 'hello'`, store.RequestInvalid, "no JSON"},
			"cancel of an ended": {"kind, run_id, reason", `'cancel', 'there', 'cancel of an ended'`, store.RequestEnded, "completed"},
		} {
			c.exec(`INSERT INTO durable_requests (` + r.columns + `) VALUES (` + r.values + `)`)
			c.exec(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', ?)`, "after "+name)
			_, code, text := c.answer(`reason = ?`, name)
			require.Equal(t, r.code, code, "%s: %s", name, text)
			require.Contains(t, text, r.says, name)
			c.until(`SELECT count(*) FROM durable_runs WHERE id = ? AND status = 'completed'`, "after "+name)
		}
		for _, bad := range []string{
			`INSERT INTO durable_requests (kind) VALUES ('start')`, `INSERT INTO durable_requests (kind, run_id) VALUES ('signal', 'there')`,
			`INSERT INTO durable_requests (kind, workflow) VALUES ('stop', 'ship')`, `INSERT INTO durable_requests (kind) VALUES ('cancel')`,
		} {
			_, err := c.db.Exec(bad)
			require.Error(t, err, "refused when it is inserted: %s", bad)
		}
	})
}

// The same start asked for twice is one run, as with Start.
func TestAStartIsIdempotentByItsRunID(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		eng := p.engine(t, options(ship))
		_, err := ship.Start(durable.NewContext(t.Context(), eng), "again", order{Item: "lamp", N: 1})
		require.NoError(t, err)
		c := p.program(t)
		for range 2 {
			c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'again', '{"n":1, "item":"lamp"}')`)
		}
		c.until(`SELECT count(*) / 2 FROM durable_requests WHERE done_at IS NOT NULL AND error IS NULL`)
	})
}

func TestAStartThatFindsItsRunIsNotCountedAsOne(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		var said lines
		o := options(ship)
		o.Logger = slog.New(slog.NewTextHandler(&said, nil))
		p.engine(t, o)
		c := p.program(t)
		for range 3 {
			c.exec(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', 'r')`)
			c.until(`SELECT count(*) FROM durable_runs WHERE id = 'r'`)
		}
		c.exec(`INSERT INTO durable_requests (kind, workflow) VALUES ('start', 'ship')`)
		require.Eventually(t, func() bool { return said.count("run started") >= 2 }, 30*time.Second, 2*time.Millisecond)
		require.Equal(t, 1, said.count(`run started" run=r `))
	})
}

// Who may insert may choose a number, such as one that is below all others.
func TestARequestWithANumberBelowAllOthersIsAnsweredAndHoldsUpNone(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options(ship))
		c := p.program(t)
		as := ""
		if p.kind == "postgres" {
			as = "OVERRIDING SYSTEM VALUE"
		}
		c.exec(`INSERT INTO durable_requests (no, kind, workflow, run_id) ` + as + ` VALUES (-5, 'start', 'ship', 'r')`)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', 'r')`)
		c.until(`SELECT count(*) / 2 FROM durable_requests WHERE done_at IS NOT NULL AND code IS NULL`)
	})
}

// SQLite takes any bytes for text. JSON would replace those that are none.
func TestTextThatIsNoUTF8IsRefused(t *testing.T) {
	p := place{"sqlite", filepath.Join(t.TempDir(), "app.db")}
	p.engine(t, options(ship))
	c := p.program(t)
	for _, column := range []string{"input", "attributes", "headers"} {
		c.exec(`INSERT INTO durable_requests (kind, workflow, reason, ` + column + `) VALUES ('start', 'ship', '` + column + `', CAST(x'7b226974656d223a22ff227d' AS TEXT))`)
		_, code, text := c.answer(`reason = ?`, column)
		require.Equal(t, store.RequestInvalid, code)
		require.Contains(t, text, column+" is not valid UTF-8")
		c.exec(`INSERT INTO durable_requests (kind, workflow, reason, `+column+`) VALUES ('start', 'ship', ?, ?)`, "half "+column, `{"item":"\ud83d"}`)
		_, code, text = c.answer(`reason = ?`, "half "+column)
		require.Equal(t, store.RequestInvalid, code)
		require.Contains(t, text, "half of a character")
	}
}

// Each of two engines answers, and together they answer each request once.
func TestTwoEnginesAnswerAThousandRequests(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		c := p.program(t)
		p.store(t) // makes the tables
		const runs = 500
		tx, err := c.db.Begin()
		require.NoError(t, err)
		for i := range runs {
			_, err := tx.Exec(p.text(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', ?, '{"n":1}')`), fmt.Sprintf("r%d", i))
			require.NoError(t, err)
		}
		for i := range runs {
			_, err := tx.Exec(p.text(`INSERT INTO durable_requests (kind, run_id, name, input) VALUES ('signal', ?, 'word', '"go"')`), fmt.Sprintf("r%d", i))
			require.NoError(t, err)
		}
		require.NoError(t, tx.Commit())
		began := time.Now()
		p.engine(t, options(ship))
		p.engine(t, options(ship))
		require.Eventually(t, func() bool { return c.int(`SELECT count(*) FROM durable_requests WHERE done_at IS NULL`) == 0 }, time.Minute, 2*time.Millisecond)
		t.Logf("1,000 requests answered after %v", time.Since(began))
		require.Eventually(t, func() bool {
			return c.int(`SELECT count(*) FROM durable_runs WHERE status = 'completed'`) == runs
		}, time.Minute, 5*time.Millisecond)
		require.Zero(t, c.int(`SELECT count(*) FROM durable_requests WHERE error IS NOT NULL`))
		require.Equal(t, runs, c.int(`SELECT count(*) FROM durable_inbox`), "each signal arrived once")
		require.Equal(t, runs, c.int(`SELECT count(*) FROM durable_runs`))
	})
}

// An engine hears of a request long before its next heartbeat.
func TestARequestIsAnsweredAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		o := options(ship)
		o.Lease = 10 * time.Minute
		p.engine(t, o)
		c := p.program(t)
		var took []time.Duration
		for i := range 20 {
			id := fmt.Sprint("r", i)
			began := time.Now()
			c.exec(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', ?)`, id)
			c.until(`SELECT count(*) FROM durable_runs WHERE id = ? AND status = 'completed'`, id)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("from the insert to the completed run: %v (median), %v (longest)", took[len(took)/2], took[len(took)-1])
		require.Less(t, took[len(took)-1], 10*time.Second)
	})
}

// A start is for the engine that has the code, and signals and cancels are for any. One
// that only starts and looks, without workflows, answers none.
func TestAnEngineWithoutWorkflowsAnswersNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options())
		other := durable.Define("other", func(context.Context, json.RawMessage) (int, error) { return 0, nil })
		c := p.program(t)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'r', '{"item":"x"}')`)
		p.engine(t, options(other))
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'other', 'o', '{"item":"x"}')`)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'o' AND status = 'completed'`)
		require.Zero(t, c.int(`SELECT count(*) FROM durable_requests WHERE run_id = 'r' AND done_at IS NOT NULL`), "left to those who have its code")
		p.engine(t, options(ship))
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'r' AND status = 'completed'`)
	})
}

// A start of a workflow that nobody has, such as one that is misspelt, is a run that
// everybody can see to be stuck.
func TestAStartOfAWorkflowThatNobodyHasIsARunThatIsStuck(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.engine(t, options(ship))
		c := p.program(t)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input, created_at) VALUES ('start', 'shp', 'typo', '{"item":"x"}', 1)`)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'typo' AND status = 'pending'`)
	})
}

func TestAnswersAreDeletedAfterATime(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.store(t)
		c := p.program(t)
		insert := `INSERT INTO durable_requests (kind, workflow, run_id, created_at, done_at) VALUES ('start', 'ship', ?, 1, ?)`
		c.exec(insert, "old", time.Now().Add(-8*24*time.Hour).UnixMicro())
		c.exec(insert, "young", time.Now().Add(-6*24*time.Hour).UnixMicro())
		o := options(ship)
		o.Retention.Requests = -1
		kept := p.engine(t, o)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id) VALUES ('start', 'ship', 'r')`)
		c.until(`SELECT count(*) FROM durable_requests WHERE run_id = 'r' AND done_at IS NOT NULL`)
		require.Equal(t, 3, c.int(`SELECT count(*) FROM durable_requests`), "for ever, if that is said")
		require.NoError(t, kept.Close())
		p.engine(t, options(ship))
		c.until(`SELECT count(*) FROM durable_requests WHERE run_id LIKE '%o%'`)
		require.Equal(t, 1, c.int(`SELECT count(*) FROM durable_requests WHERE run_id = 'young'`), "a week, unless something else is said")
	})
}

// Where a store is not told of requests, an engine looks for them every fifth of its lease, as the guide says.
func TestRequestsAreFoundSoonWhereTheServerDoesNotTellOfThem(t *testing.T) {
	p := place{"postgres", pgtest.DSN(t)}
	st, err := postgres.OpenOptions(p.dsn, postgres.Options{Pooled: true}) // a pooler carries no LISTEN
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	eng, err := durable.Open(t.Context(), st, options(ship))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	_, err = eng.Recover(t.Context())
	require.NoError(t, err)
	c := p.program(t)
	began := time.Now()
	for i := range 3 {
		id := fmt.Sprint("r", i)
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', ?, '{"item":"lamp"}')`, id)
		c.answer(`run_id = ?`, id)
	}
	require.Less(t, time.Since(began), 2*5*time.Second, "two of them wait for a whole pause each, of a second and not of a lease")
}
