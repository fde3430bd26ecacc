package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// told hears two letters of one name, a child that ends well and one that fails,
// and nothing in a wait with a time limit.
func told(j *journal, mended *bool) []durable.Definition {
	kid := durable.Define("kid", func(ctx context.Context, n int) (string, error) {
		if n == 13 {
			return "", durable.Permanent(errStock)
		}
		return "kid", durable.Do(ctx, "work", func(ctx context.Context) error { j.add(ctx); return nil })
	})
	or := func(v string, err error) string {
		var ended *durable.RunError
		if errors.As(err, &ended) || errors.Is(err, durable.ErrTimeout) {
			return "none"
		}
		return v
	}
	return []durable.Definition{kid, durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		a, err := durable.Await[string](ctx, "letter")
		if err != nil {
			return "", err
		}
		good, err := kid.Run(ctx, durable.AutoID, 1)
		if err != nil {
			return "", err
		}
		bad, err := kid.Run(ctx, durable.AutoID, 13)
		bad = or(bad, err)
		late, err := durable.Await[string](ctx, "late", durable.Timeout(time.Minute))
		late = or(late, err)
		b, err := durable.Await[string](ctx, "letter")
		if err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "after", func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
			return "", err
		}
		if !*mended {
			return "", errNotYet
		}
		return fmt.Sprint(a, " ", good, " ", bad, " ", late, " ", b), nil
	})}
}

// hear runs what told defines as "r" to its end, with both letters, and returns how
// that was.
func hear(t *testing.T, w *world, defs []durable.Definition) (*durable.Workflow[int, string], error) {
	t.Helper()
	wf := defs[1].(*durable.Workflow[int, string])
	_, err := wf.Start(w.ctx(), "r", 0, durable.WithSignal("letter", "one"))
	require.NoError(t, err)
	require.NoError(t, w.eng.Signal(w.ctx(), "r", "letter", "two"))
	_, err = wait(t, w, wf, "r")
	return wf, err
}

func TestTheAnswerToAWaitAndTheOutcomeOfAChildAreEdited(t *testing.T) {
	for key, want := range map[string]string{
		"letter":   "new kid none none two",
		"kid":      "one new none none two",
		"kid#2":    "one kid new none two",
		"late":     "one kid none new two",
		"letter#2": "one kid none none new",
	} {
		t.Run(key, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				j, mended := &journal{}, false
				defs := told(j, &mended)
				w.boot(t, with(defs...))
				wf, err := hear(t, w, defs)
				require.ErrorContains(t, err, errNotYet.Error())
				mended = true
				before := w.events("r")
				child := w.row("r/kid")
				dry, err := operate.On(w.eng).Edit(w.ctx(), "r", key, "new", operate.EditOptions{DryRun: true})
				require.NoError(t, err)
				require.Equal(t, before, w.events("r"))
				plan, err := operate.On(w.eng).Edit(w.ctx(), "r", key, "new", operate.EditOptions{By: "ann"})
				require.NoError(t, err)
				require.Equal(t, dry, plan)
				again := map[string][]string{"letter": {"after", "kid", "kid#2"}, "kid": {"after", "kid#2"}}[key]
				if again == nil {
					again = []string{"after"}
				}
				require.Equal(t, again, plan.Again, "children that were started behind it are started anew")
				require.Empty(t, verify(t, w, "r").Findings)
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, want, out)
				if key == "kid" {
					require.Equal(t, child, w.row("r/kid"), "the child is what it was")
				}
				require.Equal(t, 2, j.counts("after/1")[0])
				require.Empty(t, verify(t, w, "r").Findings)
			})
		})
	}
}

