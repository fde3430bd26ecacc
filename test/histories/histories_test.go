package histories_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// What a history has.
const (
	clients    = 8
	runs       = 10
	operations = 1000
)

// Clients compete for runs. Some sleep beyond their lease and go on writing, some are not told
// what became of a write and send it again, or read. There is an order of all that they did in
// which each was told what is true then.
func TestWhatClientsSawOfAStoreIsLinearizable(t *testing.T) {
	histories := 3
	if os.Getenv("DURABLE_SOAK") != "" {
		histories = 100
	}
	for _, backend := range []string{"sqlite", "postgres"} {
		t.Run(backend, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			first, second := two(t, backend)
			var mu sync.Mutex
			var done, pauses, unknown int
			var work sync.WaitGroup
			const atOnce = 3 // the rest of a history is mostly sleep
			for k := range atOnce {
				work.Go(func() {
					for n := k; n < histories && !t.Failed(); n += atOnce {
						h := compete(t, [2]store.Store{first, second}, fmt.Sprint("h", n), rand.New(rand.NewPCG(seed, uint64(n))))
						if h == nil {
							return
						}
						mu.Lock()
						done, pauses, unknown = done+len(h.operations), pauses+h.pauses, unknown+h.unknown
						mu.Unlock()
					}
				})
			}
			work.Wait()
			require.False(t, t.Failed())
			require.NotZero(t, pauses)
			require.NotZero(t, unknown)
			tried.Say(t, "histories", "store=%s histories=%d operations=%d sleeps=%d unknown=%d wrong=0", backend, histories, done, pauses, unknown)
		})
	}
}

// two opens a store twice.
func two(t *testing.T, backend string) (first, second store.Store) {
	path := filepath.Join(t.TempDir(), "runs.db")
	dsn := ""
	if backend == "postgres" {
		dsn = pgtest.DSN(t)
	}
	open := func() (s store.Store) {
		var err error
		if backend == "postgres" {
			s, err = postgres.Open(dsn)
		} else {
			s, err = sqlite.Open(path)
		}
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	return open(), open()
}

// history is what all clients did and saw.
type history struct {
	operations      []porcupine.Operation
	pauses, unknown int
}

// compete makes a history and checks it; nil: it was wrong.
func compete(t *testing.T, stores [2]store.Store, name string, rnd *rand.Rand) *history {
	began := time.Now()
	var names []string
	first := state{epoch: 1, seq: 1}
	for i := range runs {
		id := fmt.Sprintf("%s-r%d", name, i)
		names = append(names, id)
		now := store.TimeOf(time.Now())
		row := &store.Run{ID: id, Workflow: "job", InitialVersion: "v1", Version: "v1", Status: store.Interrupted, Epoch: first.epoch, CreatedAt: now}
		e := store.Event{Seq: 1, Type: store.WorkflowCreated, At: now, Payload: []byte("{}")}
		e.Sum = store.Seal(id, 0, &e)
		if err := stores[0].Commit(t.Context(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}}})[0]; err != nil {
			t.Errorf("create %s: %v", id, err)
			return nil
		}
	}
	var work sync.WaitGroup
	var all []*client
	for i := range clients {
		c := &client{
			n: i, name: fmt.Sprintf("%s-c%d", name, i), s: stores[i%2], rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), began: began, runs: names,
			knows: map[string]belief{}, open: map[string]*pending{}, beats: map[string][]beat{},
		}
		all = append(all, c)
		work.Go(func() {
			for len(c.history) < operations/clients && c.err == nil {
				c.act(t.Context())
			}
			c.leave(t.Context())
		})
	}
	work.Wait()
	h := gather(all)
	for _, c := range all {
		if c.err != nil {
			t.Error(c.err)
			return nil
		}
	}
	m := model(first)
	for _, part := range m.Partition(h.operations) {
		if result := porcupine.CheckOperationsTimeout(m, part, time.Minute); result != porcupine.Ok {
			for _, o := range part {
				t.Logf("client %d, %d to %d: %s", o.ClientId, o.Call, o.Return, m.DescribeOperation(o.Input, o.Output))
			}
			t.Errorf("the history of %s is not linearizable: %s", part[0].Input.(input).run, result)
			return nil
		}
	}
	return h
}

// gather puts what the clients did together. A claim may have found an owner dead unless that
// one had a lease all the time.
func gather(all []*client) *history {
	h := &history{}
	beats := map[string][]beat{}
	for _, c := range all {
		h.operations = append(h.operations, c.history...)
		h.pauses, h.unknown = h.pauses+c.pauses, h.unknown+c.unknown
		for executor, b := range c.beats {
			beats[executor] = b
		}
	}
	for i := range h.operations {
		o := &h.operations[i]
		in := o.Input.(input)
		if in.op != "claim" {
			continue
		}
		in.dead = map[string]bool{}
		for executor, b := range beats {
			if o.Output.(output).unknown || !alive(b, lease, time.Duration(o.Call), time.Duration(o.Return)) {
				in.dead[executor] = true
			}
		}
		o.Input = in
	}
	return h
}
