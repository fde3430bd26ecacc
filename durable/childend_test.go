package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// letter is a child that ends as a signal tells it.
var letter = durable.Define("letter", func(ctx context.Context, _ string) (string, error) {
	how, err := durable.Await[string](ctx, "end")
	if err == nil && how == "fail" {
		err = errors.New("lost in the mail")
	}
	return "it said " + how, err
})

// writer is its parent, which says what it has seen of the end of its child.
var writer = durable.Define("writer", func(ctx context.Context, id string) (string, error) {
	c, err := durable.Ref[string, string]("letter").Start(ctx, id, "") // it may be another process's
	if err != nil {
		return "", err
	}
	out, err := c.Wait(ctx)
	if failed := (*durable.RunError)(nil); errors.As(err, &failed) {
		return fmt.Sprint(failed.RunID, " ", failed.Status, ": ", err), nil
	}
	return out, err
})

// exported returns the file of a run, and deletes the run.
func (w *world) exported(id string) []byte {
	w.t.Helper()
	var file bytes.Buffer
	require.NoError(w.t, operate.On(w.eng).Export(w.ctx(), id, &file))
	w.crash()
	w.expire()
	_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{id}, Force: true})
	require.NoError(w.t, err)
	return file.Bytes()
}

func TestARestoredParentFindsOutThatItsChildHasEnded(t *testing.T) {
	ends := map[string]struct {
		end  func(w *world, child string)
		want string
	}{
		"completed": {func(w *world, child string) {
			require.NoError(w.t, durable.Signal(w.ctx(), child, "end", "yes"))
		}, "it said yes"},
		"failed": {func(w *world, child string) {
			require.NoError(w.t, durable.Signal(w.ctx(), child, "end", "fail"))
		}, "p/letter failed: "},
		"cancelled": {func(w *world, child string) {
			require.NoError(w.t, w.eng.Cancel(w.ctx(), child, "enough"))
		}, "p/letter cancelled: "},
	}
	o := with(writer, letter)
	for name, x := range ends {
		for _, crashes := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, %d crashes", name, crashes), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.boot(t, o)
					start(t, w, writer, "p", durable.AutoID)
					w.eventually("p", store.Waiting)
					file := w.exported("p")
					w.boot(t, o)
					pass(time.Second)
					x.end(w, "p/letter")
					w.eventually("p/letter", store.Status(name))
					_, err := operate.On(w.eng).Import(w.ctx(), bytes.NewReader(file), operate.ImportOptions{})
					require.NoError(t, err)
					_, err = operate.On(w.eng).Resume(w.ctx(), "p", operate.ResumeOptions{})
					require.NoError(t, err)
					for range crashes {
						w.reboot(t, o)
					}
					out, err := wait(t, w, writer, "p")
					require.NoError(t, err)
					require.Contains(t, out, x.want)
					v, err := operate.On(w.eng).Verify(w.ctx(), "p")
					require.NoError(t, err)
					require.Empty(t, v.Findings)
					w.reboot(t, o)
					again, err := wait(t, w, writer, "p")
					require.NoError(t, err)
					require.Equal(t, out, again)
				})
			})
		}
	}
}

func TestARestoredParentStillHearsAChildThatGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := with(writer, letter)
		w.boot(t, o)
		start(t, w, writer, "p", durable.AutoID)
		w.eventually("p", store.Waiting)
		file := w.exported("p")
		w.boot(t, o)
		_, err := operate.On(w.eng).Import(w.ctx(), bytes.NewReader(file), operate.ImportOptions{})
		require.NoError(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), "p", operate.ResumeOptions{})
		require.NoError(t, err)
		w.eventually("p", store.Waiting)
		require.NoError(t, durable.Signal(w.ctx(), "p/letter", "end", "yes"))
		out, err := wait(t, w, writer, "p")
		require.NoError(t, err)
		require.Equal(t, "it said yes", out)
	})
}

func TestAParentWhoseChildIsNotThereIsStuckByName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := with(writer, letter)
		w.boot(t, o)
		start(t, w, writer, "p", durable.AutoID)
		w.eventually("p", store.Waiting)
		child := w.exported("p/letter")
		w.boot(t, o)
		v, err := operate.On(w.eng).Verify(w.ctx(), "p")
		require.NoError(t, err)
		require.Len(t, v.Findings, 1)
		require.Equal(t, operate.FoundStranded, v.Findings[0].Kind)
		require.NoError(t, durable.Signal(w.ctx(), "p", "look", true))
		pass(time.Minute)
		row := w.eventually("p", store.Interrupted)
		require.Equal(t, durable.CodeChildMissing, row.Code)
		require.Contains(t, row.Reason, "p/letter")
		stuck, err := operate.On(w.eng).Stuck(w.ctx(), 0)
		require.NoError(t, err)
		require.Len(t, stuck, 1)
		require.Contains(t, stuck[0].Next, "restore the child")

		_, err = operate.On(w.eng).Import(w.ctx(), bytes.NewReader(child), operate.ImportOptions{})
		require.NoError(t, err)
		for _, id := range []string{"p/letter", "p"} {
			_, err = operate.On(w.eng).Resume(w.ctx(), id, operate.ResumeOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, durable.Signal(w.ctx(), "p/letter", "end", "yes"))
		out, err := wait(t, w, writer, "p")
		require.NoError(t, err)
		require.Equal(t, "it said yes", out)
	})
}