func TestAnAnswerOfAnotherTypeNeedsForceAndWhatHasNoValueIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, false
		defs := told(j, &mended)
		nap := durable.Define("nap", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
			return 0, errNotYet
		})
		w.boot(t, with(append(defs, nap)...))
		_, err := hear(t, w, defs)
		require.Error(t, err)
		_, err = run(t, w, nap, "nap", 0)
		require.Error(t, err)
		var refused *operate.EditError
		for _, key := range []string{"letter", "kid"} {
			_, err = operate.On(w.eng).Edit(w.ctx(), "r", key, 7, operate.EditOptions{})
			require.ErrorAs(t, err, &refused)
			require.True(t, refused.Forceable)
		}
		_, err = operate.On(w.eng).Edit(w.ctx(), "nap", "sleep", 7, operate.EditOptions{Force: true})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, store.Failed, w.row("r").Status)
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "letter", 7, operate.EditOptions{Force: true})
		require.NoError(t, err)
		var unreadable *durable.UndecodableError
		require.ErrorAs(t, resume(w.eng, w.ctx(), "r"), &unreadable, "it is found when it is read")
	})
}

// What an item of a Map has registered is undone, whatever a person has put in the place of its outcome.
func TestAnItemWhoseOutcomeWasEditedIsUndoneWithItsRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var undone []string
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			out, err := durable.Map(ctx, "m", upTo(2), durable.MapOptions{Concurrency: 1}, func(ctx context.Context, i int) (int, error) {
				name := fmt.Sprint("undo ", i)
				if err := durable.Compensate(ctx, name, func(context.Context) error { undone = append(undone, name); return nil }); err != nil {
					return 0, err
				}
				return durable.Step(ctx, "work", one)
			})
			if err != nil {
				return 0, err
			}
			if _, err := durable.Await[bool](ctx, "go"); err != nil {
				return 0, err
			}
			return 0, fmt.Errorf("%v: %w", out, errStock)
		})
		w.boot(t, with(wf))
		h := start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		pass(time.Second)
		_, err := operate.On(w.eng).Edit(w.ctx(), "r", "m[0]", 7, operate.EditOptions{})
		require.NoError(t, err)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "go", true))
		_, err = h.Wait(w.ctx())
		require.ErrorContains(t, err, "[7 1]")
		require.Equal(t, []string{"undo 1", "undo 0"}, undone)
	})
}

// Which item of a Map it is stays known when the first result within it is edited or made again, in a fork, too.
func TestAnotherItemIsNoticedThoughItsFirstResultIsAnotherOne(t *testing.T) {
	for _, c := range []string{"edited", "edited in a fork", "reset, and then forked"} {
		t.Run(c, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				list, fails := []string{"a", "b"}, c == "reset, and then forked"
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					_, err := durable.Map(ctx, "m", list, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, item string) (string, error) {
						if _, err := durable.Step(ctx, "one", func(context.Context) (string, error) {
							if fails {
								return "", errStock
							}
							return item, nil
						}); err != nil {
							return "", err
						}
						return item, durable.Do(ctx, "two", h.body)
					})
					return 0, err
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				pass(time.Second)
				if fails {
					fails = false
					require.NoError(t, resume(w.eng, w.ctx(), "r"))
					pass(time.Second)
				}
				w.crash()
				w.expire()
				list = []string{"c", "b"}
				w.open(t, with(wf))
				var changed *durable.DefinitionChangedError
				require.ErrorAs(t, resume(w.eng, w.ctx(), "r"), &changed)
				require.Equal(t, durable.ChangeItems, changed.Change)
				if c == "edited" {
					_, err := operate.On(w.eng).Edit(w.ctx(), "r", "m[0]/one", "edited", operate.EditOptions{})
					require.NoError(t, err)
					require.ErrorAs(t, resume(w.eng, w.ctx(), "r"), &changed)
					require.Equal(t, durable.ChangeItems, changed.Change)
					return
				}
				f := operate.ForkOptions{ID: "f"}
				if c == "edited in a fork" {
					f.Edits = map[string]any{"m[0]/one": "edited"}
				}
				_, err := operate.On(w.eng).Fork(w.ctx(), "r", f)
				require.NoError(t, err)
				_, err = w.eng.Recover(w.ctx())
				require.NoError(t, err)
				pass(time.Minute)
				require.Equal(t, durable.CodeDefinitionChanged, w.row("f").Code)
			})
		})
	}
}
