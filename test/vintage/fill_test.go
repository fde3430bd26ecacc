package vintage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// shop is the program that left the store behind, and the one that goes on with
// it.
type shop struct {
	fresh  bool         // nothing is there yet: the last step does not finish
	first  atomic.Int64 // how often the first step ran
	second atomic.Int64
}

func (s *shop) workflows() []durable.Definition {
	order := durable.Define("order", func(ctx context.Context, n int) (string, error) {
		a, err := durable.Step(ctx, "reserve", func(context.Context) (int, error) {
			s.first.Add(1)
			return n * 10, nil
		})
		if err != nil {
			return "", err
		}
		b, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Millisecond},
			func(ctx context.Context) (int, error) {
				if s.fresh {
					if durable.Attempt(ctx).Number < 3 {
						return 0, errors.New("the bank is closed")
					}
					if n == 2 {
						<-ctx.Done() // the process ends here
						return 0, ctx.Err()
					}
				}
				s.second.Add(1)
				return a + len(durable.Attempt(ctx).Failures), nil
			})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("order %d: %d", n, b), nil
	})
	approval := durable.Define("approval", func(ctx context.Context, n int) (string, error) {
		if err := durable.Do(ctx, "ask", func(context.Context) error { s.first.Add(1); return nil }); err != nil {
			return "", err
		}
		answer, err := durable.Await[string](ctx, "answer", durable.Prompt("Ship it?"))
		return "answered " + answer, err
	})
	nap := durable.Define("nap", func(ctx context.Context, n int) (string, error) {
		err := durable.Sleep(ctx, time.Duration(n)*time.Millisecond)
		return "rested", err
	})
	broken := durable.Define("broken", func(ctx context.Context, n int) (string, error) {
		return "", durable.Do(ctx, "fail", func(context.Context) error { return errors.New("no such item") })
	})
	return []durable.Definition{order, approval, nap, broken}
}

func (s *shop) engine(t *testing.T, st store.Store) (context.Context, *durable.Engine) {
	t.Helper()
	ctx := context.Background()
	eng, err := durable.Open(ctx, st, durable.Options{
		Capture:   durable.Capture{Off: true}, // where it was filled is nobody's business
		Workflows: s.workflows(), Logger: slog.New(slog.DiscardHandler), Lease: time.Second, Grace: -1, Name: "vintage",
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	return durable.NewContext(ctx, eng), eng
}

// fill leaves in a store what programs leave: runs of an engine that has gone,
// in the middle of their work, and beside them, by hand, one in each status and
// one with an event of every type.
func fill(t *testing.T, st store.Store) {
	t.Helper()
	s := &shop{fresh: true}
	ctx, eng := s.engine(t, st)
	begin := func(id, workflow string, n int, until store.Status) {
		_, err := durable.Ref[int, string](workflow).Start(ctx, id, n)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return status(t, st, id) == until }, 20*time.Second, time.Millisecond, id)
	}
	begin("order-1", "order", 1, store.Completed)
	begin("approval-1", "approval", 1, store.Waiting)
	begin("nap-1", "nap", 700, store.Waiting)
	begin("broken-1", "broken", 1, store.Failed)
	begin("order-2", "order", 2, store.Running)
	require.Eventually(t, func() bool { // in the middle of the third attempt
		h, err := st.Load(ctx, "order-2", store.Cursor{NoEvents: true})
		return err == nil && h.Run.Last.Type == store.AttemptFailed && h.Run.Last.Attempt == 2
	}, 20*time.Second, time.Millisecond)
	byHand(t, st)
	require.NoError(t, eng.Close())
}

func status(t *testing.T, st store.Store, id string) store.Status {
	t.Helper()
	h, err := st.Load(t.Context(), id, store.Cursor{NoEvents: true})
	require.NoError(t, err)
	return h.Run.Status
}

const madeAt = store.Time(1_790_000_000_000_000)

