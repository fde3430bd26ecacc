package everystore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// An act that writes more than once can be killed between any two of its writes.
// Each is tried with a kill before and after every write that it, or the engine it
// is called on, makes. Then another process boots, and either the act is called
// again, which must lead to what it leads to undisturbed; or it is not, and then no
// run may be stranded. A new act is one entry of this table.
var wholeActs = []wholeAct{
	{name: "Start", do: func(w *actWorld) error { return w.start("r", 1) }},
	{name: "Start with a signal, keys and a delay", do: func(w *actWorld) error {
		_, err := w.order.Start(w.ctx, "r", 1, durable.Exclusive("key"), durable.WithSignal("go", "soon"))
		return err
	}},
	{name: "StartAll", do: func(w *actWorld) error {
		_, err := w.order.StartAll(w.ctx, func(yield func(string, int) bool) {
			for i := range 5 {
				if !yield(fmt.Sprint("r", i), 1) {
					return
				}
			}
		})
		return err
	}},
	{name: "Start with a child", do: func(w *actWorld) error { _, err := w.parent.Start(w.ctx, "p", 1); return err }},
	{name: "Continue", do: func(w *actWorld) error { _, err := w.renewing.Start(w.ctx, "c", 3); return err }},
	{name: "Start from an export", file: "r", do: func(w *actWorld) error {
		_, err := w.order.Start(w.ctx, "r", 1, operate.FromExport(w.file))
		return err
	}},
	{name: "Import", file: "r", do: func(w *actWorld) error {
		_, err := operate.On(w.Engine).Import(w.ctx, bytes.NewReader(w.file), operate.ImportOptions{})
		return err
	}},
	{name: "Import of a copy", file: "r", do: func(w *actWorld) error {
		_, err := operate.On(w.Engine).Import(w.ctx, bytes.NewReader(w.file), operate.ImportOptions{NewID: "copy"})
		return err
	}},
	{name: "RestoreWaiting", archived: []string{"a", "b", "c"}, do: func(w *actWorld) error {
		_, err := archive.RestoreWaiting(w.ctx, w.Engine, w.shelf)
		return err
	}},
	{name: "archiving", archives: true, do: func(w *actWorld) error {
		return errors.Join(w.start("a", 1), w.start("b", 0), w.Signal(w.ctx, "a", "for later", 1, durable.SignalID("1")))
	}},
	{name: "Clean", archives: true, before: func(w *actWorld) error { return errors.Join(w.start("a", 0), w.start("b", 0), w.start("c", 1)) }, do: func(w *actWorld) error {
		_, err := operate.On(w.Engine).Clean(w.ctx, operate.CleanOptions{All: true})
		return err
	}},
	{name: "Clean of a family", before: func(w *actWorld) error {
		_, err := w.parent.Start(w.ctx, "p", 0)
		return err
	}, do: func(w *actWorld) error {
		_, err := operate.On(w.Engine).Clean(w.ctx, operate.CleanOptions{All: true})
		return err
	}},
	{name: "Signal", before: waits, do: func(w *actWorld) error { return w.Signal(w.ctx, "r", "go", "now", durable.SignalID("1")) }},
	{name: "Cancel", before: waits, do: func(w *actWorld) error { return w.Cancel(w.ctx, "r", "not needed") }},
	{name: "Cancel with children", before: family, do: func(w *actWorld) error { return w.Cancel(w.ctx, "p", "not needed") }},
	{name: "Pause", before: waits, do: func(w *actWorld) error { return w.Pause(w.ctx, "r", "a moment") }},
	{name: "Unpause", before: func(w *actWorld) error { return errors.Join(waits(w), w.Pause(w.ctx, "r", "a moment")) }, do: func(w *actWorld) error {
		return w.Unpause(w.ctx, "r")
	}},
	{name: "Resume", before: fails, do: func(w *actWorld) error {
		return second(operate.On(w.Engine).Resume(w.ctx, "f", operate.ResumeOptions{}))
	}},
	{name: "Resume with failures reset", before: fails, do: func(w *actWorld) error {
		return second(operate.On(w.Engine).Resume(w.ctx, "f", operate.ResumeOptions{ResetFailures: true}))
	}},
	{name: "Resume from a checkpoint", before: fails, do: func(w *actWorld) error {
		at, err := operate.On(w.Engine).CheckpointOf(w.ctx, "f", "first")
		if err != nil {
			return err
		}
		return second(operate.On(w.Engine).Resume(w.ctx, "f", operate.ResumeOptions{FromCheckpoint: at}))
	}},
	{name: "Resume of a cancelled run", before: func(w *actWorld) error { return errors.Join(waits(w), w.Cancel(w.ctx, "r", "by mistake")) }, do: func(w *actWorld) error {
		return second(operate.On(w.Engine).Resume(w.ctx, "r", operate.ResumeOptions{Force: true}))
	}},
	{name: "RetryFailed", do: func(w *actWorld) error { return second(w.letters.Start(w.ctx, "l", 3)) }},
	{name: "Jump", before: waits, do: func(w *actWorld) error {
		at, err := operate.On(w.Engine).CheckpointOf(w.ctx, "r", "first")
		if err != nil {
			return err
		}
		if w.has("r", store.JumpActivated) {
			return nil // that again would be another jump
		}
		return second(operate.On(w.Engine).Jump(w.ctx, "r", at, operate.JumpOptions{}))
	}},
	{name: "Edit", before: waits, do: func(w *actWorld) error {
		if w.has("r", store.Edited) {
			return nil
		}
		return second(operate.On(w.Engine).Edit(w.ctx, "r", "first", 70, operate.EditOptions{}))
	}},
	{name: "Fork", before: waits, do: func(w *actWorld) error {
		return second(operate.On(w.Engine).Fork(w.ctx, "r", operate.ForkOptions{ID: "fork"}))
	}},
	{name: "Fork with an edit", before: waits, do: func(w *actWorld) error {
		return second(operate.On(w.Engine).Fork(w.ctx, "r", operate.ForkOptions{ID: "fork", Edits: map[string]any{"first": 70}}))
	}},
	{name: "Repair", before: torn, do: func(w *actWorld) error {
		return second(operate.On(w.Engine).Repair(w.ctx, "r", operate.RepairOptions{}))
	}},
	{name: "StartJSON", do: func(w *actWorld) error {
		return second(operate.On(w.Engine).StartJSON(w.ctx, "order", "r", json.RawMessage("1")))
	}},
	{name: "Answer", before: waits, do: func(w *actWorld) error {
		open, err := operate.On(w.Engine).ApprovalsOf(w.ctx, "r")
		if err != nil || len(open) == 0 {
			return err // it is answered
		}
		return operate.On(w.Engine).Answer(w.ctx, open[0], "now")
	}},
	{name: "Request", before: waits, do: func(w *actWorld) error {
		ctx, stop := context.WithTimeout(w.ctx, time.Second)
		defer stop()
		_, err := durable.Request[int](ctx, "r", "state", 1, durable.SignalID("1"))
		return err // nobody answers
	}},
	{name: "Adopt", before: waits, do: func(w *actWorld) error { return w.Adopt(w.ctx, "r") }},
	{name: "ResumeAll", before: func(w *actWorld) error {
		_, err := w.flaky.Start(w.ctx, "g", 1)
		return errors.Join(err, fails(w))
	}, do: func(w *actWorld) error {
		var errs []error
		for _, err := range operate.On(w.Engine).ResumeAll(w.ctx, store.Filter{}, operate.ResumeOptions{}) {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}},
	{name: "Restore", archived: []string{"a"}, do: func(w *actWorld) error {
		return second(archive.Restore(w.ctx, w.Engine, w.shelf, "a"))
	}},
	{name: "Import of a child that has ended", file: "kid", before: family, lost: "kid", do: func(w *actWorld) error {
		_, err := operate.On(w.Engine).Import(w.ctx, bytes.NewReader(w.file), operate.ImportOptions{})
		return errors.Join(err, second(operate.On(w.Engine).Resume(w.ctx, "p", operate.ResumeOptions{})))
	}},
	{name: "TriggerSchedule", before: hourly, do: func(w *actWorld) error {
		return second(operate.On(w.Engine).TriggerSchedule(w.ctx, "hourly", "once"))
	}},
	{name: "BackfillSchedule", before: hourly, do: func(w *actWorld) error {
		from := time.Date(1999, 12, 31, 20, 0, 0, 0, time.UTC)
		return second(operate.On(w.Engine).BackfillSchedule(w.ctx, "hourly", from, from.Add(3*time.Hour)))
	}},
	{name: "RecoverRun", before: torn, do: func(w *actWorld) error { return second(w.RecoverRun(w.ctx, "r")) }},
}

// wholeAct is an act, and what is there before it.
type wholeAct struct {
	name     string
	before   func(w *actWorld) error
	file     string   // the act has the file of this run, which waits in another store
	archived []string // runs that wait in the archive, of a store that was lost
	lost     string   // a run that is no more in the store
	archives bool     // the engines have the archive
	do       func(w *actWorld) error
}

func waits(w *actWorld) error { return w.start("r", 1) }

// hourly stores a schedule that is paused.
func hourly(w *actWorld) error {
	eng, err := durable.Open(w.ctx, w.data.Handle(), durable.Options{
		Workflows: []durable.Definition{w.order}, Grace: -1, Logger: slog.New(slog.DiscardHandler),
		Schedules: []durable.Schedule{w.order.Schedule("hourly", durable.Every(time.Hour), 0).Paused()},
	})
	if err != nil {
		return err
	}
	return eng.Close()
}

func family(w *actWorld) error { _, err := w.parent.Start(w.ctx, "p", 1); return err }

// fails leaves a run that has failed, and would not any more.
func fails(w *actWorld) error {
	if _, err := w.flaky.Start(w.ctx, "f", 1); err != nil {
		return err
	}
	time.Sleep(time.Second)
	w.mended.Store(true)
	return nil
}

// torn leaves a row that contradicts its events: it runs, and waits.
func torn(w *actWorld) error {
	if err := waits(w); err != nil {
		return err
	}
	time.Sleep(time.Second)
	h, err := w.data.Load(w.ctx, "r", store.Cursor{NoEvents: true})
	if err != nil {
		return err
	}
	running := store.Running
	return w.data.Commit(w.ctx, []store.Change{{RunID: "r", Expect: store.Expect{Epoch: h.Run.Epoch}, Row: &store.RowPatch{Status: &running}}})[0]
}

func second[T any](_ T, err error) error { return err }

// actWorld is data and one process on it.
type actWorld struct {
	*durable.Engine
	t      *testing.T
	ctx    context.Context
	data   *memory.Store
	shelf  archive.Archive
	file   []byte
	mended atomic.Bool
	act    *wholeAct

	order    *durable.Workflow[int, int]
	parent   *durable.Workflow[int, int]
	renewing *durable.Workflow[int, int]
	flaky    *durable.Workflow[int, int]
	letters  *durable.Workflow[int, int]
}

func newActWorld(t *testing.T, act *wholeAct) *actWorld {
	w := &actWorld{t: t, data: memory.Open(), act: act}
	d, err := archive.OpenDir(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	w.shelf = d
	step := func(ctx context.Context, name string) (int, error) {
		return durable.Step(ctx, name, func(context.Context) (int, error) { return 7, nil })
	}
	w.order = durable.Define("order", func(ctx context.Context, in int) (int, error) {
		n, err := step(ctx, "first")
		if err != nil || in == 0 {
			return n, err
		}
		if _, err := durable.Await[string](ctx, "go", durable.Prompt("go on?")); err != nil {
			return 0, err
		}
		return step(ctx, "last")
	})
	w.parent = durable.Define("parent", func(ctx context.Context, in int) (int, error) {
		if _, err := step(ctx, "first"); err != nil {
			return 0, err
		}
		return w.order.Run(ctx, "kid", in)
	})
	w.renewing = durable.Define("renewing", func(ctx context.Context, in int) (int, error) {
		if n, err := step(ctx, "first"); err != nil || in == 0 {
			return n, err
		}
		return 0, durable.Continue(ctx, in-1)
	})
	w.letters = durable.Define("letters", func(ctx context.Context, in int) (int, error) {
		all := slices.Collect(func(yield func(int) bool) {
			for i := range in {
				if !yield(i) {
					return
				}
			}
		})
		goOn := durable.MapOptions{KeepGoing: true}
		sent, err := durable.Map(ctx, "send", all, goOn, func(_ context.Context, i int) (int, error) {
			if i == 1 {
				return 0, durable.Permanent(errors.New("no such address"))
			}
			return i, nil
		})
		sent, err = durable.RetryFailed(ctx, "send again", all, sent, err, goOn, func(_ context.Context, i int) (int, error) { return i, nil })
		return len(sent), err
	})
	w.flaky = durable.Define("flaky", func(ctx context.Context, _ int) (int, error) {
		if _, err := step(ctx, "first"); err != nil {
			return 0, err
		}
		return durable.Step(ctx, "second", func(context.Context) (int, error) {
			if !w.mended.Load() {
				return 0, errors.New("the bank is closed")
			}
			return 7, nil
		})
	})
	return w
}

// has reports whether the history of a run has an event of a type.
func (w *actWorld) has(id string, is store.Type) bool {
	for ev, err := range w.History(w.ctx, id) {
		if err == nil && ev.Type == is {
			return true
		}
	}
	return false
}

func (w *actWorld) start(id string, in int) error {
	_, err := w.order.Start(w.ctx, id, in)
	return err
}

// boot begins a process on a way to the data.
func (w *actWorld) boot(st store.Store) {
	o := durable.Options{
		Workflows: []durable.Definition{w.order, w.parent, w.renewing, w.flaky, w.letters}, Grace: -1, Logger: slog.New(slog.DiscardHandler),
	}
	if w.act.archives {
		o.Archive = w.shelf
	}
	var err error
	w.Engine, err = durable.Open(context.Background(), st, o)
	if err != nil {
		return
	}
	w.ctx = durable.NewContext(context.Background(), w.Engine)
	_, err = w.Recover(w.ctx)
	_ = err // it may have died
	time.Sleep(time.Second)
}

// settle lets everything happen that happens without anybody's act.
func (w *actWorld) settle() {
	time.Sleep(3 * durable.DefaultLease)
	synctest.Wait()
}

// prepare makes what is there before the act, by a process that then ends.
func (w *actWorld) prepare() {
	lost := func(id string) []byte {
		other := newActWorld(w.t, w.act)
		other.boot(other.data)
		if id == "kid" { // of a parent, and it has ended
			_, err := other.parent.Start(other.ctx, "p", 1)
			require.NoError(w.t, err)
			other.settle()
			require.NoError(w.t, other.Signal(other.ctx, id, "go", "now"))
		} else {
			require.NoError(w.t, other.start(id, 1))
			other.settle()
			require.NoError(w.t, other.Signal(other.ctx, id, "for later", 1))
		}
		other.settle()
		var b bytes.Buffer
		require.NoError(w.t, operate.On(other.Engine).Export(other.ctx, id, &b))
		require.NoError(w.t, other.Close())
		return b.Bytes()
	}
	if w.act.file != "" {
		w.file = lost(w.act.file)
	}
	for _, id := range w.act.archived {
		require.NoError(w.t, w.shelf.Store(w.t.Context(), id, lost(id)))
	}
	if w.act.before == nil {
		return
	}
	w.boot(w.data.Handle())
	require.NoError(w.t, w.act.before(w))
	w.settle()
	require.NoError(w.t, w.Close())
	w.settle()
	if w.act.lost != "" {
		_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{w.act.lost}, Force: true})
		require.NoError(w.t, err)
	}
}

