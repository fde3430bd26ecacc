package durable_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// paying is a parent whose child "pay" gets a derived id, and the program of strangers.
func paying() (parent, pay, stranger *durable.Workflow[int, int]) {
	pay = durable.Define("pay", func(ctx context.Context, n int) (int, error) {
		return durable.Step(ctx, "charge", func(context.Context) (int, error) { return n, nil })
	})
	parent = durable.Define("order", func(ctx context.Context, n int) (int, error) {
		got, err := pay.Run(ctx, durable.AutoID, n)
		if err != nil {
			return 0, err
		}
		_, err = durable.Await[int](ctx, "go")
		return got, err
	})
	stranger = durable.Define("stranger", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "never") })
	return parent, pay, stranger
}

// childIn is the id of the child that a history says was started last.
func childIn(t *testing.T, w *world, id string) (child string) {
	for _, e := range w.events(id) {
		if e.Type == store.ChildStarted {
			var d struct{ Child string }
			require.NoError(t, json.Unmarshal(e.Data, &d))
			child = d.Child
		}
	}
	return child
}

// Whoever takes the id that a child would get, before its parent exists, does not decide
// what becomes of the parent.
func TestAChildWhoseIDAnotherRunHasGetsAnotherOne(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, w *world){
		"a run of another workflow": func(t *testing.T, w *world) {
			_, _, stranger := paying()
			start(t, w, stranger, "o/pay", 0)
		},
		"a run of the same workflow with the same input": func(t *testing.T, w *world) {
			_, pay, _ := paying()
			start(t, w, pay, "o/pay", 7)
		},
		"a child of another run": func(t *testing.T, w *world) {
			_, pay, _ := paying()
			other := durable.Define("other", func(ctx context.Context, _ int) (int, error) { return pay.Run(ctx, "o/pay", 7) })
			w.serve(t, other, pay)
			_, err := run(t, w, other, "other", 0)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				parent, pay, stranger := paying()
				w.boot(t, with(parent, pay, stranger))
				take(t, w)
				w.boot(t, with(parent, pay, stranger))
				before := w.row("o/pay")
				start(t, w, parent, "o", 7)
				w.eventually("o", store.Waiting)
				child := childIn(t, w, "o")
				require.True(t, strings.HasPrefix(child, "o/pay~x"), child)
				require.Equal(t, store.Completed, w.row(child).Status)
				require.Equal(t, "o", w.row(child).Parent)
				now := w.row("o/pay")
				require.Equal(t, before.Epoch, now.Epoch)
				require.Equal(t, before.Parent, now.Parent)

				w.reboot(t, with(parent, pay, stranger)) // replays, and finds the same child
				require.NoError(t, w.eng.Signal(w.ctx(), "o", "go", 1))
				out, err := wait(t, w, parent, "o")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, child, childIn(t, w, "o"))
				v, err := operate.On(w.eng).Verify(w.ctx(), "o")
				require.NoError(t, err)
				require.True(t, v.Sound(), "%+v", v)

				// Taken back, the parent starts another one, as it would without a stranger.
				at := int64(2)
				_, err = operate.On(w.eng).Resume(w.ctx(), "o", operate.ResumeOptions{FromCheckpoint: at, Force: true})
				if err == nil {
					w.eventually("o", store.Waiting)
					require.True(t, strings.HasPrefix(childIn(t, w, "o"), "o/pay~b1"), childIn(t, w, "o"))
				}
			})
		})
	}
}

// livedOnce leaves the child of a parent "o" with input 7, which has completed and is
// deleted.
func livedOnce(t *testing.T, w *world) (parent *durable.Workflow[int, int]) {
	t.Helper()
	parent, pay, stranger := paying()
	w.boot(t, with(parent, pay, stranger))
	start(t, w, parent, "o", 7)
	w.eventually("o", store.Waiting)
	require.NoError(t, w.eng.Signal(w.ctx(), "o", "go", 1))
	w.eventually("o", store.Completed)
	_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{"o"}, Force: true})
	require.NoError(t, err)
	pass(time.Minute)
	w.reboot(t, with(parent, pay, stranger))
	return parent
}