func TestAParentHearsOfAChildThatWasCancelledBeforeItBegan(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("writer", func(ctx context.Context, _ int) (string, error) {
			_, err := durable.Ref[string, string]("letter").Run(ctx, durable.AutoID, "")
			return fmt.Sprint(err), nil
		})
		w.serve(t, wf)
		h := start(t, w, wf, "p", 0)
		w.eventually("p", store.Waiting)
		require.Equal(t, store.Pending, w.row("p/letter").Status)
		require.NoError(t, w.eng.Cancel(w.ctx(), "p/letter", "nobody has it"))
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Contains(t, out, "nobody has it")
	})
}

func TestSeveralGoroutinesThatWaitForOneChildAllGoOn(t *testing.T) {
	for _, c := range []struct {
		unload time.Duration
		reboot bool
	}{{unload: -1}, {unload: -1, reboot: true}, {unload: time.Nanosecond, reboot: true}} {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("readers", func(ctx context.Context, n int) (string, error) {
				child, err := letter.Start(ctx, durable.AutoID, "")
				if err != nil {
					return "", err
				}
				var all []*durable.Future[string]
				for i := range n {
					all = append(all, durable.Go(ctx, fmt.Sprint("reader", i), func(ctx context.Context) (string, error) {
						out, err := child.Wait(ctx)
						if err != nil {
							return "", err
						}
						return durable.Step(ctx, "read", func(context.Context) (string, error) { return out, nil })
					}))
				}
				var out []string
				for _, f := range all {
					s, err := f.Wait(ctx)
					if err != nil {
						return "", err
					}
					out = append(out, s)
				}
				return fmt.Sprint(out), nil
			})
			o := durable.Options{Workflows: []durable.Definition{wf, letter}, UnloadAfter: c.unload}
			w.boot(t, o)
			start(t, w, wf, "p", 3)
			w.eventually("p", store.Waiting)
			if c.reboot {
				w.reboot(t, o)
				w.eventually("p", store.Waiting)
			}
			require.NoError(t, durable.Signal(w.ctx(), "p/letter", "end", "yes"))
			pass(time.Minute)
			require.Equal(t, store.Completed, w.row("p").Status)
			out, err := wait(t, w, wf, "p")
			require.NoError(t, err)
			require.Equal(t, "[it said yes it said yes it said yes]", out)
			n := 0
			for _, ev := range w.events("p") {
				if ev.Type == store.ChildFinished {
					n++
				}
			}
			require.Equal(t, 1, n)
		})
	}
}

func TestAChildWhoseIdWasChosenIsNotRunAgainWhateverItsIdBeginsWith(t *testing.T) {
	for _, id := range []string{"mine", "p/mine", "p/letter"} {
		inWorld(t, func(t *testing.T, w *world) {
			bodies := 0
			child := durable.Define("letter", func(ctx context.Context, _ string) (int, error) {
				return durable.Step(ctx, "body", func(context.Context) (int, error) { bodies++; return bodies, nil })
			})
			wf := durable.Define("writer", func(ctx context.Context, _ int) (int, error) {
				if err := durable.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				n, err := child.Run(ctx, id, "")
				if err != nil {
					return 0, err
				}
				_, err = durable.Await[bool](ctx, "end")
				return n, err
			})
			w.boot(t, with(wf, child))
			start(t, w, wf, "p", 0)
			w.eventually("p", store.Waiting)
			pass(time.Second)
			at, err := operate.On(w.eng).CheckpointOf(w.ctx(), "p", "before")
			require.NoError(t, err)
			_, err = operate.On(w.eng).Jump(w.ctx(), "p", at, operate.JumpOptions{})
			require.NoError(t, err)
			require.NoError(t, durable.Signal(w.ctx(), "p", "end", true))
			out, err := wait(t, w, wf, "p")
			require.NoError(t, err)
			require.Equal(t, 1, out)
			require.Equal(t, 1, bodies, id)
		})
	}
}

func TestAJumpSparesAChildUnderWayWhoseIdWasChosen(t *testing.T) {
	for _, id := range []string{"p/mine", "p/letter"} {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("writer", func(ctx context.Context, _ int) (string, error) {
				if err := durable.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
					return "", err
				}
				return letter.Run(ctx, id, "")
			})
			w.boot(t, with(wf, letter))
			start(t, w, wf, "p", 0)
			w.eventually("p", store.Waiting)
			w.eventually(id, store.Waiting)
			at, err := operate.On(w.eng).CheckpointOf(w.ctx(), "p", "before")
			require.NoError(t, err)
			_, err = operate.On(w.eng).Jump(w.ctx(), "p", at, operate.JumpOptions{})
			require.NoError(t, err)
			require.NoError(t, durable.Signal(w.ctx(), id, "end", "yes"))
			out, err := wait(t, w, wf, "p")
			require.NoError(t, err)
			require.Equal(t, "it said yes", out)
		})
	}
}

func TestAChildThatALeftOverBranchStartsWhileItsParentEndsIsCancelled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		inBody := make(chan struct{})
		wf := durable.Define("writer", func(ctx context.Context, _ int) (string, error) {
			durable.Go(ctx, "left over", func(ctx context.Context) (string, error) {
				_, err := letter.Start(ctx, "kid", "")
				return "", err
			})
			<-inBody
			return "", durable.Permanent(errors.New("no more"))
		})
		w.serve(t, wf, letter)
		release := make(chan struct{})
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if slices.ContainsFunc(batch, func(c store.Change) bool { return len(c.Start) > 0 }) {
				<-release
			}
			return forward()
		})
		start(t, w, wf, "p", 0)
		synctest.Wait() // the start of the child is under way
		close(inBody)
		synctest.Wait() // the parent is ending
		close(release)
		w.eventually("p", store.Failed)
		row := w.eventually("kid", store.Cancelled)
		require.Contains(t, row.Reason, "its parent p has ended")
	})
}
