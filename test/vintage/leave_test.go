package vintage_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// The process that leaves a store behind is this test binary, told by its environment.
const (
	leaveKind    = "HOLDFAST_LEAVE_KIND"
	leaveDSN     = "HOLDFAST_LEAVE_DSN"
	leaveArchive = "HOLDFAST_LEAVE_ARCHIVE"
)

func TestMain(m *testing.M) {
	kind := os.Getenv(leaveKind)
	if kind == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	st, err := openers[kind](os.Getenv(leaveDSN))
	if err == nil {
		err = (&leaver{store: st, archive: os.Getenv(leaveArchive)}).leave(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("left")
	select {} // until it is killed
}

// leftBehind fills a store from a process, and kills that.
func leftBehind(t *testing.T, kind, dsn, archiveDir string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), leaveKind+"="+kind, leaveDSN+"="+dsn, leaveArchive+"="+archiveDir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "left\n", line)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
}

// leaver is the process that will be killed.
type leaver struct {
	store   store.Store
	archive string
	market  *market
	eng     *durable.Engine
}

func (l *leaver) open(ctx context.Context, m *market) (context.Context, error) {
	o := m.options()
	dir, err := archive.OpenDir(l.archive)
	if err != nil {
		return nil, err
	}
	o.Archive = dir
	l.market = m
	if l.eng, err = durable.Open(ctx, l.store, o); err != nil {
		return nil, err
	}
	_, err = l.eng.Recover(ctx)
	return durable.NewContext(ctx, l.eng), err
}

func (l *leaver) leave(ctx context.Context) error {
	first, err := l.open(ctx, &market{leaving: true})
	if err != nil {
		return err
	}
	for id, n := range map[string]int{"changed-1": 1, "priced-1": 10} {
		if err := l.start(first, id, n); err != nil {
			return err
		}
	}
	if err := l.is(ctx, "priced-1", store.Waiting); err != nil {
		return err
	}
	if err := l.until(ctx, "pack", 1); err != nil {
		return err
	}
	if err := l.eng.Close(); err != nil {
		return err
	}
	// From here on it is the deploy that does not fit changed-1, which is parked.
	ctx, err = l.open(ctx, &market{leaving: true, bad: true})
	if err != nil {
		return err
	}
	if err := l.is(ctx, "changed-1", store.Interrupted); err != nil {
		return err
	}
	for _, f := range []func(context.Context) error{l.waiting, l.operated, l.underWay} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return l.archived(ctx)
}

func (l *leaver) start(ctx context.Context, id string, n int, o ...durable.StartOption) error {
	_, err := durable.Ref[int, string](workflowOf(id)).Start(ctx, id, n, o...)
	return err
}

// waiting leaves runs that wait for something, and runs that have ended.
func (l *leaver) waiting(ctx context.Context) error {
	for _, r := range []struct {
		id    string
		n     int
		until store.Status
		o     []durable.StartOption
	}{
		{"family-1", 1, store.Waiting, nil},
		{"renew-1", 1, store.Waiting, nil},
		{"inbox-1", 1, store.Waiting, []durable.StartOption{durable.WithSignal("later", "one")}},
		{"ask-1", 1, store.Waiting, nil},
		{"approval-1", 1, store.Waiting, nil},
		{"late-1", 2, store.Waiting, nil},
		{"together-1", 1, store.Waiting, nil},
		{"bank-1", 5, store.Waiting, nil},
		{"told-1", 4, store.Waiting, []durable.StartOption{
			durable.Header("tenant", "seven"), durable.Attributes(map[string]string{"region": "north"}),
			durable.Exclusive("desk"), durable.Deadline(50 * 365 * 24 * time.Hour),
		}},
		{"steps-1", 1, store.Waiting, nil},
		{"steps-2", 1, store.Waiting, nil},
		{"approval-2", 1, store.Waiting, nil},
		{"broken-0", 0, store.Completed, nil},
		{"broken-1", 1, store.Failed, nil},
	} {
		if err := l.start(ctx, r.id, r.n, r.o...); err != nil {
			return err
		}
		if err := l.is(ctx, r.id, r.until); err != nil {
			return err
		}
	}
	return l.until(ctx, "tick 7 false", 1)
}