// A run of this parent and this call with another input is no stranger: to start one
// beside it could do the work twice.
func TestAChildOfAnEarlierLifeOfItsParentIsNotTakenForAStranger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		parent := livedOnce(t, w)
		_, err := run(t, w, parent, "o", 8)
		require.ErrorIs(t, err, durable.ErrConflict)
	})
}

// So is one with the same input: it is the child, and what it came to is heard.
func TestAChildOfAnEarlierLifeOfItsParentIsFoundWithItsOutcome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		parent := livedOnce(t, w)
		start(t, w, parent, "o", 7)
		pass(10 * time.Minute)
		require.Contains(t, w.story("o"), "child_finished pay", "%v\n%s", w.story("o"), w.log)
	})
}

// Ids that are too long for another one are refused as before.
func TestAChildOfAVeryLongIDCannotEvade(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		parent, pay, stranger := paying()
		id := strings.Repeat("o", 1<<10-len("/pay"))
		w.boot(t, with(parent, pay, stranger))
		start(t, w, stranger, id+"/pay", 0)
		_, err := run(t, w, parent, id, 7)
		require.ErrorIs(t, err, durable.ErrConflict)
	})
}

// A child that goes on from an earlier life of its parent is not executed a second time,
// and what it comes to is heard, whether the workflow has chosen its id or not.
func TestABodyOfAChildOfAnEarlierLifeDoesNotRunTwice(t *testing.T) {
	for _, id := range []string{durable.AutoID, "chosen"} {
		t.Run(id, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				pay := durable.Define("pay", func(ctx context.Context, n int) (int, error) {
					if _, err := durable.Await[int](ctx, "now"); err != nil {
						return 0, err
					}
					return durable.Step(ctx, "charge", func(context.Context) (int, error) { bodies++; return n, nil })
				})
				parent := durable.Define("order", func(ctx context.Context, n int) (int, error) {
					kid, err := pay.Start(ctx, id, n, durable.Abandon())
					if err != nil || n == 7 && w.row("o").Attributes["wait"] == "" {
						return n, err
					}
					return kid.Wait(ctx)
				})
				w.boot(t, with(parent, pay))
				_, err := run(t, w, parent, "o", 7)
				require.NoError(t, err)
				_, err = w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{"o"}, Force: true})
				require.NoError(t, err)
				pass(time.Minute)
				h, err := parent.Start(w.ctx(), "o", 7, durable.Attributes(map[string]string{"wait": "yes"}))
				require.NoError(t, err)
				pass(time.Minute)
				kid := childIn(t, w, "o")
				require.NoError(t, w.eng.Signal(w.ctx(), kid, "now", 1))
				out, err := h.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 1, bodies)
				require.Empty(t, w.log.find("fenced"))
			})
		})
	}
}

// An item whose first call starts a child under an id that is taken is compared with what was
// recorded, as any other item is.
func TestAnotherItemIsNoticedThoughItsFirstChildWasRefused(t *testing.T) {
	for name, id := range map[string]string{"refused": "taken", "with another id": durable.AutoID} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				_, pay, stranger := paying()
				define := func(item int) *durable.Workflow[int, int] {
					return durable.Define("batch", func(ctx context.Context, _ int) (int, error) {
						got, err := durable.Map(ctx, "items", []int{item}, durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
							_, _ = pay.Start(ctx, id, 7)
							return durable.Await[int](ctx, "go")
						})
						if err != nil {
							return 0, err
						}
						return got[0], nil
					})
				}
				w.boot(t, with(define(1), pay, stranger))
				start(t, w, stranger, "taken", 0)
				start(t, w, stranger, "b/items[0]/pay", 0)
				start(t, w, define(1), "b", 0)
				w.eventually("b", store.Waiting)
				w.reboot(t, with(define(2), pay, stranger))
				require.NoError(t, w.eng.Signal(w.ctx(), "b", "go", 1))
				_, err := wait(t, w, define(2), "b")
				require.ErrorIs(t, err, durable.ErrDefinitionChanged)
			})
		})
	}
}