// face is what people see of the data: the runs, what they have come to, and the
// messages they have.
func (w *actWorld) face() map[string]string {
	face := map[string]string{}
	page, err := w.data.List(context.Background(), store.Filter{Limit: 1000})
	require.NoError(w.t, err)
	for i := range page.Runs {
		r := &page.Runs[i]
		face[r.ID] = fmt.Sprint(r.Workflow, " ", r.Status, " ", r.Code, " paused=", r.Paused, " generation=", r.Generation, " from=", r.ForkedFrom, " parent=", r.Parent, " inbox=", r.Inbox)
	}
	return face
}

// stranded returns the runs that nobody will ever take up and nobody is told of.
func (w *actWorld) stranded() (ids []string) {
	stuck, err := operate.On(w.Engine).Stuck(w.ctx, 0)
	require.NoError(w.t, err)
	page, err := w.data.List(context.Background(), store.Filter{Limit: 1000})
	require.NoError(w.t, err)
	for i := range page.Runs {
		r := &page.Runs[i]
		if r.Status.Terminal() || slices.ContainsFunc(stuck, func(s durable.Stuck) bool { return s.RunID == r.ID && s.Next != "" }) {
			continue
		}
		if r.Status != store.Waiting || r.Paused {
			ids = append(ids, fmt.Sprintf("%s (%s %s)", r.ID, r.Status, r.Code))
		}
	}
	return ids
}

