package operate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// line puts runs of a workflow in line, or lets them hold a place.
type line struct {
	t  *testing.T
	st *memory.Store
	n  int
	// edit changes the row of a run that is made; nil: nothing.
	edit func(*store.Run)
}

func (l *line) run(status store.Status, queue, partition, workflow string) (id string) {
	l.t.Helper()
	l.n++
	id = fmt.Sprintf("%s-%d", queue, l.n)
	now := store.TimeOf(time.Now())
	e := store.Event{Seq: 1, Epoch: 1, Type: store.WorkflowCreated, At: now}
	e.Sum = store.Seal(id, store.Event{}.Sum, &e)
	row := &store.Run{ID: id, Workflow: workflow, Queue: queue, Partition: partition, Status: status, CreatedAt: now, Epoch: 1}
	if l.edit != nil {
		l.edit(row)
	}
	require.NoError(l.t, l.st.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}}})[0])
	return id
}

// later puts a run on a queue that is not due yet.
func (l *line) later(queue, workflow string) {
	l.t.Helper()
	l.edit = func(r *store.Run) { r.WakeAt = r.CreatedAt.Add(time.Hour) }
	defer func() { l.edit = nil }()
	l.run(store.Pending, queue, "", workflow)
}

func operator(t *testing.T, st store.Store, defs ...durable.Definition) (*durable.Engine, *operate.Operator) {
	t.Helper()
	eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: defs, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return eng, operate.On(eng)
}

// serving registers a live executor that has the code of a workflow.
func serving(t *testing.T, st store.Store, workflow string) {
	t.Helper()
	_, err := st.Beat(context.Background(), store.Executor{ID: "worker", Lease: time.Hour, Serves: []store.Served{{Workflow: workflow, Versions: []string{""}}}})
	require.NoError(t, err)
}

func TestQueuesSaysHowFullEachQueueIsAndWhyItsRunsWait(t *testing.T) {
	ctx, st := context.Background(), memory.Open()
	_, op := operator(t, st)
	serving(t, st, "mail")
	require.NoError(t, st.PutQueue(ctx, store.Queue{Name: "emails", MaxPerPartition: 1}))
	require.NoError(t, st.PutQueue(ctx, store.Queue{Name: "idle", Max: 3}))
	l := line{t: t, st: st}
	l.run(store.Running, "emails", "acme", "mail")
	l.run(store.Pending, "emails", "acme", "mail")
	l.run(store.Pending, "emails", "globex", "mail")
	l.run(store.Pending, "emails", "globex", "of nobody")
	l.run(store.Failed, "emails", "", "mail")
	l.run(store.Failed, "forgotten", "", "mail")
	l.run(store.Pending, "undeclared", "", "mail")
	l.later("undeclared", "of nobody") // not in line, and so not one of those that nobody serves

	all, err := op.Queues(ctx)
	require.NoError(t, err)
	require.Len(t, all, 4)
	require.Equal(t, "emails", all[0].Name)
	require.EqualValues(t, 1, all[0].Placed)
	require.EqualValues(t, 3, all[0].InLine)
	require.EqualValues(t, 1, all[0].Failed)
	require.Equal(t, []operate.QueueWait{
		{Reason: operate.QueueUnserved, Runs: 1}, {Reason: operate.PartitionAtLimit, Partition: "acme", Runs: 1}, {Reason: operate.QueueFree, Runs: 1},
	}, all[0].Waits)
	require.Equal(t, "forgotten", all[1].Name, "its dead letters are all that is left of it")
	require.Equal(t, "idle", all[2].Name)
	require.Empty(t, all[2].Waits)
	require.Equal(t, "undeclared", all[3].Name)
	require.Equal(t, []operate.QueueWait{{Reason: operate.QueueFree, Runs: 1}}, all[3].Waits)

	one, err := op.Queues(ctx, "idle")
	require.NoError(t, err)
	require.Len(t, one, 1)
	_, err = op.Queues(ctx, "idel")
	require.ErrorIs(t, err, durable.ErrNotFound)
	require.ErrorContains(t, err, `"idel"`)
}

