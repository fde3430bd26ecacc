package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// operated is a workflow with a child and a signal between its steps, that fails
// at its end until it is mended.
func operated(j *journal, mended *bool) []durable.Definition {
	kid := durable.Define("kid", func(ctx context.Context, n int) (string, error) {
		return durable.Step(ctx, "work", func(ctx context.Context) (string, error) { j.add(ctx); return fmt.Sprint("kid ", n), nil })
	})
	step := func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, name, func(ctx context.Context) (string, error) { j.add(ctx); return name, nil })
	}
	main := durable.Define("program", func(ctx context.Context, _ int) (string, error) {
		a, err := step(ctx, "a")
		if err != nil {
			return "", err
		}
		k, err := kid.Run(ctx, durable.AutoID, 1)
		if err != nil {
			return "", err
		}
		s, err := durable.Await[string](ctx, "go")
		if err != nil {
			return "", err
		}
		b, err := step(ctx, "b")
		if err != nil {
			return "", err
		}
		_, err = durable.Retry(ctx, "flaky", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) (int, error) {
			j.add(ctx)
			if !*mended {
				return 0, errNotYet
			}
			return 1, nil
		})
		return a + ", " + k + ", " + s + ", " + b, err
	})
	return []durable.Definition{main, kid}
}

// An operation is something an operator does to the failed run "r"; the run "want"
// is to come to this.
type operation struct {
	act  func(ctx context.Context, eng *durable.Engine) error
	run  string // that goes on; empty: r
	want string
	// done tells, in a later life, that it need not be done again.
	done store.Type
}

func checkpointOf(ctx context.Context, eng *durable.Engine, key string) int64 {
	at, err := operate.On(eng).CheckpointOf(ctx, "r", key)
	if err != nil {
		return 1
	}
	return at
}

func operations() map[string]operation {
	same := "a, kid 1, hello, b, <nil>"
	return map[string]operation{
		"resume from a checkpoint": {want: same, done: store.JumpActivated, act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{FromCheckpoint: checkpointOf(ctx, eng, "a")})
			return err
		}},
		"reset failures": {want: same, done: store.FailuresReset, act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{ResetFailures: true})
			return err
		}},
		"jump": {want: same, done: store.JumpActivated, act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Jump(ctx, "r", checkpointOf(ctx, eng, "a"), operate.JumpOptions{})
			return err
		}},
		"edit": {want: "edited, kid 1, hello, b, <nil>", done: store.Edited, act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Edit(ctx, "r", "a", "edited", operate.EditOptions{By: "me", Reason: "why not"})
			return err
		}},
		"edit of an answer": {want: "a, kid 1, edited, b, <nil>", done: store.Edited, act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Edit(ctx, "r", "go", "edited", operate.EditOptions{})
			return err
		}},
		"edit of a child": {want: "a, edited, hello, b, <nil>", done: store.Edited, act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Edit(ctx, "r", "kid", "edited", operate.EditOptions{})
			return err
		}},
		"fork": {want: same, run: "f", act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Fork(ctx, "r", operate.ForkOptions{ID: "f", At: checkpointOf(ctx, eng, "b")})
			return err
		}},
		"fork with edits": {want: "edited, changed, hello, b, <nil>", run: "f", act: func(ctx context.Context, eng *durable.Engine) error {
			_, err := operate.On(eng).Fork(ctx, "r", operate.ForkOptions{ID: "f", Edits: map[string]any{"a": "edited", "kid": "changed"}, By: "me"})
			return err
		}},
	}
}

// life is one process: it recovers, does what is not done yet, and waits.
func (op *operation) life(t require.TestingT, m *crashstore.Store, j *journal, mended *bool) (got string, err error) {
	ctx := context.Background()
	eng, err := durable.Open(ctx, m, durable.Options{Workflows: operated(j, mended), Logger: slog.New(slog.DiscardHandler), QuarantineAfter: 100, Grace: -1})
	if err != nil {
		return "", err
	}
	defer func() { _ = eng.Close() }()
	ctx, stop := context.WithTimeout(durable.NewContext(ctx, eng), 24*time.Hour)
	defer stop()
	go func() {
		select {
		case <-m.Died():
			stop()
		case <-ctx.Done():
		}
	}()
	if _, err := durable.Recover(ctx); err != nil {
		return "", err
	}
	done := false
	for ev, err := range eng.History(ctx, "r") {
		if err != nil {
			return "", err
		}
		done = done || ev.Type == op.done
	}
	if !done {
		if err := op.act(ctx, eng); err != nil {
			return "", err
		}
	}
	id := "r"
	if op.run != "" {
		id = op.run
	}
	if row, err := eng.Get(ctx, id); err != nil {
		return "", err
	} else if row.Code == durable.CodeEdited || row.Status == store.Failed {
		if _, err := operate.On(eng).Resume(ctx, id, operate.ResumeOptions{}); err != nil {
			return "", err
		}
	}
	h, err := durable.Ref[int, string]("program").Handle(ctx, id)
	require.NoError(t, err)
	if op.run != "" {
		// Its inbox is its own.
		if err := eng.Signal(ctx, id, "go", "hello", durable.SignalID("1")); err != nil && !errors.Is(err, durable.ErrNotRunning) {
			return "", err
		}
	}
	out, err := h.Wait(ctx)
	return fmt.Sprintf("%s, %v", out, err), err
}

