package everystore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// No test leaves a goroutine behind. The one that waits for the shared server
// of package pgtest belongs to the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/test/pgtest.(*Cluster).start.func1"))
}

// A backend makes data of one kind of store.
type backend struct {
	name string
	// virtual: everything happens in a synctest bubble.
	virtual bool
	// tellsAtOnce: once its handle is closed, an executor that did not leave
	// counts as gone; elsewhere its lease has to run out, because the process
	// of the test lives on.
	tellsAtOnce bool
	// keeps: handles stay open, and the lives of a trial take turns on two of
	// them: each costs connections, and each of those a process of the server.
	keeps bool
	// trials is how many trials of one shape are under way at a time. Most of
	// their time they wait.
	trials int
	// unloads: every wait ends the goroutines of its run at once.
	unloads bool
	// fresh returns a function that makes empty data; each may be opened often.
	fresh func(t *testing.T) func() place
}

// An opener opens a further handle on the same data.
type opener func() (store.Store, error)

// A place has data of one store.
type place struct {
	open opener
	// lapse moves the last beats of all executors back by their leases, which is what the
	// clock of the server would come to; nil: the leases have to be waited for.
	lapse func() error
}

// Power failures are not tried here, so no commit waits for the disk; what is
// written survives the end of a process all the same.
var backends = []backend{
	{name: "memory", virtual: true, trials: 1, fresh: func(*testing.T) func() place {
		return func() place {
			data := memory.Open()
			return place{open: func() (store.Store, error) { return data.Handle(), nil }}
		}
	}},
	{name: "sqlite", tellsAtOnce: true, trials: 4, fresh: func(t *testing.T) func() place {
		dir := t.TempDir()
		n := 0
		return func() place {
			n++
			path := filepath.Join(dir, fmt.Sprintf("%d.db", n))
			return place{open: func() (store.Store, error) {
				return sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off})
			}}
		}
	}},
	{name: "postgres", keeps: true, trials: 6, fresh: func(t *testing.T) func() place {
		dsn := pgtest.With(pgtest.DSN(t), "synchronous_commit", "off")
		db, err := sql.Open("postgres", dsn)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		n := 0
		return func() place {
			n++
			o := postgres.Options{Schema: fmt.Sprintf("data_%d", n), Writers: 2}
			return place{
				open: func() (store.Store, error) { return postgres.OpenOptions(dsn, o) },
				lapse: func() error {
					_, err := db.Exec("UPDATE " + o.Schema + ".durable_executors SET beat_at = beat_at - lease")
					return err
				},
			}
		}
	}},
}

// data is a store that outlives its processes, and the view of one who looks at
// it from outside.
type data struct {
	place
	outside store.Store
	kept    [2]store.Store
	beaten  map[string]store.Store // by executor: the kept handle on which it beat
	runs    int                    // how many roots were started on it
}

// handle returns a handle for the nth life of a trial, and what is to be called
// when it is over.
func (d *data) handle(t require.TestingT, b backend, n int) (st store.Store, release func()) {
	if !b.keeps {
		st, err := d.open()
		require.NoError(t, err)
		return st, func() { require.NoError(t, st.Close()) }
	}
	i := n % len(d.kept)
	if d.kept[i] == nil {
		var err error
		d.kept[i], err = d.open()
		require.NoError(t, err)
	}
	return d.kept[i], func() {}
}

func (d *data) close(t require.TestingT) {
	for _, st := range append(d.kept[:], d.outside) {
		if st != nil {
			require.NoError(t, st.Close())
		}
	}
}

// A pool gives out data to one trial at a time. What a trial leaves behind is
// ended runs, which are nobody's business any more, so that the next one need
// not wait for tables to be made.
type pool struct {
	mu    sync.Mutex
	fresh func() place
	free  []*data
	all   []*data
}

func newPool(t *testing.T, b backend) *pool { return &pool{fresh: b.fresh(t)} }

func (p *pool) get(t require.TestingT) *data {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		d := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return d
	}
	d := &data{place: p.fresh()}
	p.all = append(p.all, d)
	p.mu.Unlock()
	st, err := d.open()
	require.NoError(t, err)
	d.outside = st
	return d
}

func (p *pool) put(d *data) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, d)
}

func (p *pool) close(t require.TestingT) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.all {
		d.close(t)
	}
}

// onEach runs a test on fresh data of every backend.
func onEach(t *testing.T, test func(t *testing.T, b backend, d *data)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			b.run(t, func(t *testing.T) {
				p := newPool(t, b)
				defer p.close(t)
				test(t, b, p.get(t))
			})
		})
	}
}

// run runs a test in the time of the backend.
func (b backend) run(t *testing.T, test func(t *testing.T)) {
	if b.virtual {
		synctest.Test(t, test)
		return
	}
	test(t)
}

// longLease makes beats so rare that a test in which one is needed does not end
// in its time: a wake-up that was lost is then seen. Whoever is to be killed has
// a short lease where it has to be waited for.
const longLease = 5 * time.Minute

// patience bounds everything that a test waits for, on the busiest machine.
const patience = 60 * time.Second

// gone waits until no executor counts as live.
func (d *data) gone(t require.TestingT, b backend) {
	for began := time.Now(); ; {
		if d.lapse != nil {
			require.NoError(t, d.lapse())
		}
		list, err := d.outside.Executors(context.Background())
		require.NoError(t, err)
		live := ""
		for _, x := range list {
			if x.Live {
				live = x.ID
			}
		}
		if live == "" {
			return
		}
		require.False(t, b.tellsAtOnce, "executor %s counts as live, and its handle is closed", live)
		require.Less(t, time.Since(began), patience, "executor %s outlives its lease", live)
		if d.lapse == nil && time.Since(began) < durable.MinLease {
			time.Sleep(durable.MinLease - time.Since(began))
		} else {
			time.Sleep(durable.MinLease / 25)
		}
	}
}

// bury removes the executors that were killed, so that the trials to come need
// not look at them: each through the handle that has its lock, which would be held,
// and looked at with every beat, as long as that handle is open.
func (d *data) bury(t require.TestingT) {
	list, err := d.outside.Executors(context.Background())
	require.NoError(t, err)
	for _, x := range list {
		st, ok := d.beaten[x.ID]
		if !ok {
			st = d.outside
		}
		x.Leaving = true
		_, err := st.Beat(context.Background(), x)
		require.NoError(t, err)
	}
	clear(d.beaten)
}