func TestAPausedQueueKeepsItsDefinitionAndGivesNoPlaces(t *testing.T) {
	ctx, st := context.Background(), memory.Open()
	_, op := operator(t, st)
	serving(t, st, "mail")
	require.NoError(t, st.PutQueue(ctx, store.Queue{Name: "emails", Max: 7}))
	l := line{t: t, st: st}
	l.run(store.Pending, "emails", "", "mail")
	l.run(store.Pending, "undeclared", "", "mail")
	claim := func() []store.Run {
		got, err := st.Claim(ctx, store.Claim{Executor: "worker", Serves: []store.Served{{Workflow: "mail", Versions: []string{""}}}, Max: 9, Queues: []store.QueueRoom{{Queue: "emails", Max: -1}, {Queue: "undeclared", Max: -1}}})
		require.NoError(t, err)
		return got
	}
	require.NoError(t, op.PauseQueue(ctx, "emails", "deploy"))
	require.NoError(t, op.PauseQueue(ctx, "undeclared", ""))
	require.Empty(t, claim())
	q, err := op.Queues(ctx, "emails")
	require.NoError(t, err)
	require.Equal(t, 7, q[0].Max)
	require.Equal(t, "deploy", q[0].Reason)
	require.Equal(t, []operate.QueueWait{{Reason: operate.QueuePaused, Runs: 1}}, q[0].Waits)

	require.NoError(t, op.PauseQueue(ctx, "emails", "a longer deploy"))
	require.NoError(t, op.ResumeQueue(ctx, "emails"))
	require.NoError(t, op.ResumeQueue(ctx, "emails"), "it is not paused")
	require.Len(t, claim(), 1)
	q, err = op.Queues(ctx, "emails")
	require.NoError(t, err)
	require.Equal(t, 7, q[0].Max)
	require.False(t, q[0].Paused)
	require.Empty(t, q[0].Reason)
	require.EqualValues(t, 4, q[0].Revision, "what changes nothing is not stored")

	require.ErrorIs(t, op.PauseQueue(ctx, "emial", ""), durable.ErrNotFound)
	require.NotContains(t, op.PauseQueue(ctx, "emial", "").Error(), "run not found", "it is the queue that is not there")
	require.ErrorIs(t, op.ResumeQueue(ctx, "emial"), durable.ErrNotFound)
}

// meddling is a store in which somebody else defines the queue anew just before it is put.
type meddling struct {
	*memory.Store
	left int
}

func (m *meddling) PutQueue(ctx context.Context, q store.Queue) error {
	if m.left > 0 {
		m.left--
		states, err := m.Store.Queues(ctx, q.Name)
		if err != nil {
			return err
		}
		other := states[0].Queue
		other.Max++
		if err := m.Store.PutQueue(ctx, other); err != nil {
			return err
		}
	}
	return m.Store.PutQueue(ctx, q)
}

func TestPausingAQueueKeepsWhatSomebodyElseChangesInTheSameMoment(t *testing.T) {
	ctx, st := context.Background(), memory.Open()
	require.NoError(t, st.PutQueue(ctx, store.Queue{Name: "emails", Max: 1}))
	_, op := operator(t, &meddling{Store: st, left: 3})
	require.NoError(t, op.PauseQueue(ctx, "emails", "deploy"))
	q, err := op.Queues(ctx, "emails")
	require.NoError(t, err)
	require.Equal(t, 4, q[0].Max)
	require.True(t, q[0].Paused)
}

