package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// shelf is an archive in memory that can be slow and can fail.
type shelf struct {
	mu     sync.Mutex
	files  map[string][]byte
	writes map[string]int
	fail   error
	slow   time.Duration
	hang   bool // until the context ends
}

func newShelf() *shelf { return &shelf{files: map[string][]byte{}, writes: map[string]int{}} }

func (s *shelf) Store(ctx context.Context, id string, file []byte) error {
	s.mu.Lock()
	slow, hang, fail := s.slow, s.hang, s.fail
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	time.Sleep(slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes[id]++
	if fail != nil {
		return fail
	}
	s.files[id] = bytes.Clone(file)
	return nil
}

func (s *shelf) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shelf) written(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes[id]
}

// status returns that of an archived run; empty: it is not archived.
func (s *shelf) status(t *testing.T, id string) store.Status {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[id] == nil {
		return ""
	}
	f, err := runfile.Read(bytes.NewReader(s.files[id]), 1<<30)
	require.NoError(t, err)
	return f.Run.Status
}

func asking() *durable.Workflow[int, string] {
	return durable.Define("asking", func(ctx context.Context, in int) (string, error) {
		if in < 0 {
			return "", durable.Permanent(errors.New("bad input"))
		}
		for i := range in {
			if _, err := durable.Await[int](ctx, fmt.Sprint("answer-", i), durable.Prompt("yes?")); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
}

func TestARunIsArchivedWhenItEndsAndWhenItWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		w.open(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: s})
		for id, in := range map[string]int{"failed": -1, "completed": 0, "waiting": 1} {
			_, err := asking().Start(w.ctx(), id, in)
			require.NoError(t, err)
		}
		pass(time.Second)
		for _, id := range []string{"failed", "completed", "waiting"} {
			require.Equal(t, store.Status(id), s.status(t, id))
			row := w.row(id)
			require.Equal(t, row.Last.Seq, row.ArchivedSeq, "%s: the store knows", id)
		}
		require.NoError(t, durable.Signal(w.ctx(), "waiting", "answer-0", 1))
		w.eventually("waiting", store.Completed)
		pass(time.Minute)
		require.Equal(t, store.Completed, s.status(t, "waiting"), "the later copy replaces the first")
		for _, id := range []string{"failed", "completed"} {
			require.Equal(t, 1, s.written(id))
		}
	})
}

func TestWhatIsDoneToARunThatNobodyExecutesIsArchived(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		w.open(t, durable.Options{Workflows: []durable.Definition{asking(), stuckBody()}})
		_, err := asking().Start(w.ctx(), "waiting", 1)
		require.NoError(t, err)
		_, err = stuckBody().Start(w.ctx(), "running", 1)
		require.NoError(t, err)
		w.eventually("waiting", store.Waiting)
		w.crash()
		w.expire()
		w.open(t, durable.Options{Archive: s, OnBoot: durable.FailOnBoot, Workflows: []durable.Definition{asking(), stuckBody()}})
		pass(time.Second)
		require.Equal(t, store.Waiting, s.status(t, "waiting"), "what a process without an archive has left")
		require.Empty(t, s.status(t, "running"))
		_, err = w.eng.Recover(w.ctx())
		require.NoError(t, err)
		pass(time.Second)
		require.Equal(t, store.Failed, s.status(t, "running"), "recovery has ended it")
	})
}

// stuckBody has a step that ends with its process only.
func stuckBody() *durable.Workflow[int, int] {
	return durable.Define("stuck", func(ctx context.Context, in int) (int, error) {
		return durable.Step(ctx, "long", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
	})
}

func TestAnArchiveThatFailsHarmsNobodyAndIsTriedAgainByTheNextProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		s.fail = errors.New("disk full")
		o := durable.Options{Workflows: []durable.Definition{asking()}, Archive: s}
		w.open(t, o)
		run, err := asking().Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "done", out)
		pass(time.Second)
		require.Equal(t, store.Completed, w.row("r").Status)
		require.Zero(t, w.row("r").ArchivedSeq)
		lines := w.log.find("[durable] git-store write failed for r:")
		require.Len(t, lines, 1)
		require.True(t, strings.HasPrefix(lines[0], "ERROR [durable] git-store write failed for r: disk full"), lines[0])

		s.set(func() { s.fail = nil })
		w.reboot(t, o)
		pass(time.Second)
		require.Equal(t, store.Completed, s.status(t, "r"))
		require.Equal(t, w.row("r").Last.Seq, w.row("r").ArchivedSeq)
	})
}

