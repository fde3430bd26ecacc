package requests_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/store"
)

// childEnv tells the test binary to be an engine on a place until it is killed.
const childEnv = "HOLDFAST_REQUESTS_CHILD"

func TestMain(m *testing.M) {
	if env := os.Getenv(childEnv); env != "" {
		fmt.Println(child(env))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func child(env string) error {
	kind, dsn, _ := strings.Cut(env, " ")
	st, err := place{kind, dsn}.open()
	if err != nil {
		return err
	}
	eng, err := durable.Open(context.Background(), st, options(ship))
	if err != nil {
		return err
	}
	if _, err := eng.Recover(context.Background()); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// demand inserts an order, its start and its two signals, in one transaction.
func (c *program) demand(i int) {
	c.t.Helper()
	tx, err := c.db.Begin()
	require.NoError(c.t, err)
	defer tx.Rollback()
	id := fmt.Sprintf("r%d", i)
	_, err = tx.Exec(c.p.text(`INSERT INTO orders (id) VALUES (?)`), id)
	require.NoError(c.t, err)
	_, err = tx.Exec(c.p.text(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', ?, '{"item":"x","n":2}')`), id)
	require.NoError(c.t, err)
	for _, word := range []string{`"one"`, `"two"`} {
		_, err = tx.Exec(c.p.text(`INSERT INTO durable_requests (kind, run_id, name, input) VALUES ('signal', ?, 'word', ?)`), id, word)
		require.NoError(c.t, err)
	}
	require.NoError(c.t, tx.Commit())
}

// check waits until all orders are shipped and makes sure that nothing was lost or
// happened twice.
func (c *program) check(st store.Store, orders int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		return c.int(`SELECT count(*) FROM durable_runs WHERE status = 'completed'`) == orders
	}, time.Minute, 5*time.Millisecond)
	require.Equal(c.t, orders, c.int(`SELECT count(*) FROM orders`))
	require.Equal(c.t, orders, c.int(`SELECT count(*) FROM durable_runs`), "no start twice")
	require.Zero(c.t, c.int(`SELECT count(*) FROM durable_requests WHERE done_at IS NULL OR error IS NOT NULL`))
	for i := range orders {
		h, err := st.Load(c.t.Context(), fmt.Sprintf("r%d", i), store.Cursor{})
		require.NoError(c.t, err)
		require.Len(c.t, h.Inbox, 2, "no signal twice")
		var last store.Event
		for e, err := range h.Events {
			require.NoError(c.t, err)
			last = e
		}
		require.Contains(c.t, string(last.Payload), `"x one two"`, "in their order")
	}
}

// Engines that are killed at any moment lose no request and answer none twice.
func TestEnginesThatAreKilledLoseAndDoubleNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		st, c := p.store(t), p.program(t)
		c.exec(`CREATE TABLE orders (id text)`)
		exe, err := os.Executable()
		require.NoError(t, err)
		orders := 0
		for range 12 {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), childEnv+"="+p.kind+" "+p.dsn)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			for range 10 {
				c.demand(orders)
				orders++
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "ready\n", line)
			kill := time.After(rand.N(40 * time.Millisecond))
			for killed := false; !killed; {
				select {
				case <-kill:
					killed = true
				default:
					c.demand(orders)
					orders++
				}
			}
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
		}
		t.Logf("%d orders; %d requests were left after the last kill", orders, c.int(`SELECT count(*) FROM durable_requests WHERE done_at IS NULL`))
		p.engine(t, options(ship))
		c.check(st, orders)
	})
}

// The same, with the end of the process at each write of the store, one after the other.
func TestAProcessThatEndsAtAnyWriteLosesAndDoublesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		st, c := p.store(t), p.program(t)
		c.exec(`CREATE TABLE orders (id text)`)
		orders, longest := 0, 0
		brief := options(ship)
		brief.Lease = time.Second // what a life leaves is found soon
		for write := 1; ; write++ {
			require.Less(t, write, 200)
			handle, err := p.open()
			require.NoError(t, err)
			dying := crashstore.New(handle)
			dying.DieAt(write, true)
			for range 3 {
				c.demand(orders)
				orders++
			}
			eng, err := durable.Open(t.Context(), crashstore.Requester{Notifier: crashstore.Notifier{Store: dying}}, brief)
			require.NoError(t, err)
			_, err = eng.Recover(t.Context())
			require.True(t, err == nil || dying.IsDead(), "%v", err)
			ended := false
			require.Eventually(t, func() bool {
				ended = c.int(`SELECT count(*) FROM durable_runs WHERE status = 'completed'`) == orders
				return ended || dying.IsDead()
			}, time.Minute, time.Millisecond)
			longest = max(longest, dying.Writes())
			dying.Die()
			_ = eng.Close() // as much of it as is left
			require.NoError(t, handle.Close())
			if ended {
				break
			}
		}
		t.Logf("%d orders, up to %d writes in one life", orders, longest)
		p.engine(t, options(ship))
		c.check(st, orders)
	})
}