func TestLineSaysWhereARunStandsInItsPartition(t *testing.T) {
	ctx, st := context.Background(), memory.Open()
	_, op := operator(t, st)
	serving(t, st, "mail")
	require.NoError(t, st.PutQueue(ctx, store.Queue{Name: "emails", Max: 1}))
	l := line{t: t, st: st}
	holds := l.run(store.Running, "emails", "acme", "mail")
	l.run(store.Pending, "emails", "acme", "mail")
	l.run(store.Pending, "emails", "globex", "mail")
	third := l.run(store.Pending, "emails", "acme", "mail")

	got, err := op.Line(ctx, third)
	require.NoError(t, err)
	require.Equal(t, "2nd in line of emails, partition acme", got.String())
	why, _ := got.Reason()
	require.Equal(t, operate.QueueAtLimit, why)

	got, err = op.Line(ctx, holds)
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = op.Line(ctx, "of nobody")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// queued puts a run whose id is "emails/1" on the queue "emails".
type queued struct{ *memory.Store }

func (s queued) Commit(ctx context.Context, changes []store.Change) []error {
	for i := range changes {
		if row := changes[i].Create; row != nil {
			row.Queue, _, _ = strings.Cut(row.ID, "/")
		}
	}
	return s.Store.Commit(ctx, changes)
}

func TestDeadLettersAreListedInPagesAndGetInLineAgainAloneOrAll(t *testing.T) {
	ctx := context.Background()
	st := queued{memory.Open()}
	broken, bare := true, true
	mail := durable.Define("mail", func(ctx context.Context, _ string) (string, error) {
		if bare {
			return "", durable.Permanent(errors.New("nothing was done yet"))
		}
		if err := durable.Do(ctx, "render", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return durable.Step(ctx, "send", func(context.Context) (string, error) {
			if broken {
				return "", durable.Permanent(errors.New("mailbox full"))
			}
			return "sent", nil
		})
	})
	eng, op := operator(t, st, mail)
	ctx = durable.NewContext(ctx, eng)
	fail := func(id string) {
		_, err := mail.Run(ctx, id, "")
		require.Error(t, err)
	}
	fail("emails/1")
	bare = false
	fail("emails/2")
	fail("emails/3")
	fail("letters/4")

	page, err := op.DeadLetters(ctx, "emails", 2, "")
	require.NoError(t, err)
	require.Len(t, page.Runs, 2)
	require.Equal(t, "emails/1", page.Runs[0].ID, "the oldest first")
	page, err = op.DeadLetters(ctx, "emails", 2, page.Next)
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	require.Empty(t, page.Next)
	_, err = op.DeadLetters(ctx, "emials", 0, "")
	require.ErrorIs(t, err, durable.ErrNotFound)
	_, err = op.DeadLetters(ctx, "emails", 0, "no cursor")
	require.ErrorIs(t, err, store.ErrInvalid)

	broken = false
	plan, err := op.RetryDeadLetter(ctx, "emails/1", operate.RetryOptions{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, store.Failed, plan.Status)
	page, err = op.DeadLetters(ctx, "emails", 0, "")
	require.NoError(t, err)
	require.Len(t, page.Runs, 3, "a dry run changes nothing")
	plan, err = op.RetryDeadLetter(ctx, "emails/2", operate.RetryOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"render"}, plan.Skipped)
	got, err := durable.Ref[string, string]("mail").Handle(ctx, "emails/2")
	require.NoError(t, err)
	out, err := got.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "sent", out)
	_, err = op.RetryDeadLetter(ctx, "emails/2", operate.RetryOptions{})
	require.ErrorIs(t, err, durable.ErrNotResumable, "it has completed")

	var retried []string
	for plan, err := range op.RetryDeadLetters(ctx, "emails", operate.RetryOptions{}) {
		require.NoError(t, err)
		retried = append(retried, plan.RunID)
	}
	require.Equal(t, []string{"emails/1", "emails/3"}, retried, "the one in which nothing was recorded begins again")
	for _, id := range append(retried, "letters/4") {
		got, err := durable.Ref[string, string]("mail").Handle(ctx, id)
		require.NoError(t, err)
		if _, err = got.Wait(ctx); id == "letters/4" {
			require.Error(t, err, "that is on another queue")
		} else {
			require.NoError(t, err)
		}
	}
}

func TestARunWithoutQueueIsNoDeadLetter(t *testing.T) {
	ctx, st := context.Background(), memory.Open()
	mail := durable.Define("mail", func(context.Context, string) (string, error) { return "", errors.New("no") })
	eng, op := operator(t, st, mail)
	ctx = durable.NewContext(ctx, eng)
	_, err := mail.Run(ctx, "alone", "")
	require.Error(t, err)
	_, err = op.RetryDeadLetter(ctx, "alone", operate.RetryOptions{})
	require.ErrorIs(t, err, durable.ErrNotResumable)
	require.ErrorContains(t, err, "on no queue")
}

func TestADeadLetterOfAFullQueueGetsInLine(t *testing.T) {
	ctx := context.Background()
	st := queued{memory.Open()}
	mail := durable.Define("mail", func(ctx context.Context, _ string) (string, error) {
		return durable.Step(ctx, "send", func(context.Context) (string, error) { return "", durable.Permanent(errors.New("mailbox full")) })
	})
	eng, op := operator(t, st, mail)
	ctx = durable.NewContext(ctx, eng)
	_, err := mail.Run(ctx, "emails/1", "")
	require.Error(t, err)
	l := line{t: t, st: st.Store}
	l.run(store.Waiting, "emails", "", "mail")
	require.NoError(t, st.PutQueue(ctx, store.Queue{Name: "emails", Max: 1}))

	plan, err := op.RetryDeadLetter(ctx, "emails/1", operate.RetryOptions{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan.Warnings, "\n"), "queue emails has no place for it now")
	got, err := op.Line(ctx, "emails/1")
	require.NoError(t, err)
	require.Equal(t, "1st in line of emails", got.String())
}
