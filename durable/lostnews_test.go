package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A program that starts its run on every boot finds that it is there. What comes
// for the run in this very moment is told to the start, which is no execution of
// it: the run must be claimed all the same, and not at the next beat.
func TestAMessageThatComesWhileAStartFindsItsRunIsNotOverlooked(t *testing.T) {
	for _, from := range []string{"another process", "this process"} {
		t.Run(from, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "word") })
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				synctest.Wait()
				w.reboot(t, with(wf))
				synctest.Wait()
				require.Equal(t, store.Waiting, w.row("r").Status)
				require.NotEqual(t, w.eng.ID(), w.row("r").Owner, "it waits for nobody's good")

				ctx, disk, sender := w.ctx(), w.disk, w.ctx()
				if from == "another process" {
					w.serve(t)
					sender = w.ctx()
				}
				held, release := make(chan struct{}), make(chan struct{})
				disk.tamper(func(batch []store.Change, forward func() []error) []error {
					create := batch[0].Create != nil
					if create {
						close(held)
						<-release
					}
					return forward()
				})
				started := make(chan error)
				go func() {
					_, err := wf.Start(ctx, "r", 0)
					started <- err
				}()
				<-held
				sent := make(chan error, 1)
				go func() { sent <- durable.Signal(sender, "r", "word", "go") }()
				synctest.Wait()
				close(release)
				require.NoError(t, <-started)
				require.NoError(t, <-sent)
				synctest.Wait() // no time passes, and so no beat comes
				require.Equal(t, store.Completed, w.row("r").Status, "log:\n%s", w.log)
			})
		})
	}
}

// A run makes way while it waits: its goroutines end, and what their code has deferred
// may take its time. What comes from another process in that time is for the run, and
// not for the next beat to find.
func TestAMessageThatComesWhileARunIsBeingUnloadedIsNotOverlooked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				defer func() { <-release }()
				return durable.Await[int](ctx, "never")
			})
			if _, err := durable.Await[string](ctx, "word"); err != nil {
				return 0, err
			}
			return f.Wait(ctx)
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: time.Millisecond})
		start(t, w, wf, "r", 0)
		pass(time.Second)
		require.Equal(t, store.Waiting, w.row("r").Status)

		w.serve(t) // another process
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "word", "go"))
		synctest.Wait()
		close(release)
		synctest.Wait() // no time passes, and so no beat comes
		require.Contains(t, w.story("r"), "signal_received word", "log:\n%s", w.log)
	})
}
