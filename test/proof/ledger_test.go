package proof_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// fact is a line of the ledger: what the outside world knows of runs and processes. It is
// appended by one write, so that a kill leaves it whole or absent, and the order of the lines
// is the order in which things happened.
type fact struct {
	What  string
	PID   int
	At    int64    // µs, by the clock of the machine
	Since int64    `json:",omitempty"` // when the call began that has returned now
	Run   string   `json:",omitempty"`
	Queue string   `json:",omitempty"`
	Part  string   `json:",omitempty"`
	Step  string   `json:",omitempty"`
	Key   string   `json:",omitempty"`
	N     int      `json:",omitempty"`
	IDs   []string `json:",omitempty"`
	// What a start has asked for, in µs.
	Due      int64 `json:",omitempty"`
	Delay    int64 `json:",omitempty"`
	Priority int   `json:",omitempty"`
}

// record appends a fact of this process to the ledger.
func record(o orders, f fact) {
	if f.At = time.Now().UnixMicro(); f.PID == 0 {
		f.PID = os.Getpid()
	}
	b, err := json.Marshal(&f)
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(filepath.Join(o.Dir, "ledger"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write(append(b, '\n')); err != nil {
		panic(err)
	}
}

// ledger reads all facts.
func ledger(t *testing.T, o orders) (all []fact) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(o.Dir, "ledger"))
	require.NoError(t, err)
	for line := range lines(string(b)) {
		var f fact
		require.NoError(t, json.Unmarshal([]byte(line), &f), line)
		all = append(all, f)
	}
	return all
}

// killRecorded ends a child with SIGKILL. What it does after the fact that says so is the last
// of it.
func killRecorded(t *testing.T, o orders, c *child) {
	t.Helper()
	record(o, fact{What: "killing", PID: c.Process.Pid})
	c.kill(t)
}

// fullStore is what both stores can do that outlive a process, so that one that is wrapped
// can do it too.
type fullStore interface {
	store.Store
	store.Notifier
	store.Meter
	store.Presence
	store.Clocked
	store.TxCommitter
	store.Transactor
	store.Queues
	store.Schedules
	store.Requests
	store.Loader
}

// watched is a store that tells the ledger of its claims: the runs that one has begun were let
// in between the two facts about it, by whatever clock of this machine.
type watched struct {
	fullStore
	o       orders
	claims  atomic.Int64
	slowest atomic.Int64 // beat, in µs
}

func (w *watched) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	n := int(w.claims.Add(1))
	record(w.o, fact{What: "claiming", N: n})
	rows, err := w.fullStore.Claim(ctx, c)
	if err != nil {
		return rows, err // how much it has let in is not known
	}
	var begun []string
	for i := range rows {
		if rows[i].Last.Type == store.WorkflowStarted {
			begun = append(begun, rows[i].ID)
		}
	}
	record(w.o, fact{What: "claimed", N: n, IDs: begun})
	return rows, nil
}

// Beat tells how long the slowest took: the engine knows the store's clock from it, no worse
// than that.
func (w *watched) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	began := time.Now()
	p, err := w.fullStore.Beat(ctx, x)
	if took := time.Since(began).Microseconds(); err == nil && took > w.slowest.Load() {
		w.slowest.Store(took)
		record(w.o, fact{What: "beat", N: int(took)})
	}
	return p, err
}

// fatal is a store whose process dies by SIGKILL just before or just after one of the writes
// that which chooses.
type fatal struct {
	fullStore
	at    int64 // the write, from 1; 0: none
	after bool
	// which is asked about each write: a put is the store.Queue or store.Schedule, a commit its
	// batch, and a claim the runs that it took.
	which func(write any) bool
	dying func() // is called just before; nil: nothing is
	n     atomic.Int64
	over  atomic.Bool // it does not die any more
}

// die ends this process as nothing can prevent.
func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

func (f *fatal) die() {
	if f.dying != nil {
		f.dying()
	}
	die()
}

func (f *fatal) write(what any, do func()) {
	dies := f.which(what) && f.n.Add(1) == f.at && !f.over.Load()
	if dies && !f.after {
		f.die()
	}
	if do(); dies {
		f.die()
	}
}

func (f *fatal) PutSchedule(ctx context.Context, sc store.Schedule) (got store.Schedule, err error) {
	f.write(sc, func() { got, err = f.fullStore.PutSchedule(ctx, sc) })
	return got, err
}

func (f *fatal) PutQueue(ctx context.Context, q store.Queue) (err error) {
	f.write(q, func() { err = f.fullStore.PutQueue(ctx, q) })
	return err
}

func (f *fatal) Commit(ctx context.Context, batch []store.Change) (errs []error) {
	f.write(batch, func() { errs = f.fullStore.Commit(ctx, batch) })
	return errs
}

// Claim is a write if it takes something, which only shows afterwards. What the store is left
// with by a death before it, the write before has left.
func (f *fatal) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	rows, err := f.fullStore.Claim(ctx, c)
	if len(rows) > 0 && f.which(rows) && f.n.Add(1) == f.at {
		f.die()
	}
	return rows, err
}