// byHand writes runs of a workflow that nobody serves, through the store.
func byHand(t *testing.T, st store.Store) {
	t.Helper()
	commit := func(c store.Change) {
		require.NoError(t, st.Commit(t.Context(), []store.Change{c})[0], c.RunID)
	}
	_, err := st.Beat(t.Context(), store.Executor{
		ID: "gone", Name: "it crashed", Host: "host", Boot: "boot", PID: 7, Lease: time.Millisecond,
		Serves: []store.Served{{Workflow: "by hand", Versions: []string{"v1", "v2"}}},
	})
	require.NoError(t, err)
	for _, s := range store.Statuses() {
		c, l := create("is-"+string(s), func(r *store.Run) {
			r.Status = s
			if s == store.Running || s == store.Resuming {
				r.Owner = "gone"
			}
			if s.Terminal() {
				r.EndedAt = madeAt + 5
			}
			if s == store.Interrupted {
				r.Code, r.Reason = durable.CodeDefinitionChanged, "it was changed"
			}
		})
		c.Events = append(c.Events, l.next(store.Event{Type: store.StepCompleted, Key: "a", Payload: []byte("\x00\xff")}))
		commit(c)
	}
	c, l := create("everything", func(r *store.Run) {
		r.Status, r.Version, r.InitialVersion = store.Waiting, "v2", "v1"
		r.Parent, r.ParentKey, r.ForkedFrom, r.InputHash = "is-completed", "items[3]/child", "is-failed", [16]byte{1, 0, 255}
		r.Queue, r.Partition, r.Dedup, r.Trace = "mail", "tenant 7", "once", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		r.Code, r.Reason, r.Recoverable = "code", "reason ü \"'\\", true
		r.Generation, r.Resumes, r.Strikes, r.Priority, r.Paused, r.ArchivedSeq = 3, 4, 2, -5, true, 1
		r.StartedAt, r.WakeAt, r.DeadlineAt = madeAt+1, madeAt+1_000_001, madeAt+3_600_000_007
		r.Attributes = map[string]string{"customer": "Zoë 🚚", "empty": "", "quote": `a'b"c\d%_`}
	})
	c.Hold = []string{"desk", "worktree:/tmp/x"}
	for i, typ := range store.Types()[1:] {
		c.Events = append(c.Events, l.next(store.Event{
			Type: typ, Key: fmt.Sprintf("scope[%d]/ké#2", i), Attempt: int32(i % 3), Ordinal: int32(i), Took: time.Duration(i) * time.Microsecond,
			Active: time.Duration(i) * time.Second, Steps: int32(i), Data: []byte(fmt.Sprintf(`{"n":%d,"t":"\u0000 ü"}`, i)), Payload: []byte{0, byte(i), 255, '\n'},
		}))
	}
	commit(c)
	for n := range int32(2) {
		commit(store.Change{
			RunID: "everything", Expect: store.Expect{Epoch: l.epoch},
			Events: []store.Event{l.next(store.Event{Type: store.WorkflowRecovered, Branch: n + 1, Data: []byte(`{}`)})},
			Branch: &store.Branch{
				N: n + 1, Parent: n, Generation: 3, Cutoff: int64(4 + n), CutScope: []string{"", "items[3]"}[n], Reason: "for a reason", CreatedAt: madeAt + 9,
			},
			Row: &store.RowPatch{Branch: new(n + 1)},
			Send: []store.Message{
				{To: "everything", Kind: store.KindSignal, Name: "go", ID: fmt.Sprint("s", n), At: madeAt, Data: []byte(`{"a":1}`), Payload: []byte{0, 255}},
				{To: "is-waiting", Kind: []store.Kind{store.KindPause, store.KindCancel}[n], ID: fmt.Sprint("c", n), At: madeAt},
				{To: "is-pending", Kind: store.KindChild, Name: "child", ID: fmt.Sprint("k", n), At: madeAt},
			},
		})
	}
}

// runLog seals the events of one run.
type runLog struct {
	id    string
	epoch int64
	last  store.Event
}

func create(id string, edit func(*store.Run)) (store.Change, *runLog) {
	r := &store.Run{ID: id, Workflow: "by hand", InitialVersion: "v1", Version: "v1", Epoch: int64(madeAt), CreatedAt: madeAt}
	edit(r)
	l := &runLog{id: id, epoch: r.Epoch}
	return store.Change{
		RunID: id, Expect: store.Expect{Absent: true}, Create: r,
		Events: []store.Event{l.next(store.Event{Type: store.WorkflowCreated, Payload: []byte(`{"input":1}`)})},
	}, l
}

func (l *runLog) next(e store.Event) store.Event {
	e.Seq, e.At = l.last.Seq+1, madeAt+store.Time(l.last.Seq)
	e.Sum = store.Seal(l.id, l.last.Sum, &e)
	l.last = e
	return e
}
