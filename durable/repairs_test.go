package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAForcedResumeWithNewCallsIsLoggedAsAWarning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		broken := true
		w.serve(t, failsAt(&ran, &broken, "one", "two", "three"))
		start(t, w, failsAt(&ran, &broken, "one", "two", "three"), "r", 1)
		w.eventually("r", store.Failed)
		broken = false
		w.serve(t, failsAt(&ran, &broken, "one", "inserted", "two", "three"))
		w.log.clear()
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		w.eventually("r", store.Completed)
		lines := w.log.find("forced")
		require.Len(t, lines, 1, "%s", w.log)
		require.Regexp(t, `^WARN .*run=r .*inserted|^WARN .*inserted.* run=r`, lines[0])
	})
}

// A program that lives shorter than Retention.Every cleans, too.
func TestRetentionLooksAsSoonAsTheEngineIsOpen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := quick("w")
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "old", 1)
		require.NoError(t, err)
		require.NoError(t, w.eng.Close())
		pass(8 * day)
		o := with(wf)
		o.Retention = durable.Retention{KeepFor: 7 * 24 * time.Hour}
		begin := time.Now()
		w.boot(t, o)
		pass(0)
		require.Empty(t, w.ids())
		require.Zero(t, time.Since(begin), "no time has passed")
		require.NoError(t, w.eng.Close())
	})
}

// A run whose declared steps are done, approvals and sleeps among them, and whose
// process died before its end was recorded.
func TestDeclaredWaitsCountAsDoneWhenAnEndIsMissing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dies := true
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "one", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			if _, err := durable.Await[bool](ctx, "ask", durable.Prompt("Go?")); err != nil {
				return 0, err
			}
			if dies {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 7, nil
		}, durable.Steps("one", "sleep", "ask"))
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(2 * time.Hour)
		require.NoError(t, durable.Signal(w.ctx(), "r", "ask", true))
		pass(0)
		require.Equal(t, store.Running, w.row("r").Status, "%v", w.story("r"))
		w.crash()
		w.expire()
		dies = false
		rep := w.boot(t, with(wf))
		require.Len(t, rep.Repaired, 1)
		require.Equal(t, durable.CodeA3, rep.Repaired[0].Code)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

// A run that waits twice at once, and whose row says that it runs, needs no cut: its
// replay sets the row right, and nothing is asked a second time.
func TestTwoWaitsThatARowDeniesAreAskedOnceAndAnswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			var asked []*durable.Future[string]
			for i := range 2 {
				asked = append(asked, durable.Go(ctx, fmt.Sprint("branch-", i), func(ctx context.Context) (string, error) {
					return durable.Await[string](ctx, fmt.Sprint("go-", i), durable.Prompt("go?"))
				}))
			}
			said := ""
			for _, f := range asked {
				v, err := f.Wait(ctx)
				if err != nil {
					return "", err
				}
				said += v
			}
			return said, nil
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		w.tear("r", to(store.Running))
		w.boot(t, with(wf))
		w.eventually("r", store.Waiting)
		open, err := operate.On(w.eng).ApprovalsOf(w.ctx(), "r")
		require.NoError(t, err)
		require.Len(t, open, 2)
		again, err := w.eng.RecoverRun(w.ctx(), "r")
		require.NoError(t, err)
		require.False(t, again.Needed)
		for i := range 2 {
			require.NoError(t, durable.Signal(w.ctx(), "r", fmt.Sprint("go-", i), fmt.Sprint(i)))
		}
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "01", out)
	})
}