// operated leaves runs as operators leave them: with messages, paused, cancelled, jumped
// back in, forked.
func (l *leaver) operated(ctx context.Context) error {
	op := operate.On(l.eng)
	if err := durable.Signal(ctx, "inbox-1", "later", "two", durable.SignalID("second")); err != nil {
		return err
	}
	if err := l.eng.Pause(ctx, "told-1", "a person looks at it"); err != nil {
		return err
	}
	if err := l.eng.Cancel(ctx, "approval-2", "nobody wants it"); err != nil {
		return err
	}
	if err := l.is(ctx, "approval-2", store.Cancelled); err != nil {
		return err
	}
	one, err := op.CheckpointOf(ctx, "steps-1", "one")
	if err != nil {
		return err
	}
	if _, err := op.Jump(ctx, "steps-1", one, operate.JumpOptions{Reason: "two was wrong"}); err != nil {
		return err
	}
	if err := l.until(ctx, "two", 3); err != nil {
		return err
	}
	if _, err := op.Fork(ctx, "steps-2", operate.ForkOptions{ID: "steps-3"}); err != nil {
		return err
	}
	for _, id := range []string{"steps-1", "steps-3"} {
		if err := l.is(ctx, id, store.Waiting); err != nil {
			return err
		}
	}
	return nil
}

// underWay leaves runs in the middle of a body.
func (l *leaver) underWay(ctx context.Context) error {
	for _, r := range []struct {
		id, body string
		n        int
	}{
		{"order-1", "charge", 3}, {"pay-1", "pay", 1}, {"list-1", "fruit 3", 1}, {"stream-1", "square", 5}, {"saga-1", "undo flight", 1},
	} {
		if err := l.start(ctx, r.id, r.n); err != nil {
			return err
		}
		if err := l.until(ctx, r.body, 1); err != nil {
			return err
		}
	}
	mail := func(id string, n int, o ...durable.StartOption) error {
		return l.start(ctx, id, n, append(o, durable.OnQueue("mail"), durable.Partition("tenant"))...)
	}
	if err := mail("mail-1", 1); err != nil {
		return err
	}
	if err := l.until(ctx, "mail 1", 1); err != nil {
		return err
	}
	if err := mail("mail-2", 2, durable.Priority(9), durable.Dedup("once")); err != nil {
		return err
	}
	if err := mail("mail-3", 3, durable.Priority(1)); err != nil {
		return err
	}
	return mail("mail-4", 4, durable.Delay(5*time.Second))
}

// archived waits until the copies of runs that wait or have ended are written.
func (l *leaver) archived(ctx context.Context) error {
	dir, err := archive.OpenDir(l.archive)
	if err != nil {
		return err
	}
	defer dir.Close()
	return poll(ctx, "the copies of runs", func() (bool, error) {
		n := 0
		for _, err := range dir.List(ctx) {
			if err != nil {
				return false, err
			}
			n++
		}
		page, err := l.store.List(ctx, store.Filter{Statuses: []store.Status{store.Waiting, store.Completed, store.Failed, store.Cancelled}, Unarchived: true})
		return err == nil && n > 0 && len(page.Runs) == 0, err
	})
}

// until waits until a body has begun that many times.
func (l *leaver) until(ctx context.Context, body string, times int) error {
	return poll(ctx, body, func() (bool, error) { return l.market.times(body) >= times, nil })
}

func (l *leaver) is(ctx context.Context, id string, status store.Status) error {
	return poll(ctx, id+" "+string(status), func() (bool, error) {
		h, err := l.store.Load(ctx, id, store.Cursor{NoEvents: true})
		return err == nil && h.Run.Status == status, err
	})
}

func poll(ctx context.Context, what string, f func() (bool, error)) error {
	for {
		if ok, err := f(); err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
