package durable_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func export(t *testing.T, w *world, id string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, operate.On(w.eng).Export(context.Background(), id, &b))
	return b.Bytes()
}

func imports(w *world, file []byte, o operate.ImportOptions) (operate.Imported, error) {
	return operate.On(w.eng).Import(context.Background(), bytes.NewReader(file), o)
}

// whole returns every event of a run, without epochs.
func (w *world) whole(id string) []store.Event {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(w.t, err)
	var all []store.Event
	for e, err := range h.Events {
		require.NoError(w.t, err)
		e.Epoch = 0
		all = append(all, e)
	}
	return all
}

// A traveller waits for a signal, with a generation and a refused attempt behind
// it.
func traveller() *durable.Workflow[int, string] {
	return durable.Define("traveller", func(ctx context.Context, n int) (string, error) {
		if n > 0 {
			return "", durable.Continue(ctx, n-1)
		}
		if _, err := durable.Retry(ctx, "try", durable.Policy{Initial: time.Second}, func(ctx context.Context) (string, error) {
			if durable.Attempt(ctx).Number == 1 {
				return "", errors.New("not yet")
			}
			return strings.Repeat("long ", 100), nil
		}); err != nil {
			return "", err
		}
		first, err := durable.Await[string](ctx, "go")
		if err != nil {
			return "", err
		}
		second, err := durable.Await[string](ctx, "on")
		return first + second, err
	})
}

func TestARunThatTravelsGoesOnWithTheHistoryItHad(t *testing.T) {
	for name, o := range map[string]durable.Options{
		"plain": {}, "encrypted and compressed": {Encrypt: keysOf("k1"), CompressAbove: 20},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := traveller()
				o.Workflows = []durable.Definition{wf}
				w.boot(t, o)
				h, err := wf.Start(w.ctx(), "r", 2, durable.Attributes(map[string]string{"a": "b"}), durable.Exclusive("key"))
				require.NoError(t, err)
				pass(5 * time.Second)
				require.NoError(t, durable.Signal(w.ctx(), h.ID(), "go", "one "))
				pass(5 * time.Second)
				before, file := w.whole("r"), export(t, w, "r")
				origin := w.row("r")

				w.data = newWorld(t).data // another place
				w.boot(t, o)
				got, err := imports(w, file, operate.ImportOptions{})
				require.NoError(t, err)
				require.Equal(t, operate.Imported{RunID: "r", Workflow: "traveller", Status: store.Interrupted, Events: len(before)}, got)
				require.Equal(t, before, w.whole("r"))
				row := w.row("r")
				require.Equal(t, durable.CodeImported, row.Code)
				require.Equal(t, origin.Attributes, row.Attributes)
				require.Equal(t, origin.CreatedAt, row.CreatedAt)
				require.Equal(t, origin.Generation, row.Generation)
				require.Empty(t, verify(t, w, "r").Findings)
				_, err = wf.Start(w.ctx(), "other", 0, durable.Exclusive("key"))
				require.ErrorIs(t, err, durable.ErrOccupied, "it holds its keys")
				again := export(t, w, "r")
				_, events, _ := bytes.Cut(file, []byte("\n{\"event\""))
				_, eventsAgain, _ := bytes.Cut(again, []byte("\n{\"event\""))
				require.Equal(t, string(events[:len(events)-100]), string(eventsAgain[:len(events)-100]))

				pass(time.Hour)
				require.Equal(t, store.Interrupted, w.row("r").Status, "nobody goes on with it unasked")
				require.NoError(t, second(operate.On(w.eng).Resume(context.Background(), "r", operate.ResumeOptions{})))
				require.NoError(t, durable.Signal(w.ctx(), "r", "on", "two"))
				out, err := finish(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "one two", out)
			})
		})
	}
}