func TestASlowArchiveDelaysNoResultAndCloseWaitsForItToABound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		s.slow = 3 * time.Second
		eng := w.open(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: s, Grace: 5 * time.Second})
		began := time.Now()
		run, err := asking().Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		_, err = run.Wait(w.ctx())
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		require.NoError(t, eng.Close())
		require.Equal(t, 3*time.Second, time.Since(began), "what is under way is waited for")
		require.Equal(t, store.Completed, s.status(t, "r"))

		s.set(func() { s.hang = true })
		eng = w.open(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: s, Grace: 5 * time.Second})
		run, err = asking().Start(w.ctx(), "stuck", 0)
		require.NoError(t, err)
		_, err = run.Wait(w.ctx())
		require.NoError(t, err)
		began = time.Now()
		require.NoError(t, eng.Close())
		require.LessOrEqual(t, time.Since(began), 6*time.Second)
		require.Empty(t, s.status(t, "stuck"))
		require.Zero(t, w.row("stuck").ArchivedSeq)

		s.set(func() { s.hang, s.slow = false, 0 })
		w.open(t, durable.Options{Archive: s})
		pass(time.Second)
		require.Equal(t, store.Completed, s.status(t, "stuck"))
	})
}

func TestARunThatWaitsAThousandTimesIsNotWrittenAThousandTimes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		w.open(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: s})
		_, err := asking().Start(w.ctx(), "r", 1000)
		require.NoError(t, err)
		for i := range 1000 {
			require.NoError(t, durable.Signal(w.ctx(), "r", fmt.Sprint("answer-", i), 1))
			pass(5 * time.Millisecond)
		}
		w.eventually("r", store.Completed)
		pass(time.Second)
		require.Equal(t, store.Completed, s.status(t, "r"))
		require.LessOrEqual(t, s.written("r"), 8, "five seconds of waits, one write a second")
		require.GreaterOrEqual(t, s.written("r"), 3, "and it is written while it waits")
	})
}

func TestASynchronousArchiveHasTheWaitBeforeItsAnswerIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		s.slow = time.Minute / 2
		w.open(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: s, ArchiveSync: true})
		_, err := asking().Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		pass(time.Second)
		require.Equal(t, store.Waiting, w.row("r").Status)
		require.NoError(t, durable.Signal(w.ctx(), "r", "answer-0", 1))
		pass(time.Second)
		require.NotContains(t, w.story("r"), "signal_received answer-0", "the copy is still being written")
		w.eventually("r", store.Completed)
		require.Equal(t, store.Waiting, s.status(t, "r"))
		pass(time.Minute)
		require.Equal(t, store.Completed, s.status(t, "r"))
		require.Equal(t, 2, s.written("r"), "what is archived is not written again")

		// A failure is logged, and the run goes on.
		s.set(func() { s.fail, s.slow = errors.New("gone"), 0 })
		_, err = asking().Start(w.ctx(), "s", 1)
		require.NoError(t, err)
		require.NoError(t, durable.Signal(w.ctx(), "s", "answer-0", 1))
		w.eventually("s", store.Completed)
		require.NotEmpty(t, w.log.find("git-store write failed for s: gone"))
	})
}

func TestWhatIsArchivedIsNotLookedAtAgainByTheNextProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		o := durable.Options{Workflows: []durable.Definition{asking()}, Archive: s}
		w.open(t, o)
		for i := range 20 {
			_, err := asking().Start(w.ctx(), fmt.Sprint("r", i), 0)
			require.NoError(t, err)
		}
		pass(time.Minute)
		w.crash()
		loads := 0
		w.open(t, o)
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" {
				loads++
			}
			return forward()
		})
		pass(time.Minute)
		require.Zero(t, loads)
		require.Equal(t, 1, s.written("r7"))
	})
}

