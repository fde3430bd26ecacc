package recovery

import (
	"context"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// orders counts the bodies of a workflow: a step, an approval, a step.
type orders struct {
	mu     sync.Mutex
	bodies map[string]int
}

func newOrders() *orders { return &orders{bodies: map[string]int{}} }

func (o *orders) workflow(version string) *durable.Workflow[int, string] {
	step := func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, name, func(context.Context) (string, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.bodies[name]++
			return name, nil
		})
	}
	return durable.Define("order", func(ctx context.Context, _ int) (string, error) {
		a, err := step(ctx, "a")
		if err != nil {
			return "", err
		}
		ok, err := durable.Await[string](ctx, "approve", durable.Prompt("ship?"))
		if err != nil {
			return "", err
		}
		b, err := step(ctx, "b")
		return a + ok + b, err
	}, durable.Steps("a", "b"), durable.Version(version))
}

// history is one that an engine has recorded, to be written again.
type history struct {
	row    store.Run
	events []store.Event
}

// order records the history of an order, from its start to its end.
func (t *trial) order() history {
	t.Helper()
	wf := newOrders().workflow("1")
	p := t.program(wf)
	run, err := wf.Start(p, "template", 0)
	require.NoError(t, err)
	t.awaits("template", store.Waiting)
	require.NoError(t, durable.Signal(p, "template", "approve", "!"))
	_, err = run.Wait(p)
	require.NoError(t, err)
	require.NoError(t, p.eng.Close())
	row, events := t.log("template")
	return history{row, events}
}

// upTo returns how many events there are up to the first one with this type and key.
func (t *trial) upTo(x history, typ store.Type, key string) int {
	t.Helper()
	i := slices.IndexFunc(x.events, func(e store.Event) bool { return e.Type == typ && e.Key == key })
	require.GreaterOrEqual(t, i, 0, "%s %s", typ, key)
	return i + 1
}

// tell creates a run from the first n events and those in more, under a row with the
// given status.
func (t *trial) tell(x history, id string, n int, status store.Status, more ...store.Event) {
	t.Helper()
	row := x.row
	row.ID, row.Status, row.Owner, row.EndedAt, row.Inbox, row.Seen, row.Code, row.Reason = id, status, "gone", 0, 0, 0, "", ""
	if status == store.Interrupted || status == store.Failed {
		row.Owner = ""
	}
	var before store.Event
	events := slices.Concat(x.events[:n], more)
	for i := range events {
		e := &events[i]
		e.Seq, e.Steps = int64(i+1), max(e.Steps, before.Steps)
		e.At, e.Active = max(e.At, before.At), max(e.Active, before.Active)
		e.Sum = store.Seal(id, before.Sum, e)
		before = *e
	}
	errs := t.outside.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: events}})
	require.Len(t, errs, 1)
	require.NoError(t, errs[0])
}

// finish has a program with the code carry the run to its end. asks says that the
// approval is asked, again or still.
func (t *trial) finish(id string, bodies map[string]int, asks bool) {
	t.Helper()
	o := newOrders()
	wf := o.workflow("1")
	p := t.program(wf)
	run, err := wf.Handle(p, id)
	require.NoError(t, err)
	if asks {
		row := t.awaits(id, store.Waiting)
		// The answer names the wait, as a dashboard sends it.
		require.NoError(t, durable.Signal(p, id, durable.WaitKey("approve", row.Branch), "!"))
	}
	out, err := run.Wait(p)
	require.NoError(t, err)
	require.Equal(t, "a!b", out)
	require.Equal(t, bodies, o.bodies, "what was done is not done again")
	require.NoError(t, p.eng.Close())
}