// check looks for what never holds, whatever was killed.
func (w *actWorld) check(when string) {
	require.Empty(w.t, w.stranded(), "%s: stranded", when)
	for v, err := range operate.On(w.Engine).VerifyAll(w.ctx, store.Filter{}) {
		require.NoError(w.t, err, when)
		if h, err := w.data.Load(w.ctx, v.RunID, store.Cursor{NoEvents: true}); err == nil && h.Run.Code != durable.CodeImporting {
			require.True(w.t, v.Sound(), "%s: %+v", when, v)
		}
	}
	w.checkArchive(when)
}

// checkArchive looks for something acknowledged that is missing from the archive
// of a run which counts as archived.
func (w *actWorld) checkArchive(when string) {
	page, err := w.data.List(context.Background(), store.Filter{Limit: 1000, WithLast: true})
	require.NoError(w.t, err)
	for i := range page.Runs {
		r := &page.Runs[i]
		if r.ArchivedSeq < r.Last.Seq {
			continue
		}
		e, err := w.shelf.Get(w.ctx, r.ID)
		require.NoError(w.t, err, when)
		f, err := runfile.Read(bytes.NewReader(e.File), 1<<30)
		require.NoError(w.t, err, when)
		require.Equal(w.t, r.Last.Sum, f.Events[r.Last.Seq-1].Sum, when)
		require.Len(w.t, f.Inbox, int(r.Inbox), "%s: a message of %s is in no archive", when, r.ID)
	}
}

