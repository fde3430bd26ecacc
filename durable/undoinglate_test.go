package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Whether a deadline has stopped a run is decided when its function returns. That
// the deadline passes while the run is undone changes nothing, also where another
// process goes on with that.
func TestADeadlineThatPassesWhileARunIsUndoneIsNotWhyItFailed(t *testing.T) {
	const limit = time.Hour
	for name, c := range map[string]struct {
		works, undoes time.Duration // before it fails; until the first thing is undone
		earlier       bool          // a version recorded it that did not say what it undoes
		kept          string        // code
	}{
		"one is undone in time":                        {kept: durable.CodeError},
		"one is undone in time, by an earlier version": {earlier: true, kept: durable.CodeError},
		"nothing is undone in time":                    {undoes: 2 * limit, kept: durable.CodeError},
		"the deadline has stopped it":                  {works: 2 * limit, kept: durable.CodeDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var slow hold
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					require.NoError(t, errors.Join(
						durable.Compensate(ctx, "second", slow.body),
						durable.Compensate(ctx, "first", func(context.Context) error { time.Sleep(c.undoes); return nil }),
					))
					err := durable.Do(ctx, "work", func(ctx context.Context) error {
						select {
						case <-time.After(c.works):
						case <-ctx.Done():
						}
						return durable.Permanent(errStock)
					})
					return 0, err
				})
				w.boot(t, with(wf))
				if c.earlier {
					w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
						for _, e := range batch[0].Events {
							if e.Key == "~undo/first" {
								batch[0].Events[0] = without(w, "r", e, "late")
							}
						}
						return forward()
					})
				}
				_, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(limit))
				require.NoError(t, err)
				pass(4 * limit)
				require.Contains(t, w.story("r"), "step_completed ~undo/first")
				require.False(t, w.row("r").Status.Terminal())
				w.reboot(t, with(wf))
				_, err = wait(t, w, wf, "r")
				require.Equal(t, c.kept, w.row("r").Code, "%v", err)
				require.Equal(t, c.kept == durable.CodeDeadline, errors.Is(err, durable.ErrDeadline), "%v", err)
				require.Equal(t, 2, slow.count())
				require.Contains(t, w.story("r"), "step_completed ~undo/second")
				found, err := operate.On(w.eng).Verify(w.ctx(), "r")
				require.NoError(t, err)
				require.Empty(t, found.Findings)
			})
		})
	}
}

// without returns the event that is about to be written behind the log of a run, as
// a version would have written it that does not know a member of its data.
func without(w *world, id string, e store.Event, member string) store.Event {
	var data map[string]json.RawMessage
	require.NoError(w.t, json.Unmarshal(e.Data, &data))
	require.Contains(w.t, data, member)
	delete(data, member)
	e.Data = nil
	if len(data) > 0 {
		var err error
		e.Data, err = json.Marshal(data)
		require.NoError(w.t, err)
	}
	log := w.events(id)
	e.Sum = store.Seal(id, log[len(log)-1].Sum, &e)
	return e
}

// The context of a function has ended at the same place on every replay: behind the
// wait during which the run was stopped, and not before one that was over by then.
func TestAContextEndsBehindTheSameWaitOnEveryReplay(t *testing.T) {
	child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { return 1, nil })
	stopping := func(ctx context.Context) error {
		return durable.Do(ctx, "stopped", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	}
	for name, work := range map[string]func(ctx context.Context, undo func()) error{
		"behind a wait for a child": func(ctx context.Context, undo func()) error {
			if _, err := child.Run(ctx, "kid", 0); err != nil {
				return err
			}
			undo()
			return stopping(ctx)
		},
		"behind a wait for a branch": func(ctx context.Context, undo func()) error {
			if _, err := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return durable.Step(ctx, "s", one) }).Wait(ctx); err != nil {
				return err
			}
			undo()
			return stopping(ctx)
		},
		"in a wait for a branch": func(ctx context.Context, undo func()) error {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				if _, err := durable.Step(ctx, "s", one); err != nil {
					return 0, err
				}
				return 0, stopping(ctx)
			})
			undo()
			_, err := f.Wait(ctx)
			return err
		},
		"in the second of two waits": func(ctx context.Context, undo func()) error {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return durable.Step(ctx, "s", one) })
			g := durable.Go(ctx, "c", func(ctx context.Context) (int, error) {
				if _, err := durable.Step(ctx, "s", one); err != nil {
					return 0, err
				}
				return 0, stopping(ctx)
			})
			if _, err := f.Wait(ctx); err != nil {
				return err
			}
			undo()
			_, err := g.Wait(ctx)
			return err
		},
		"in the first of two waits": func(ctx context.Context, undo func()) error {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				if _, err := durable.Step(ctx, "s", one); err != nil {
					return 0, err
				}
				return 0, stopping(ctx)
			})
			g := durable.Go(ctx, "c", func(ctx context.Context) (int, error) { return durable.Step(ctx, "s", one) })
			undo()
			_, err := f.Wait(ctx)
			undo() // not any more
			_, again := g.Wait(ctx)
			return errors.Join(err, again)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var slow hold
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					require.NoError(t, durable.Compensate(ctx, "early", slow.body))
					return 0, work(ctx, func() {
						if ctx.Err() == nil {
							require.NoError(t, durable.Compensate(ctx, "late", func(context.Context) error { return nil }))
						}
					})
				})
				w.boot(t, with(wf, child))
				start(t, w, wf, "r", 0)
				pass(time.Minute)
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
				pass(time.Minute)
				require.Equal(t, "step_completed ~undo/late", w.story("r")[len(w.story("r"))-1])
				w.reboot(t, with(wf, child))
				pass(time.Minute)
				row := w.row("r")
				require.Equal(t, store.Cancelled, row.Status, "%s %s", row.Code, row.Reason)
				require.Equal(t, 2, slow.count())
			})
		})
	}
}
