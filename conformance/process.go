package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var processCases = []Case{
	{Name: "what a process was told before it was killed is there", Clauses: "S4, S35", hook: hookPlace, run: processKilled},
	{Name: "the run of a process that was killed goes to another", Clauses: "S4, S20", hook: hookPlace, run: processTakenOver},
}

// The environment of a process that is to be killed.
const (
	envPlace  = "HOLDFAST_CONFORMANCE_PLACE"
	envPrefix = "HOLDFAST_CONFORMANCE_PREFIX"
)

// Main lets the suite kill processes that use the store under test. Call it first
// in TestMain of the package whose test calls Run, and set Data.Place:
//
//	func TestMain(m *testing.M) {
//		conformance.Main(func(place string) (store.Store, error) { return mystore.Open(place) })
//		os.Exit(m.Run())
//	}
//
// In a process that the suite has started, which is the same test binary with an
// environment variable set, Main opens the store at that place, writes until it is
// killed, and does not return. In any other it returns at once.
func Main(open func(place string) (store.Store, error)) {
	place, prefix := os.Getenv(envPlace), os.Getenv(envPrefix)
	if place == "" {
		return
	}
	go func() { // the suite holds the other end, until it ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(mark, "began")
	s, err := open(place)
	if err == nil {
		err = (&victim{s: s, prefix: prefix}).write()
	}
	fmt.Println(mark, "failed", err)
	os.Exit(1)
}

// mark begins the lines in which a victim reports what was acknowledged.
const mark = "conformance:"

// victim writes for as long as it may.
type victim struct {
	s      store.Store
	prefix string
}

func (v *victim) write() error {
	// A T for building Changes only; nothing is reported to it.
	t := &T{}
	ctx := context.Background()
	executor := v.prefix + "victim"
	if _, err := v.s.Beat(ctx, store.Executor{ID: executor, Lease: shortLease, Serves: serves}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s%d", v.prefix, n)
		c, w := t.create(id, func(r *store.Run) { r.Owner, r.Status = executor, store.Running })
		peer, _ := t.create(id+" peer", func(r *store.Run) { r.Parent = id })
		c.Start, c.Hold = []store.Change{peer}, []string{id}
		if err := v.commit(c); err != nil {
			return err
		}
		if err := v.put(n); err != nil {
			return err
		}
		v.acknowledge(w, 0, 0)
		for i := int32(1); i <= 4; i++ {
			c := w.append(step(fmt.Sprint(i)))
			if err := v.commit(c); err != nil {
				return err
			}
			w.done(c)
			c = w.append(step("with all"), step("that a change may have"))
			c.Row, c.Send = &store.RowPatch{Priority: &i}, []store.Message{signal(id, fmt.Sprint(i)), signal(id+" peer", fmt.Sprint(i))}
			if err := v.commit(c); err != nil {
				return err
			}
			w.done(c)
			v.acknowledge(w, i, int64(i))
		}
	}
}

func (v *victim) commit(c store.Change) error { return one(context.Background(), v.s, c) }

// put puts a queue whose Max is its revision, n+1, if the store has queues.
func (v *victim) put(n int) error {
	q := queues(v.s)
	if q == nil {
		return nil
	}
	return q.PutQueue(context.Background(), store.Queue{Name: v.prefix + "queue", Revision: int64(n), Max: n + 1, Rate: n + 1, Per: time.Hour})
}

func (v *victim) acknowledge(w *writer, priority int32, inbox int64) {
	fmt.Println(mark, "acknowledged", w.seq, priority, inbox, w.id)
}

// acknowledged is the last answer that a victim got about one of its runs.
type acknowledged struct {
	seq      int64
	priority int32
	inbox    int64
}

// killed starts a process on the data, on which no handle is open, kills it after it
// has reported n acknowledgements, and returns what was acknowledged before it died.
func (t *T) killed(d *Data, prefix string, after int) map[string]acknowledged {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err, "the test binary, which is to be started again")
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), envPlace+"="+d.Place, envPrefix+"="+prefix)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	alarm := time.AfterFunc(t.patience(), func() { _ = cmd.Process.Kill() })
	defer alarm.Stop()
	told := make(map[string]acknowledged)
	began, lines, failed := false, 0, ""
	for scan := bufio.NewScanner(out); scan.Scan(); { // to its end: what is in the pipe was written before the kill
		line, ok := strings.CutPrefix(scan.Text(), mark+" ")
		if !ok {
			continue
		}
		var a acknowledged
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "began":
			began = true
		case "failed":
			failed = rest
		case "acknowledged":
			var id string
			parts := strings.SplitN(rest, " ", 4)
			_, err := fmt.Sscan(strings.Join(parts[:min(3, len(parts))], " "), &a.seq, &a.priority, &a.inbox)
			if err != nil || len(parts) != 4 {
				continue // cut short by the kill
			}
			id = parts[3]
			told[id] = a
			if lines++; lines == after {
				_ = cmd.Process.Kill() // it may have ended
			}
		}
	}
	err = cmd.Wait()
	require.True(t, began, "the process that was to be killed did nothing (%v): call conformance.Main first in TestMain", err)
	require.Empty(t, failed, "the process that was to be killed failed by itself")
	require.GreaterOrEqual(t, lines, after, "the process wrote too little in %v (%v)", t.patience(), err)
	return told
}