// trial prepares, and kills the act at one write. It reports whether it came to
// that write.
func (act *wholeAct) trial(t *testing.T, at int, after, again bool, want map[string]string) (died bool, face map[string]string) {
	w := newActWorld(t, act)
	w.prepare()
	m := crashstore.New(w.data.Handle())
	w.boot(crashstore.Notifier{Store: m})
	m.DieAt(m.Writes()+at, after)
	_ = act.do(w)
	w.settle()
	dead := w.Engine
	defer func() { _ = w.Close() }()
	defer func() { _ = dead.Close() }()
	if died = m.IsDead(); !died {
		if at == 0 {
			w.check("undisturbed")
		}
		face = w.face()
	}
	_ = dead.Close()
	w.settle()
	if !died {
		return false, face
	}
	w.boot(crashstore.Notifier{Store: crashstore.New(w.data.Handle())})
	w.settle()
	when := fmt.Sprintf("killed at write %d (after=%v)", at, after)
	if !again {
		w.check(when + ", and recovered")
	} else {
		err := act.do(w)
		w.settle()
		w.check(when + ", and called again")
		require.Equal(t, lines(want), lines(w.face()), "%s: the second call led elsewhere; it returned %v", when, err)
	}
	return true, nil
}

func lines(face map[string]string) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(face)) {
		fmt.Fprintln(&b, id, face[id])
	}
	return b.String()
}

func TestAnActThatIsKilledAtAnyWriteIsWholeWhenItIsCalledAgain(t *testing.T) {
	trials := 0
	for i := range wholeActs {
		act := &wholeActs[i]
		t.Run(act.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, want := act.trial(t, 0, false, false, nil)
				for at, more := 1, true; more; at++ {
					require.Less(t, at, 60)
					for _, again := range []bool{true, false} {
						for _, after := range []bool{false, true} {
							more, _ = act.trial(t, at, after, again, want)
							if more {
								trials++
							}
						}
					}
				}
			})
		})
	}
	tried.Say(t, "acts", "acts=%d kills=%d wrong=0", len(wholeActs), trials)
}