func TestWithoutAnArchiveTheStoreIsNotAskedForOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.open(t, durable.Options{Workflows: []durable.Definition{asking()}})
		w.disk.tamperCalls(func(call string, forward func() error) error {
			require.NotEqual(t, "list", call)
			return forward()
		})
		run, err := asking().Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		_, err = run.Wait(w.ctx())
		require.NoError(t, err)
		w.disk.tamperCalls(nil)
		require.Zero(t, w.row("r").ArchivedSeq)
	})
}

func TestARunThatIsKilledAtAnyWriteIsArchivedAsItEndedByTheNextProcess(t *testing.T) {
	napping := durable.Define("napping", func(ctx context.Context, in int) (int, error) {
		if _, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
		return in, durable.Sleep(ctx, time.Minute)
	})
	// life executes the run on the data until its process dies, or for an hour.
	life := func(t *testing.T, m *crashstore.Store, s *shelf) {
		eng, err := durable.Open(t.Context(), m, durable.Options{Workflows: []durable.Definition{napping}, Archive: s, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), eng)
		if _, err := durable.Recover(ctx); err == nil {
			_, _ = napping.Start(ctx, "r", 7)
		}
		select {
		case <-m.Died():
		case <-time.After(time.Hour):
		}
		_ = eng.Close()
		time.Sleep(2 * durable.DefaultLease)
	}
	synctest.Test(t, func(t *testing.T) {
		data := memory.Open()
		m := crashstore.New(data.Handle())
		life(t, m, newShelf())
		writes := m.Writes()
		require.GreaterOrEqual(t, writes, 6, "creation, step, timer, end, and two marks")
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				data, s := memory.Open(), newShelf()
				m := crashstore.New(data.Handle())
				m.DieAt(at, after)
				life(t, m, s)
				life(t, crashstore.New(data.Handle()), s)
				require.Equal(t, store.Completed, s.status(t, "r"), "killed at write %d, after=%v", at, after)
				h, err := data.Load(t.Context(), "r", store.Cursor{NoEvents: true})
				require.NoError(t, err)
				require.Equal(t, h.Run.Last.Seq, h.Run.ArchivedSeq, "killed at write %d, after=%v", at, after)
			}
		}
	})
}

func TestAStartFromAnExportGoesOnWhereTheRunWas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, asking())
		_, err := asking().Start(w.ctx(), "r", 2)
		require.NoError(t, err)
		require.NoError(t, durable.Signal(w.ctx(), "r", "answer-0", 1))
		pass(time.Second)
		var file bytes.Buffer
		require.NoError(t, operate.On(w.eng).Export(w.ctx(), "r", &file))
		before := w.story("r")
		w.crash()

		w.data = memory.Open() // the store is lost
		w.boot(t, durable.Options{Workflows: []durable.Definition{asking()}})
		for name, start := range map[string]func(o durable.StartOption) error{
			"another input": func(o durable.StartOption) error { _, err := asking().Start(w.ctx(), "r", 3, o); return err },
			"another id":    func(o durable.StartOption) error { _, err := asking().Start(w.ctx(), "s", 2, o); return err },
			"a generated id": func(o durable.StartOption) error {
				_, err := asking().Start(w.ctx(), durable.AutoID, 2, o)
				return err
			},
			"another workflow": func(o durable.StartOption) error {
				_, err := durable.Define("other", func(context.Context, int) (string, error) { return "", nil }).Start(w.ctx(), "r", 2, o)
				return err
			},
			"many": func(o durable.StartOption) error {
				_, err := asking().StartAll(w.ctx(), func(yield func(string, int) bool) { yield("r", 2) }, o)
				return err
			},
		} {
			require.Error(t, start(operate.FromExport(file.Bytes())), name)
		}
		_, err = asking().Start(w.ctx(), "r", 2, operate.FromExport(file.Bytes()[:file.Len()/2]))
		require.ErrorIs(t, err, operate.ErrBadFile)
		_, err = w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound, "nothing has changed")

		for range 2 { // starting again is safe
			_, err = asking().Start(w.ctx(), "r", 2, operate.FromExport(file.Bytes()))
			require.NoError(t, err)
		}
		w.eventually("r", store.Waiting)
		require.True(t, slices.Equal(before, w.story("r")[:len(before)]), "its former events come first")
		require.Contains(t, w.story("r"), "run_resumed")
		require.NoError(t, durable.Signal(w.ctx(), "r", "answer-1", 1))
		w.eventually("r", store.Completed)
		require.True(t, slices.Equal(before, w.story("r")[:len(before)]))
	})
}