func TestACopyUnderAnotherIDIsSealedForItsPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := durable.Options{Encrypt: keysOf("k1"), CompressAbove: 20}
		wf := traveller()
		o.Workflows = []durable.Definition{wf}
		w.boot(t, o)
		h, err := wf.Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		pass(5 * time.Second)
		require.NoError(t, durable.Signal(w.ctx(), h.ID(), "go", "one "))
		pass(5 * time.Second)
		file := export(t, w, "r")
		got, err := imports(w, file, operate.ImportOptions{NewID: "copy"})
		require.NoError(t, err)
		require.Equal(t, "copy", got.RunID)
		require.Equal(t, "r", w.row("copy").ForkedFrom)
		require.Empty(t, verify(t, w, "copy").Findings)
		require.NoError(t, second(operate.On(w.eng).Resume(context.Background(), "copy", operate.ResumeOptions{})))
		for _, id := range []string{"r", "copy"} {
			require.NoError(t, durable.Signal(w.ctx(), id, "on", id))
			out, err := finish(t, w, wf, id)
			require.NoError(t, err)
			require.Equal(t, "one "+id, out)
		}
		w.open(t, with(wf))
		_, err = imports(w, file, operate.ImportOptions{NewID: "third"})
		var und *durable.UndecodableError
		require.ErrorAs(t, err, &und, "without the key")
		_, err = w.data.Load(context.Background(), "third", store.Cursor{})
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestEndedRunsTravelAsTheyAre(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := shapes(&journal{})
		var defs []durable.Definition
		for _, wf := range all {
			defs = append(defs, wf)
		}
		w.boot(t, with(defs...))
		outs, files, histories := map[string]string{}, map[string][]byte{}, map[string][]store.Event{}
		for name, wf := range all {
			out, err := run(t, w, wf, name, 7)
			outs[name] = out + " " + fmtErr(err)
			files[name], histories[name] = export(t, w, name), w.whole(name)
		}
		w.data = newWorld(t).data
		w.boot(t, with(defs...))
		for name, wf := range all {
			_, err := imports(w, files[name], operate.ImportOptions{})
			require.NoError(t, err, name)
			require.Equal(t, histories[name], w.whole(name))
			out, err := finish(t, w, wf, name)
			require.Equal(t, outs[name], out+" "+fmtErr(err))
			require.Empty(t, verify(t, w, name).Findings, name)
			_, err = imports(w, files[name], operate.ImportOptions{})
			var exists *store.ExistsError
			require.ErrorAs(t, err, &exists)
			require.Equal(t, name, exists.RunID)
		}
	})
}

func fmtErr(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAFileThatWasChangedIsRefusedAndNothingIsWritten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := fourSteps(&hold{open: true})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 1)
		require.NoError(t, err)
		file := export(t, w, "r")
		w.data = newWorld(t).data
		w.open(t, with(wf))
		for i := range file {
			bad := bytes.Clone(file)
			bad[i] ^= 4
			_, err := imports(w, bad, operate.ImportOptions{})
			require.ErrorIs(t, err, operate.ErrBadFile, "byte %d", i)
			_, err = imports(w, file[:i], operate.ImportOptions{})
			require.ErrorIs(t, err, operate.ErrBadFile, "cut off at %d", i)
		}
		_, err = imports(w, append(bytes.Clone(file), 'x'), operate.ImportOptions{})
		require.ErrorIs(t, err, operate.ErrBadFile)
		future := bytes.Replace(file, []byte(`"format":1`), []byte(`"format":7`), 1)
		_, err = imports(w, future, operate.ImportOptions{})
		require.ErrorIs(t, err, operate.ErrBadFile)
		require.ErrorContains(t, err, "format 7 is newer than format 1")
		_, err = imports(w, file, operate.ImportOptions{MaxBytes: 100})
		require.ErrorIs(t, err, store.ErrTooLarge)
		_, err = imports(w, file, operate.ImportOptions{NewID: "a\nb"})
		require.ErrorIs(t, err, durable.ErrInvalid)
		page, err := w.data.List(context.Background(), store.Filter{})
		require.NoError(t, err)
		require.Empty(t, page.Runs)
		_, err = imports(w, file, operate.ImportOptions{})
		require.NoError(t, err)
	})
}

func TestAnImportThatIsKilledIsFinishedByASecondOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := traveller()
		w.boot(t, with(wf))
		h, err := wf.Start(w.ctx(), "r", 3)
		require.NoError(t, err)
		pass(5 * time.Second)
		require.NoError(t, durable.Signal(w.ctx(), h.ID(), "go", "one "))
		pass(time.Second)
		open := export(t, w, "r")
		require.NoError(t, durable.Signal(w.ctx(), h.ID(), "on", "two"))
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
		done := export(t, w, "r")
		secret := with(wf)
		secret.Encrypt = keysOf("k1")
		for name, file := range map[string][]byte{"open": open, "done": done} {
			for as, o := range map[string]durable.Options{"r": with(wf), "copy": with(wf), "secret": secret} {
				for at := 1; at < 20; at++ {
					for _, after := range []bool{false, true} {
						killed := killedImport(t, w, o, file, as, at, after)
						if !killed && !after {
							require.Greater(t, at, 5, "%s as %s: it took several writes", name, as)
						}
					}
				}
			}
		}
	})
}

