package proof_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func init() { operations["clerk"] = clerk }

const (
	clerkWait = 30 * time.Millisecond // of its debounced starts
	clerkMost = 20 * time.Second
	overtaken = "overtaken"
	gate      = "gate" // the file that its first debounced run waits for
)

// clerkRules are the queues of the clerk. The limits of the desk replace earlier ones.
var (
	clerkRules = []durable.Queue{
		{Name: "desk", Max: 2, MaxPerPartition: 1},
		{Name: "rate", Rate: 2, Per: 300 * time.Millisecond},
	}
	earlierDesk = store.Queue{Name: "desk", Max: 9, MaxPerPartition: 8, Rate: 7, Per: time.Minute}
)

func openClerk(st fullStore, o orders) (context.Context, *durable.Engine, error) {
	eng, err := durable.Open(context.Background(), &watched{fullStore: st, o: o}, durable.Options{
		Workflows: []durable.Definition{mailing(o)}, Logger: quiet(), Lease: o.Lease, Grace: -1, Queues: clerkRules,
	})
	if err != nil {
		return nil, nil, err
	}
	return durable.NewContext(context.Background(), eng), eng, nil
}

// clerk does, one after the other, all that a queue can meet. It dies at one of the writes that
// come of that, or at none.
func clerk(st store.Store, o orders) error {
	f := &fatal{
		fullStore: st.(fullStore), at: int64(o.New), after: o.Hold == "after",
		which: func(write any) bool {
			names := namesOf(write)
			if o.New == 0 {
				for _, name := range names {
					record(o, fact{What: "writing", Step: name})
				}
			}
			return slices.Contains(names, o.Write)
		},
		dying: func() { record(o, fact{What: "killing", Step: o.Write}) },
	}
	ctx, eng, err := openClerk(slow{f}, o)
	if err != nil {
		return err
	}
	if _, err := eng.Recover(ctx); err != nil {
		return err
	}
	record(o, fact{What: "declared"})
	c := &clerking{ctx: ctx, o: o, st: st, eng: eng}
	for _, act := range []func() error{c.pause, c.fill, c.cancel, c.resume, c.bounceAgain, c.dedupAgain, c.interrupt} {
		if err := act(); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

type clerking struct {
	ctx     context.Context
	o       orders
	st      store.Store
	eng     *durable.Engine
	bounced string // the run of the first debounced starts
	another string // that of the third
}

func (c *clerking) post(id string, m letter, options ...durable.StartOption) (string, error) {
	m.Queue = "desk"
	return post(c.ctx, c.o, id, m, fact{}, options...)
}

// bounce makes the n-th debounced start.
func (c *clerking) bounce(n int) (id string, err error) {
	m := letter{Key: "b", N: n}
	if n < 3 {
		m.Until = gate
	}
	return c.post(durable.AutoID, m, durable.Debounce(m.Key, clerkWait, clerkMost))
}

// ended waits until a run has ended, however it has.
func (c *clerking) ended(id string) error {
	h, err := durable.Ref[letter, int]("mail").Handle(c.ctx, id)
	if err != nil {
		return err
	}
	_, _ = h.Wait(c.ctx)
	return nil
}

func (c *clerking) pause() error {
	record(c.o, fact{What: "pausing", Queue: "desk"})
	if err := operate.On(c.eng).PauseQueue(c.ctx, "desk", "to see"); err != nil {
		return err
	}
	record(c.o, fact{What: "paused", Queue: "desk"})
	return nil
}

func (c *clerking) resume() error {
	record(c.o, fact{What: "resuming", Queue: "desk"})
	if err := operate.On(c.eng).ResumeQueue(c.ctx, "desk"); err != nil {
		return err
	}
	record(c.o, fact{What: "resumed", Queue: "desk"})
	for _, id := range []string{"plain", "once1"} {
		if err := c.ended(id); err != nil {
			return err
		}
	}
	return nil
}

// fill puts runs in line, at the desk, where nobody is let in yet, and three to which only the rate
// applies.
func (c *clerking) fill() (err error) {
	if _, err := c.post("plain", letter{Part: "x"}); err != nil {
		return err
	}
	if _, err := c.post("once1", letter{Part: "x", Key: "k"}, durable.Dedup("k")); err != nil {
		return err
	}
	if _, err := c.post("again", letter{Part: "x", Key: "k"}, durable.Dedup("k")); err != nil {
		return err
	}
	for n := 1; n <= 2; n++ {
		if c.bounced, err = c.bounce(n); err != nil {
			return err
		}
	}
	ids := []string{"bulk1", "bulk2", "bulk3"}
	since := time.Now().UnixMicro()
	if b, err := mailing(c.o).StartAll(c.ctx, bulk(ids), durable.OnQueue("rate")); err != nil || b.Started != len(ids) {
		return fmt.Errorf("%d of %d runs were started: %w", b.Started, len(ids), err)
	}
	for _, id := range ids {
		record(c.o, fact{What: "started", Run: id, Queue: "rate", Since: since})
	}
	for _, id := range ids[:2] {
		if err := c.ended(id); err != nil {
			return err
		}
	}
	return nil
}

func bulk(ids []string) iter.Seq2[string, letter] {
	return func(yield func(string, letter) bool) {
		for _, id := range ids {
			if !yield(id, letter{Queue: "rate"}) {
				return
			}
		}
	}
}

// cancel ends runs in line, which need no place for that. One is ended by who cancels it, the other
// by an executor that is faster.
func (c *clerking) cancel() error {
	for _, id := range []string{"unwanted", overtaken} {
		if _, err := c.post(id, letter{Part: "x"}); err != nil {
			return err
		}
		record(c.o, fact{What: "cancelling", Run: id})
		if err := c.eng.Cancel(c.ctx, id, "nobody wants it"); err != nil {
			return err
		}
		record(c.o, fact{What: "cancelled", Run: id})
		if err := c.ended(id); err != nil {
			return err
		}
	}
	return nil
}

// slow is a store that does not end the run overtaken before somebody has claimed it.
type slow struct{ fullStore }

func (s slow) Commit(ctx context.Context, batch []store.Change) []error {
	for i := range batch {
		if c := &batch[i]; c.RunID == overtaken && nameOfChange(c) == writeCancelled {
			if err := begun(ctx, s, overtaken); err != nil {
				return slices.Repeat([]error{err}, len(batch))
			}
		}
	}
	return s.fullStore.Commit(ctx, batch)
}

// begun waits until a run was claimed.
func begun(ctx context.Context, st store.Store, id string) error {
	for {
		h, err := st.Load(ctx, id, store.Cursor{NoEvents: true})
		if err != nil || h.Run.Status != store.Pending {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// bounceAgain makes a debounced start while the run of those before is executed.
func (c *clerking) bounceAgain() error {
	if err := begun(c.ctx, c.st, c.bounced); err != nil {
		return err
	}
	var err error
	if c.another, err = c.bounce(3); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.o.Dir, gate), nil, 0o600); err != nil {
		return err
	}
	return c.ended(c.bounced)
}

// dedupAgain starts a run with a key that another one has had.
func (c *clerking) dedupAgain() error {
	id, err := c.post("once2", letter{Part: "x", Key: "k"}, durable.Dedup("k"))
	if err != nil || id != "once2" {
		return fmt.Errorf("the key is had by %q: %w", id, err)
	}
	return c.ended(id)
}

// interrupt closes the engine while it executes a run, and no other: that gives its place up, of
// which the ledger says nothing.
func (c *clerking) interrupt() error {
	if err := c.ended(c.another); err != nil {
		return err
	}
	if _, err := c.post("long", letter{Part: "y", Stuck: os.Getpid()}); err != nil {
		return err
	}
	if err := begun(c.ctx, c.st, "long"); err != nil {
		return err
	}
	if err := c.ended("bulk3"); err != nil {
		return err
	}
	return c.eng.Close()
}

// The kinds of writes that a clerk makes of queues. It dies before and after each, but after a
// claim only.
const (
	writeDefinition  = "definition"
	writePause       = "pause"
	writeResume      = "resume"
	writeStart       = "start"
	writeBulk        = "bulk start"
	writeDedup       = "deduplicated start"
	writeDebounce    = "debounced start"
	writeReplacement = "replaced input"
	writeKeyTaken    = "key taken"
	writeCancel      = "cancel"
	writeEnd         = "end"
	writeCancelled   = "end of what was cancelled"
	writeInterrupted = "interruption"
	claimPlace       = "claim by places"
	claimRate        = "claim by the rate"
	claimCancelled   = "claim of what was cancelled"
)

var clerkWrites = []string{
	writeDefinition, writePause, writeResume, writeStart, writeBulk, writeDedup, writeDebounce, writeReplacement, writeKeyTaken,
	writeCancel, writeEnd, writeCancelled, writeInterrupted, claimPlace, claimRate, claimCancelled,
}

// namesOf says of what kinds a write is.
func namesOf(write any) (names []string) {
	switch w := write.(type) {
	case store.Queue:
		switch {
		case w.Paused:
			return []string{writePause}
		case w.Revision > 1:
			return []string{writeResume}
		}
		return []string{writeDefinition}
	case []store.Run:
		for i := range w {
			names = append(names, nameOfClaim(&w[i]))
		}
	case []store.Change:
		created := 0
		for i := range w {
			names = append(names, nameOfChange(&w[i]))
			if w[i].Create != nil {
				created++
			}
		}
		if created > 1 {
			names = append(names, writeBulk)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func nameOfClaim(r *store.Run) string {
	switch {
	case r.CancelAsked:
		return claimCancelled
	case r.Queue == "rate":
		return claimRate
	}
	return claimPlace
}

func nameOfChange(c *store.Change) string {
	switch {
	case c.Create != nil && len(c.Hold) > 0:
		return writeDebounce
	case c.Create != nil && c.Create.Dedup != "":
		return writeDedup
	case c.Create != nil:
		return writeStart
	case len(c.Start) > 0:
		return writeKeyTaken
	case len(c.Send) > 0:
		return writeCancel
	}
	for i := range c.Events {
		switch c.Events[i].Type {
		case store.InputReplaced:
			return writeReplacement
		case store.WorkflowCompleted:
			return writeEnd
		case store.WorkflowCancelled:
			return writeCancelled
		case store.WorkflowInterrupted:
			return writeInterrupted
		}
	}
	return ""
}

// death is one death of a clerk, and what comes after it.
type death struct {
	clerking
	c    *child
	done bool // the clerk has lived to the end: it had fewer writes
	// recorded are the steps whose outcome the clerk has left.
	recorded map[string]bool
}

func (d *death) String() string {
	if d.o.Write == "" {
		return "without a death"
	}
	return fmt.Sprintf("%s %s %d", d.o.Hold, d.o.Write, d.o.New)
}

// begin starts a clerk that dies at the n-th write of a kind.
func (d *death) begin(t *testing.T, backend, dsn string) {
	t.Helper()
	d.o.Role, d.o.Backend, d.o.Dir, d.o.DSN, d.o.Lease = "clerk", backend, t.TempDir(), dsn, 5*time.Second
	o := d.o
	st, err := openStore(o.Backend, o.DSN)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	require.NoError(t, st.(store.Queues).PutQueue(t.Context(), earlierDesk))
	d.st, d.c, d.recorded = st, start(t, o), map[string]bool{}
}

// isDead waits for the death, and looks at what it has left.
func (d *death) isDead(t *testing.T) {
	t.Helper()
	for d.c.out.Scan() {
		require.Equal(t, "done", d.c.out.Text(), d)
		d.done = true
	}
	if err := d.c.Wait(); !d.done {
		require.ErrorContains(t, err, "killed", d)
	} else {
		record(d.o, fact{What: "killing", PID: d.c.Process.Pid}) // what it has interrupted is executed again
	}
	d.checkDesk(t)
	page, err := d.st.List(t.Context(), store.Filter{Limit: 100})
	require.NoError(t, err)
	for _, r := range page.Runs {
		h, err := d.st.Load(t.Context(), r.ID, store.Cursor{All: true})
		require.NoError(t, err)
		for e, err := range h.Events {
			require.NoError(t, err)
			if e.Type == store.StepCompleted {
				d.recorded[r.ID+"/"+e.Key] = true
			}
		}
	}
}

// checkDesk fails unless the definition of the desk is the one before or the one after its put, and
// the pause is what was acknowledged last, or what was being written.
func (d *death) checkDesk(t *testing.T) {
	t.Helper()
	q, err := d.st.(store.Queues).Queue(t.Context(), "desk")
	require.NoError(t, err)
	declared := store.Queue{Name: "desk", Max: clerkRules[0].Max, MaxPerPartition: clerkRules[0].MaxPerPartition}
	rate, err := d.st.(store.Queues).Queue(t.Context(), "rate")
	require.NoError(t, err)
	stored, paused := false, []bool{false}
	for _, f := range d.facts(t) {
		switch f.What {
		case "declared":
			stored = true
		case "pausing", "resuming":
			paused = append(paused, !paused[0])
		case "paused", "resumed":
			paused = paused[1:]
		}
	}
	limits := store.Queue{Name: q.Name, Max: q.Max, MaxPerPartition: q.MaxPerPartition, Rate: q.Rate, Per: q.Per}
	if stored {
		require.Equal(t, declared, limits, d)
		require.Equal(t, []any{clerkRules[1].Rate, clerkRules[1].Per}, []any{rate.Rate, rate.Per}, d)
	}
	require.Contains(t, []store.Queue{earlierDesk, declared}, limits, d)
	require.Contains(t, paused, q.Paused, "%s: the desk is paused", d)
	require.Equal(t, map[bool]string{true: "to see"}[q.Paused], q.Reason, d)
}

func (d *death) facts(t *testing.T) []fact {
	t.Helper()
	if _, err := os.Stat(filepath.Join(d.o.Dir, "ledger")); err != nil {
		return nil
	}
	return ledger(t, d.o)
}

// goesOn lets another process take over.
func (d *death) goesOn(t *testing.T) {
	t.Helper()
	var err error
	require.NoError(t, os.WriteFile(filepath.Join(d.o.Dir, gate), nil, 0o600))
	d.ctx, d.eng, err = openClerk(d.st.(fullStore), d.o)
	require.NoError(t, err, d)
	t.Cleanup(func() { _ = d.eng.Close() })
	_, err = d.eng.Recover(d.ctx)
	require.NoError(t, err, d)
	// It works, though it lets nobody in at the desk if that is paused.
	_, err = mailing(d.o).Enqueue(d.ctx, "probe", letter{})
	require.NoError(t, err, d)
	_, err = d.post("late1", letter{Part: "z", Key: "k"}, durable.Dedup("k"))
	require.NoError(t, err, d)
	require.NoError(t, d.ended("probe"), d)
	q, err := d.st.(store.Queues).Queue(t.Context(), "desk")
	require.NoError(t, err)
	if q.Paused {
		record(d.o, fact{What: "resuming", Queue: "desk"})
		require.NoError(t, operate.On(d.eng).ResumeQueue(d.ctx, "desk"), d)
	}
}

// check waits until all has ended, and holds it against the rules.
func (d *death) check(t *testing.T) {
	t.Helper()
	waitUntilEnded(t, d.st)
	// No place and no key is left behind.
	id, err := d.post("late2", letter{Part: "x", Key: "k"}, durable.Dedup("k"))
	require.NoError(t, err, d)
	require.Equal(t, "late2", id, "%s: the key is free", d)
	_, err = d.bounce(4)
	require.NoError(t, err, d)
	waitUntilEnded(t, d.st)
	require.NoError(t, d.eng.Close(), d)
	states, err := d.st.(store.Queues).Queues(t.Context(), "desk", "rate")
	require.NoError(t, err)
	for _, q := range states {
		require.Zero(t, q.Placed+q.InLine+q.Delayed, "%s: %s", d, q.Name)
	}

	b := readBook(t, d.st, d.o, clerkRules)
	b.wait, b.most, b.logf = clerkWait, clerkMost, func(string, ...any) {}
	b.checkNothingLost(t)
	b.checkNothingTwice(t)
	b.checkPlaces(t)
	b.checkRates(t)
	b.checkPauses(t)
	b.checkDedup(t)
	b.checkDebounce(t)
	for _, f := range b.facts {
		switch {
		case f.What == "enter" && f.PID == os.Getpid():
			require.False(t, d.recorded[f.Run+"/"+f.Step], "%s: step %s of %s is executed again, and its outcome was recorded", d, f.Step, f.Run)
		case f.What == "cancelled":
			require.Equal(t, store.Cancelled, b.runs[f.Run].Status, d)
		}
	}
}

// shelf has empty stores. A database of PostgreSQL is made once and emptied for the next use, which
// is much faster.
type shelf struct {
	backend string
	used    []string
}

func (s *shelf) store(t *testing.T, i int) (dsn string) {
	t.Helper()
	if s.backend == "sqlite" {
		return filepath.Join(t.TempDir(), "runs.db")
	}
	db, err := sql.Open("postgres", s.used[i])
	require.NoError(t, err)
	defer db.Close()
	var empty sql.NullString
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT string_agg('DELETE FROM ' || quote_ident(tablename), '; ') FROM pg_tables
		WHERE schemaname = current_schema() AND tablename LIKE 'durable\_%' AND tablename <> 'durable_schema'`).Scan(&empty))
	if empty.Valid {
		_, err = db.ExecContext(t.Context(), empty.String)
		require.NoError(t, err)
	}
	return s.used[i]
}

func TestASIGKILLAtAnyWriteOfAQueueLeavesEveryRuleInForce(t *testing.T) {
	for _, backend := range []string{"sqlite", "postgres"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			const atOnce = 8 // while one waits, others work
			stores := &shelf{backend: backend}
			for backend == "postgres" && len(stores.used) < atOnce {
				stores.used = append(stores.used, pgtest.DSN(t))
			}
			whole := &death{}
			survive(t, stores, []*death{whole})
			require.True(t, whole.done)
			writes := map[string]int{}
			for _, f := range whole.facts(t) {
				if f.What == "writing" {
					writes[f.Step]++
				}
			}
			var all []*death
			for _, write := range clerkWrites {
				require.Positive(t, writes[write], "the clerk makes a write of the kind %q", write)
				for n := range writes[write] {
					for _, hold := range []string{"before", "after"} {
						if hold == "after" || !strings.HasPrefix(write, "claim") {
							all = append(all, &death{clerking: clerking{o: orders{Write: write, New: n + 1, Hold: hold}}})
						}
					}
				}
			}
			for some := range slices.Chunk(all, atOnce) {
				t.Run("deaths", func(t *testing.T) { survive(t, stores, some) })
			}
			t.Logf("%d deaths: %v", len(all), writes)
		})
	}
}

// survive lets clerks die at once, and others take over from them.
func survive(t *testing.T, stores *shelf, deaths []*death) {
	t.Helper()
	for i, d := range deaths {
		d.begin(t, stores.backend, stores.store(t, i))
	}
	for _, d := range deaths {
		d.isDead(t)
	}
	for _, d := range deaths {
		d.goesOn(t)
	}
	for _, d := range deaths {
		t.Run(d.String(), d.check)
		// How many claims and commits there are, and how many runs each is about, differs.
		require.True(t, !d.done || d.o.New != 1, d)
	}
}