// Its process dies in the middle of the import, and the other start had found the run there.
func TestAStartFromAnExportIsNotBelievedWhileAnotherOneImportsTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, asking())
		_, err := asking().Start(w.ctx(), "r", 2)
		require.NoError(t, err)
		pass(time.Second)
		var file bytes.Buffer
		require.NoError(t, operate.On(w.eng).Export(w.ctx(), "r", &file))
		w.crash()

		w.data = memory.Open()
		dying := w.open(t, durable.Options{Workflows: []durable.Definition{asking()}})
		w.disk.cutBefore(store.WaitRequested)
		w.boot(t, durable.Options{Workflows: []durable.Definition{asking()}})
		var raced atomic.Bool
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].Create != nil && !raced.Swap(true) {
				_, err := asking().Start(durable.NewContext(context.Background(), dying), "r", 2, operate.FromExport(file.Bytes()))
				require.Error(t, err)
			}
			return forward()
		})
		_, err = asking().Start(w.ctx(), "r", 2, operate.FromExport(file.Bytes()))
		require.NoError(t, err)
		require.True(t, raced.Load())
		require.NotContains(t, []string{durable.CodeImporting, durable.CodeImported}, w.row("r").Code, "it goes on")
		w.eventually("r", store.Waiting)
		_ = dying.Close() // its disk is gone
	})
}

// A program that has perhaps a file, and perhaps none, passes on what it has.
func TestAStartFromNoFileIsAPlainStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		parent := durable.Define("parent", func(ctx context.Context, _ int) (string, error) {
			child, err := asking().Start(ctx, "child", 0, operate.FromExport(nil))
			if err != nil {
				return "", err
			}
			return child.Wait(ctx)
		})
		w.serve(t, asking(), parent)
		_, err := asking().Start(w.ctx(), "r", 0, operate.FromExport(nil))
		require.NoError(t, err)
		_, err = asking().Start(w.ctx(), durable.AutoID, 0, operate.FromExport(nil))
		require.NoError(t, err)
		_, err = asking().StartAll(w.ctx(), func(yield func(string, int) bool) { yield("many", 0) }, operate.FromExport(nil))
		require.NoError(t, err)
		_, err = parent.Start(w.ctx(), "p", 0)
		require.NoError(t, err)
		for _, id := range []string{"r", "many", "p", "child"} {
			w.eventually(id, store.Completed)
		}
		_, err = asking().Start(w.ctx(), "empty", 0, operate.FromExport([]byte{}))
		require.ErrorIs(t, err, operate.ErrBadFile, "a file without content is no run file")
	})
}

// What the log says of a copy that was not made is what callers are told of damage.
func TestADamagedRunThatIsNotArchivedIsSaidToBeDamaged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, asking())
		_, err := asking().Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		o := with(asking())
		o.Archive = newShelf()
		w.rotting(t, rot{run: "r", event: at(2, func(ev *store.Event) { ev.Payload = []byte("rotten") })}, o)
		pass(time.Second)
		lines := w.log.find("[durable] git-store write failed for r:")
		require.NotEmpty(t, lines)
		require.Contains(t, lines[0], "run r: event 2 is damaged: ")
		require.Contains(t, lines[0], "until it is repaired")
	})
}