func processKilled(t *T) {
	d := t.fresh()
	for round, after := range []int{1, 2, 7, 23, 40} {
		prefix := fmt.Sprintf("k%d-", round)
		told := t.killed(d, prefix, after)
		s, err := d.Open()
		require.NoError(t, err, "opening the data of a process that was killed")
		for id, a := range told {
			// What the process had sent when it was killed may still be on its way, if the data are a server's.
			var h *store.History
			var got store.Run
			t.eventually(fmt.Sprintf("run %q goes on as if nothing had happened", id), func() bool {
				h, err = s.Load(t.Context(), id, store.Cursor{All: true})
				require.NoError(t, err, "S4: run %q was acknowledged before the process was killed", id)
				got = plainRun(h.Run)
				w := t.at(got)
				err := t.commit(s, w.append(step("after")))
				if !errors.Is(err, store.ErrFenced) {
					require.NoError(t, err, "run %q", id)
				}
				return err == nil
			})
			require.GreaterOrEqual(t, got.Last.Seq, a.seq, "S4: events of %q that were acknowledged before the process was killed", id)
			require.GreaterOrEqual(t, got.Priority, a.priority, "S4: the row of %q", id)
			require.GreaterOrEqual(t, len(h.Inbox), int(a.inbox), "S4: messages of %q", id)
			peer := t.row(s, id+" peer")
			require.GreaterOrEqual(t, peer.Inbox, a.inbox, "S4: messages of %q", id+" peer")
			require.Equal(t, got.Inbox, peer.Inbox, "S1: of one change, the messages to two runs")
			require.ErrorIs(t, t.tryHold(s, id), store.ErrOccupied, "S4: the exclusive key of %q", id)
		}
		if queues(s) != nil {
			q := t.queue(s, prefix+"queue")
			require.GreaterOrEqual(t, q.Revision, int64(len(told)), "S35: a queue that was put before the process was killed")
			require.Equal(t, []int64{q.Revision, q.Revision}, []int64{int64(q.Max), int64(q.Rate)}, "S35: whole")
		}
		require.NoError(t, s.Close())
	}
}

func processTakenOver(t *T) {
	d := t.fresh()
	told := t.killed(d, "v-", 3)
	s := t.handle(d)
	if d.Advance != nil {
		d.Advance(2 * shortLease)
	}
	t.eventually("S20: an executor whose process was killed is dead when its lease has run out", func() bool { return !t.live(s, "v-victim") })
	t.beat(s, "heir")
	require.Equal(t, []string{"v-victim"}, t.beat(s, "heir").Gone, "S20: a beat of another tells who is gone")
	for id := range told {
		runs := t.claim(s, "heir", id)
		require.Len(t, runs, 1, "S20: the run of a process that was killed is free")
		require.Equal(t, store.Resuming, runs[0].Status)
		w := t.at(runs[0])
		w.must(s, w.end(store.Completed))
	}
}
