package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// No test leaves a goroutine behind. The one that waits for the shared server
// of package pgtest belongs to the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/test/pgtest.(*Cluster).start.func1"))
}

// inWorld runs a test in a bubble with a virtual clock and data of its own.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

// rareBeats is a lease for tests in which many hours pass: a third of it is between two
// beats, which would cost more than all else.
const rareBeats = time.Hour

// world is data that survives, and the processes that come and go on it: each
// open is one process, each crash the end of the one opened last. It must be
// made in a synctest bubble.
type world struct {
	t     *testing.T
	data  *memory.Store // a handle of the test's own: what an operator sees
	disk  *disk         // of the process opened last
	eng   *durable.Engine
	log   *logBook // of all processes
	lease time.Duration
	left  sync.WaitGroup // crashed engines on their way out
	deaf  bool           // the processes opened from now on hear no notice but the first
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, data: memory.Open(), log: new(logBook), lease: durable.DefaultLease}
	t.Cleanup(w.left.Wait)
	return w
}

// open starts a process. Its engine becomes w.eng and is closed with the test.
// Without a Grace or a Logger in the options, there is no grace and w.log
// listens.
func (w *world) open(t *testing.T, o durable.Options) *durable.Engine {
	t.Helper()
	d := &disk{Store: w.data.Handle(), deaf: w.deaf}
	if o.Grace == 0 {
		o.Grace = -1
	}
	if o.Logger == nil {
		o.Logger = slog.New(w.log)
	}
	if o.Lease != 0 {
		w.lease = o.Lease
	}
	eng, err := durable.Open(context.Background(), d, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	synctest.Wait() // for the look at everything with which it begins
	w.eng, w.disk = eng, d
	return eng
}

// boot is open and Recover, as a program does it.
func (w *world) boot(t *testing.T, o durable.Options) durable.Report {
	t.Helper()
	eng := w.open(t, o)
	rep, err := eng.Recover(context.Background())
	require.NoError(t, err)
	return rep
}

// serve is open for a process with these workflows and nothing else to say.
func (w *world) serve(t *testing.T, defs ...durable.Definition) *durable.Engine {
	t.Helper()
	return w.open(t, durable.Options{Workflows: defs})
}

// ctx carries the engine of the process opened last.
func (w *world) ctx() context.Context {
	return durable.NewContext(context.Background(), w.eng)
}

// crash ends the process opened last as kill -9 does: from this moment on it
// writes nothing, begins nothing, and its lease is left to run out.
func (w *world) crash() {
	w.disk.cut()
	eng := w.eng
	w.left.Go(func() { _ = eng.Close() })
	synctest.Wait()
}

// expire lets the leases of crashed processes run out.
func (w *world) expire() { pass(w.lease + time.Second) }

// reboot is what happens around kill -9: a crash, the end of the lease, a new
// process that recovers.
func (w *world) reboot(t *testing.T, o durable.Options) durable.Report {
	t.Helper()
	w.crash()
	w.expire()
	return w.boot(t, o)
}

// pass lets time pass, and everything happen that then happens.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// row reads a run past every engine.
func (w *world) row(id string) store.Run {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{NoEvents: true})
	require.NoError(w.t, err)
	return h.Run
}

// events reads the current lineage of a run past every engine, and checks what
// holds for every log: no gap, and sums that chain.
func (w *world) events(id string) []store.Event {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{})
	require.NoError(w.t, err)
	var all []store.Event
	var before store.Event
	for e, err := range h.Events {
		require.NoError(w.t, err)
		require.Equal(w.t, before.Seq+1, e.Seq, "the log of %s has a gap", id)
		require.Equal(w.t, store.Seal(id, before.Sum, &e), e.Sum, "event %d of %s", e.Seq, id)
		require.GreaterOrEqual(w.t, e.At, before.At, "time goes backwards in %s", id)
		all, before = append(all, e), e
	}
	return all
}

// story tells a run's events in short: "step_completed charge", "attempt_failed
// charge 2"; the number of an attempt stands behind failed ones.
func (w *world) story(id string) []string {
	w.t.Helper()
	var lines []string
	for _, e := range w.events(id) {
		line := string(e.Type)
		if e.Key != "" {
			line += " " + e.Key
		}
		if e.Type == store.AttemptFailed || e.Type == store.StepFailed {
			line += fmt.Sprintf(" %d", e.Attempt)
		}
		lines = append(lines, line)
	}
	return lines
}

// eventually waits, in virtual time, until a run has this status.
func (w *world) eventually(id string, s store.Status) store.Run {
	w.t.Helper()
	for range 1000 {
		synctest.Wait()
		if r := w.row(id); r.Status == s {
			return r
		}
		time.Sleep(500 * time.Millisecond)
	}
	require.Failf(w.t, "status", "run %s is %s, not %s; log:\n%s", id, w.row(id).Status, s, w.log)
	return store.Run{}
}

// A disk is one process's way to the data. It can be cut, and tampered with.
type disk struct {
	*memory.Store

	mu   sync.Mutex
	dead bool
	// onCommit, onCall replace what the store does, if set; forward does it.
	onCommit  func(batch []store.Change, forward func() []error) []error
	onCall    func(call string, forward func() error) error
	handsOver bool // see handing
	careless  bool // it hands over what had messages or more events, too
	deaf      bool // see world.deaf
}