// operate does op to a fresh failed run, killed at a write, and goes on in another
// process.
func (op *operation) operate(t require.TestingT, at int, after bool) (got string, writes int, j *journal, data *memory.Store) {
	j = &journal{}
	data = memory.Open()
	mended := false
	ctx := context.Background()
	eng, err := durable.Open(ctx, data.Handle(), durable.Options{Workflows: operated(j, &mended), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ectx := durable.NewContext(ctx, eng)
	_, err = durable.Recover(ectx)
	require.NoError(t, err)
	h, err := durable.Ref[int, string]("program").Start(ectx, "r", 7, durable.Attributes(map[string]string{"a": "b"}))
	require.NoError(t, err)
	require.NoError(t, eng.Signal(ectx, "r", "go", "hello"))
	_, err = h.Wait(ectx)
	require.ErrorContains(t, err, errNotYet.Error())
	require.NoError(t, eng.Close())
	mended = true
	for life := 0; ; life++ {
		require.Less(t, life, 3)
		m := crashstore.New(data.Handle())
		if life == 0 {
			m.DieAt(at, after)
		}
		got, err = op.life(t, m, j, &mended)
		writes += m.Writes()
		if !m.IsDead() {
			require.NoError(t, err)
			return got, writes, j, data
		}
		time.Sleep(2 * durable.DefaultLease)
	}
}

// checkLineage looks at the current history of a run: sound, and nothing in it has
// two outcomes but what was reset.
func checkLineage(t require.TestingT, data store.Store, id string) {
	h, err := data.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	line := store.LineageOf(h.Branches, h.Run.Branch)
	var before store.Event
	seen := map[string]bool{}
	var consumed []string
	for e, err := range h.Events {
		require.NoError(t, err)
		require.Equal(t, before.Seq+1, e.Seq)
		require.Equal(t, store.Seal(id, before.Sum, &e), e.Sum)
		require.GreaterOrEqual(t, e.At, before.At)
		before = e
		if !line.Has(&e) {
			continue
		}
		switch e.Type {
		case store.FailuresReset:
			seen = map[string]bool{}
		case store.SignalReceived:
			consumed = append(consumed, string(e.Data))
			fallthrough
		case store.StepCompleted, store.StepFailed, store.ChildFinished:
			require.False(t, seen[e.Key], "two outcomes of %s", e.Key)
			seen[e.Key] = true
		}
	}
	require.Len(t, consumed, 1, "the signal counts once")
	require.Equal(t, store.Completed, h.Run.Status)
	require.Empty(t, h.Run.Code)
	require.Empty(t, h.Run.Reason)
	require.False(t, h.Run.Paused)
	require.Equal(t, map[string]string{"a": "b"}, h.Run.Attributes)
	require.NoError(t, data.Close())
}

func TestWhatAnOperatorDoesIsDoneOnceWhereverItIsKilled(t *testing.T) {
	for name, op := range operations() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, writes, clean, data := op.operate(t, 0, false)
				require.Equal(t, op.want, got)
				id := "r"
				if op.run != "" {
					id = op.run
				}
				checkLineage(t, data, id)
				for at := 1; at <= writes; at++ {
					for _, after := range []bool{false, true} {
						got, _, j, data := op.operate(t, at, after)
						require.Equal(t, op.want, got, "killed at write %d, after=%v", at, after)
						checkLineage(t, data, id)
						for entry, n := range j.times() {
							require.LessOrEqual(t, n, clean.times()[entry]+1, "%s, killed at write %d, after=%v", entry, at, after)
						}
						keys := func(j *journal) (list []string) {
							for entry := range j.times() {
								if name == "jump" {
									// A jump that was asked for and not carried out is
									// taken back on a branch of its own, which the ids of
									// children name.
									entry, _, _ = strings.Cut(entry, " ")
								}
								list = append(list, entry)
							}
							slices.Sort(list)
							return list
						}
						require.Equal(t, keys(clean), keys(j))
					}
				}
				t.Logf("%d writes", writes)
			})
		})
	}
}

