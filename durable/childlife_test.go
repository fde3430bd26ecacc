package durable_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A child with an id that the same parent has used before is another run, once the
// earlier one is deleted: the parent hears of it, and not of the earlier one again.
func TestAChildWithAnIdThatWasUsedBeforeTellsItsOwnOutcome(t *testing.T) {
	for _, sender := range []string{"this version", "an earlier version"} {
		for name, again := range map[string]func(t *testing.T, w *world){
			"a later generation": func(t *testing.T, w *world) {
				require.NoError(t, durable.Signal(w.ctx(), "p", "next", "continue"))
			},
			"a cut": func(t *testing.T, w *world) {
				_, err := operate.On(w.eng).Jump(w.ctx(), "p", seqOf(t, w, "p", "before"), operate.JumpOptions{})
				require.NoError(t, err)
			},
			"a cut, loaded anew": func(t *testing.T, w *world) {
				_, err := operate.On(w.eng).Jump(w.ctx(), "p", seqOf(t, w, "p", "before"), operate.JumpOptions{})
				require.NoError(t, err)
				require.NoError(t, w.eng.Pause(w.ctx(), "p", ""))
				require.NoError(t, w.eng.Unpause(w.ctx(), "p"))
			},
		} {
			t.Run(name+", first told by "+sender, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					lives := 0
					parent, kid := againAndAgain("chosen", &lives)
					w.boot(t, with(parent, kid))
					if sender != "this version" {
						w.disk.tamper(asBefore)
					}
					start(t, w, parent, "p", 0)
					w.eventually("chosen", store.Completed)
					w.eventually("p", store.Waiting)
					w.disk.tamper(nil)
					_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{"chosen"}})
					require.NoError(t, err)
					pass(time.Second)
					again(t, w)
					pass(time.Minute)
					require.Equal(t, 2, lives)
					require.NoError(t, durable.Signal(w.ctx(), "p", "next", "end"))
					pass(time.Minute)
					require.Equal(t, store.Completed, w.row("p").Status, w.log)
					out, err := wait(t, w, parent, "p")
					require.NoError(t, err)
					require.Equal(t, 2, out)
					checkVerified(t, w.data)
				})
			})
		}
	}
}

// asBefore has children tell their outcome as earlier versions did: under the id of
// the child, and without its life.
func asBefore(batch []store.Change, forward func() []error) []error {
	for i := range batch {
		for j := range batch[i].Send {
			m := &batch[i].Send[j]
			if m.Kind != store.KindChild {
				continue
			}
			var d map[string]any
			if err := json.Unmarshal(m.Data, &d); err != nil {
				panic(err)
			}
			delete(d, "life")
			delete(d, "sum")
			m.ID = "chosen"
			m.Data, _ = json.Marshal(d)
		}
	}
	return forward()
}

// A child that a cut leaves behind goes on under its chosen id, and the new branch
// finds it: what it has told before counts.
func TestAChildThatACutHasLeftBehindIsHeardOnTheNewBranch(t *testing.T) {
	for _, sender := range []string{"this version", "an earlier version"} {
		t.Run(sender, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				lives := 0
				kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) {
					return durable.Step(ctx, "s", func(context.Context) (int, error) { lives++; return lives, nil })
				})
				parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Do(ctx, "before", doNothing); err != nil {
						return 0, err
					}
					n, err := kid.Run(ctx, "chosen", 0)
					if err != nil {
						return 0, err
					}
					_, err = durable.Await[string](ctx, "next")
					return n, err
				})
				w.boot(t, with(parent, kid))
				if sender != "this version" {
					w.disk.tamper(asBefore)
				}
				start(t, w, parent, "p", 0)
				w.eventually("chosen", store.Completed)
				w.eventually("p", store.Waiting)
				w.disk.tamper(nil)
				_, err := operate.On(w.eng).Jump(w.ctx(), "p", seqOf(t, w, "p", "before"), operate.JumpOptions{})
				require.NoError(t, err)
				pass(time.Minute)
				require.NoError(t, durable.Signal(w.ctx(), "p", "next", "end"))
				out, err := wait(t, w, parent, "p")
				require.NoError(t, err)
				require.Equal(t, 1, out)
				require.Equal(t, 1, lives)
			})
		})
	}
}

// againAndAgain is a parent that runs a child under an id of its choice, once a generation or
// after each cut, and the child, which returns the number of its life.
func againAndAgain(id string, lives *int) (parent, kid *durable.Workflow[int, int]) {
	kid = durable.Define("kid", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Sleep(ctx, time.Second); err != nil {
			return 0, err
		}
		return durable.Step(ctx, "s", func(context.Context) (int, error) { *lives++; return *lives, nil })
	})
	parent = durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Do(ctx, "before", doNothing); err != nil {
			return 0, err
		}
		n, err := kid.Run(ctx, id, 0)
		if err != nil {
			return 0, err
		}
		next, err := durable.Await[string](ctx, "next")
		if err == nil && next == "continue" {
			return 0, durable.Continue(ctx, 0)
		}
		return n, err
	})
	return parent, kid
}