// cut makes every call from now on return store.ErrClosed.
func (d *disk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

// isDead reports whether cut was called.
func (d *disk) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// tamper sets onCommit, and tamperCalls onCall ("load", "list", "claim", "beat",
// "executors", "delete", "queue", "queues", "put queue", "schedules", "put schedule",
// "due schedules"); nil takes it back.
func (d *disk) tamper(f func(batch []store.Change, forward func() []error) []error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onCommit = f
}

func (d *disk) tamperCalls(f func(call string, forward func() error) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onCall = f
}

func (d *disk) Commit(ctx context.Context, batch []store.Change) []error {
	d.mu.Lock()
	dead, on := d.dead, d.onCommit
	d.mu.Unlock()
	if dead {
		return all(batch, store.ErrClosed)
	}
	if on != nil {
		return on(batch, func() []error { return d.Store.Commit(ctx, batch) })
	}
	return d.Store.Commit(ctx, batch)
}

// cutBefore cuts the disk off when an event of this type is about to be written.
func (d *disk) cutBefore(typ store.Type) {
	is := func(e store.Event) bool { return e.Type == typ }
	d.tamper(func(batch []store.Change, forward func() []error) []error {
		if slices.ContainsFunc(batch, func(ch store.Change) bool { return slices.ContainsFunc(ch.Events, is) }) {
			d.cut()
			return all(batch, store.ErrClosed)
		}
		return forward()
	})
}

// all is the answer to a batch in which every change meets the same error.
func all(batch []store.Change, err error) []error {
	errs := make([]error, len(batch))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (d *disk) call(name string, forward func() error) error {
	d.mu.Lock()
	dead, on := d.dead, d.onCall
	d.mu.Unlock()
	switch {
	case dead:
		return store.ErrClosed
	case on != nil:
		return on(name, forward)
	}
	return forward()
}

func (d *disk) Load(ctx context.Context, id string, c store.Cursor) (h *store.History, err error) {
	err = d.call("load", func() error { h, err = d.Store.Load(ctx, id, c); return err })
	return h, err
}

// LoadAll loads one by one, so that what a test does to a load is done to these, too.
func (d *disk) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	return store.LoadAll(ctx, struct{ store.Store }{d}, loads)
}

func (d *disk) List(ctx context.Context, f store.Filter) (p store.Page, err error) {
	err = d.call("list", func() error { p, err = d.Store.List(ctx, f); return err })
	return p, err
}

func (d *disk) Claim(ctx context.Context, c store.Claim) (rs []store.Run, err error) {
	err = d.call("claim", func() error { rs, err = d.Store.Claim(ctx, c); d.handOver(rs, c.Created); return err })
	return rs, err
}

// handing says whether a claim hands over what was created.
func (d *disk) handing(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handsOver = on
}

// handOver does what stores may do that read the history of a run as they claim it.
func (d *disk) handOver(rs []store.Run, created func(string, store.Event)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range rs {
		h, err := d.Store.Load(context.Background(), rs[i].ID, store.Cursor{All: true})
		if !d.handsOver || err != nil || !d.careless && (rs[i].Last.Seq != 2 || h.Run.Inbox > 0) {
			continue
		}
		for e := range h.Events {
			created(rs[i].ID, e)
			break
		}
	}
}

func (d *disk) Beat(ctx context.Context, e store.Executor) (p store.Pulse, err error) {
	err = d.call("beat", func() error { p, err = d.Store.Beat(ctx, e); return err })
	return p, err
}

func (d *disk) Executors(ctx context.Context) (es []store.Executor, err error) {
	err = d.call("executors", func() error { es, err = d.Store.Executors(ctx); return err })
	return es, err
}

func (d *disk) PutSchedule(ctx context.Context, sc store.Schedule) (got store.Schedule, err error) {
	err = d.call("put schedule", func() error { got, err = d.Store.PutSchedule(ctx, sc); return err })
	return got, err
}

func (d *disk) Notify(ctx context.Context, fn func(store.Notice)) error {
	heard := false
	return d.Store.Notify(ctx, func(n store.Notice) {
		if !d.deaf || !heard {
			heard = true
			fn(n)
		}
	})
}

func (d *disk) Delete(ctx context.Context, which store.Deletion) (n int, err error) {
	err = d.call("delete", func() error { n, err = d.Store.Delete(ctx, which); return err })
	return n, err
}

func (d *disk) PutQueue(ctx context.Context, q store.Queue) error {
	return d.call("put queue", func() error { return d.Store.PutQueue(ctx, q) })
}

func (d *disk) Queue(ctx context.Context, name string) (q store.Queue, err error) {
	err = d.call("queue", func() error { q, err = d.Store.Queue(ctx, name); return err })
	return q, err
}

func (d *disk) Queues(ctx context.Context, names ...string) (qs []store.QueueState, err error) {
	err = d.call("queues", func() error { qs, err = d.Store.Queues(ctx, names...); return err })
	return qs, err
}

func (d *disk) Schedules(ctx context.Context, names ...string) (list []store.Schedule, err error) {
	err = d.call("schedules", func() error { list, err = d.Store.Schedules(ctx, names...); return err })
	return list, err
}

func (d *disk) DueSchedules(ctx context.Context, limit int) (due store.DueSchedules, err error) {
	err = d.call("due schedules", func() error { due, err = d.Store.DueSchedules(ctx, limit); return err })
	return due, err
}

// logBook is a slog.Handler that keeps what it is told, without times.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logBook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logBook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logBook) WithGroup(string) slog.Handler            { return l }

func (l *logBook) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, b.String())
	return nil
}

// String returns all lines.
func (l *logBook) String() string { return strings.Join(l.find(""), "\n") }

// find returns the lines that contain part.
func (l *logBook) find(part string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

func (l *logBook) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
}