// A jump of a run that is executed goes through a pause: wherever it is killed, the
// run is paused or goes on, on the one branch or the other, and nobody has to know
// which to bring it to its end.
func TestAJumpOfALiveRunIsKilledAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		try := func(at int, after bool) (writes int) {
			j, data := &journal{}, memory.Open()
			for life := 0; ; life++ {
				require.Less(t, life, 3)
				m := crashstore.New(data.Handle())
				if life == 0 {
					m.DieAt(at, after)
				}
				out, err := jumpLive(ctx, m, patientForSignal(j))
				writes += m.Writes()
				if m.IsDead() {
					time.Sleep(2 * durable.DefaultLease)
					continue
				}
				require.NoError(t, err, "killed at write %d, after=%v", at, after)
				require.Equal(t, "onetwohello", out)
				break
			}
			h, err := data.Load(ctx, "r", store.Cursor{NoEvents: true})
			require.NoError(t, err)
			require.Equal(t, store.Completed, h.Run.Status)
			require.NotZero(t, h.Run.Branch, "it was taken back")
			require.GreaterOrEqual(t, j.counts("two/1")[0], 2)
			require.LessOrEqual(t, j.counts("one/1")[0], 2)
			require.NoError(t, data.Close())
			return writes
		}
		writes := try(0, false)
		for at := 1; at <= writes; at++ {
			try(at, false)
			try(at, true)
		}
		t.Logf("%d writes", writes)
	})
}

// patientForSignal makes two steps and waits for a signal.
func patientForSignal(j *journal) *durable.Workflow[int, string] {
	return durable.Define("program", func(ctx context.Context, _ int) (string, error) {
		out := ""
		for _, name := range []string{"one", "two"} {
			s, err := durable.Step(ctx, name, func(ctx context.Context) (string, error) { j.add(ctx); return name, nil })
			if err != nil {
				return "", err
			}
			out += s
		}
		s, err := durable.Await[string](ctx, "go")
		return out + s, err
	})
}

// jumpLive is one life: the run waits, is taken back unless it was, and ends.
func jumpLive(ctx context.Context, m *crashstore.Store, wf *durable.Workflow[int, string]) (out string, err error) {
	eng, err := durable.Open(ctx, m, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), QuarantineAfter: 100, Grace: -1})
	if err != nil {
		return "", err
	}
	defer func() { _ = eng.Close() }()
	ctx, stop := context.WithTimeout(durable.NewContext(ctx, eng), time.Hour)
	defer stop()
	go func() {
		select {
		case <-m.Died():
			stop()
		case <-ctx.Done():
		}
	}()
	if _, err := durable.Recover(ctx); err != nil {
		return "", err
	}
	h, err := wf.Start(ctx, "r", 7)
	if err != nil {
		return "", err
	}
	for { // until it waits, or a person finds it paused
		row, err := eng.Get(ctx, "r")
		if err != nil {
			return "", err
		}
		if row.Status == store.Waiting || row.Paused || row.Status.Terminal() {
			break
		}
		time.Sleep(time.Second)
	}
	row, err := eng.Get(ctx, "r")
	// One that was asked for and not carried out was taken back on boot.
	jumped := false
	if log, loadErr := m.Load(ctx, "r", store.Cursor{All: true}); loadErr == nil {
		for ev := range log.Events {
			jumped = jumped || ev.Type == store.JumpActivated
		}
	}
	if err == nil && !jumped && !row.Status.Terminal() {
		var at int64
		if at, err = operate.On(eng).CheckpointOf(ctx, "r", "one"); err == nil {
			_, err = operate.On(eng).Jump(ctx, "r", at, operate.JumpOptions{})
		}
	}
	if err != nil {
		return "", err
	}
	if err := eng.Unpause(ctx, "r"); err != nil && !errors.Is(err, durable.ErrNotPaused) && !errors.Is(err, durable.ErrNotRunning) {
		return "", err
	}
	if err := eng.Signal(ctx, "r", "go", "hello", durable.SignalID("1")); err != nil && !errors.Is(err, durable.ErrNotRunning) {
		return "", err
	}
	return h.Wait(ctx)
}