// killedImport kills an import at its nth write, looks at what is there, and
// imports again. It reports whether there was such a write.
func killedImport(t *testing.T, w *world, o durable.Options, file []byte, as string, at int, after bool) bool {
	w.data = newWorld(t).data
	o.Lease = rareBeats
	w.open(t, o)
	writes := 0
	w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
		if writes++; writes < at {
			return forward()
		}
		if writes == at && after {
			forward()
		}
		return all(batch, store.ErrClosed)
	})
	_, err := imports(w, file, operate.ImportOptions{NewID: as})
	if err == nil {
		return false
	}
	w.crash()
	w.expire()
	w.boot(t, o)
	pass(2 * rareBeats)
	if h, err := w.data.Load(context.Background(), as, store.Cursor{NoEvents: true}); err == nil && h.Run.Code == durable.CodeImporting {
		require.Empty(t, h.Run.Owner, "nobody executes what is half there")
		require.Error(t, second(operate.On(w.eng).Resume(context.Background(), as, operate.ResumeOptions{})))
		require.False(t, first(operate.On(w.eng).Verify(context.Background(), as)).Sound())
		require.Error(t, operate.On(w.eng).Export(context.Background(), as, &bytes.Buffer{}))
	}
	if _, err = imports(w, file, operate.ImportOptions{NewID: as}); err != nil {
		require.ErrorIs(t, err, store.ErrExists, "only the reply to the last write was lost")
		require.NotContains(t, err.Error(), "delete it first")
		require.True(t, after)
	}
	require.Empty(t, verify(t, w, as).Findings)
	return true
}

// A run that is half there is paused, so that nobody executes it. Unpause went through, and wrote
// an event behind which the import never found its place again.
func TestNothingIsWrittenBetweenTheEventsOfARunThatIsBeingImported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := traveller()
		w.boot(t, with(wf))
		_, err := wf.Start(w.ctx(), "r", 3)
		require.NoError(t, err)
		pass(5 * time.Second)
		file := export(t, w, "r")
		writes := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if writes++; writes > 2 {
				return all(batch, store.ErrInvalid)
			}
			return forward()
		})
		_, err = imports(w, file, operate.ImportOptions{NewID: "copy"})
		require.Error(t, err)
		w.disk.tamper(nil)
		row := w.row("copy")
		require.Equal(t, durable.CodeImporting, row.Code)
		op := operate.On(w.eng)
		require.ErrorIs(t, w.eng.Unpause(w.ctx(), "copy"), durable.ErrNotResumable)
		require.ErrorIs(t, w.eng.Pause(w.ctx(), "copy", "wait"), durable.ErrNotResumable)
		require.Error(t, second(op.Jump(w.ctx(), "copy", 1, operate.JumpOptions{Force: true})))
		require.Error(t, second(op.Repair(w.ctx(), "copy", operate.RepairOptions{Force: true})))
		require.Equal(t, row.Last.Seq, w.row("copy").Last.Seq)
		require.NoError(t, second(imports(w, file, operate.ImportOptions{NewID: "copy"})))
		require.Empty(t, verify(t, w, "copy").Findings)
	})
}

func first(v operate.Verification, _ error) *operate.Verification { return &v }

func TestRunFilesOfEarlierVersionsAreImported(t *testing.T) {
	const golden = goldenDir + "run.jsonl"
	inWorld(t, func(t *testing.T, w *world) {
		wf := traveller()
		o := durable.Options{Workflows: []durable.Definition{wf}, Encrypt: goldenKeys(), CompressAbove: 20}
		file, err := os.ReadFile(golden)
		if errors.Is(err, fs.ErrNotExist) && updating() {
			w.boot(t, o)
			h, err := wf.Start(w.ctx(), "golden ü", 1, durable.Attributes(map[string]string{"k": "v"}))
			require.NoError(t, err)
			pass(5 * time.Second)
			require.NoError(t, durable.Signal(w.ctx(), h.ID(), "go", "one "))
			synctest.Wait()
			file = export(t, w, "golden ü")
			require.NoError(t, os.WriteFile(golden, file, 0o644))
			w.data = newWorld(t).data
		} else {
			require.NoError(t, err)
		}
		w.boot(t, o)
		_, err = imports(w, file, operate.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, verify(t, w, "golden ü").Findings)
		require.NoError(t, second(operate.On(w.eng).Resume(context.Background(), "golden ü", operate.ResumeOptions{})))
		require.NoError(t, durable.Signal(w.ctx(), "golden ü", "on", "two"))
		out, err := finish(t, w, wf, "golden ü")
		require.NoError(t, err)
		require.Equal(t, "one two", out)
	})
}
