package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A run whose processes die before any body of it has begun cannot be the cause.
func TestNoStrikeBeforeABodyHasBegun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		slow := true
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if slow { // it replays, say, or waits for its turn
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			return 1, durable.Do(ctx, "s", fails(nil))
		})
		w.open(t, with(wf))
		start(t, w, wf, "r", 0)
		for range 8 {
			pass(time.Second)
			rep := w.reboot(t, with(wf))
			require.Empty(t, rep.Quarantine)
			require.Empty(t, rep.Suspects)
		}
		w.crash()
		slow = false
		w.expire()
		w.boot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}

// Executors that are cut off, or stopped, for longer than their lease lose a run
// one after the other, and live.
func TestALeaseThatALiveExecutorLostIsNoStrike(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		var mu sync.Mutex
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Do(ctx, "long", func(ctx context.Context) error {
				mu.Lock()
				bodies++
				n := bodies
				mu.Unlock()
				if n > 8 {
					return nil
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		disks := map[string]*disk{}
		for range 3 {
			w.boot(t, with(wf))
			disks[w.eng.ID()] = w.disk
		}
		start(t, w, wf, "r", 0)
		for range 8 {
			pass(time.Second)
			row := w.row("r")
			require.Equal(t, "", row.Code, row.Reason)
			disks[row.Owner].tamperCalls(func(call string, forward func() error) error {
				if call == "beat" {
					return errDisk
				}
				return forward()
			})
			for w.row("r").Owner == row.Owner {
				pass(time.Second)
			}
			disks[row.Owner].tamperCalls(nil)
			pass(time.Minute) // it beats again
		}
		w.eventually("r", store.Completed)
		require.Empty(t, w.log.find("run quarantined"))
		require.Empty(t, w.log.find("trying a run"))
	})
}

// Of many runs that were started at once, and whose processes are killed again
// and again, none is set aside but one whose body had begun each time.
func TestOfManyRunsUnderKillsNoneIsQuarantinedWhoseBodyHadNotBegun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begun := map[string]int{}
		var mu sync.Mutex
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if n%2 == 1 { // a long way to its first body
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
			}
			return 1, durable.Do(ctx, "s", func(ctx context.Context) error {
				mu.Lock()
				begun[durable.Attempt(ctx).RunID]++
				mu.Unlock()
				select {
				case <-time.After(400 * time.Millisecond):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		})
		o := with(wf)
		o.MaxRuns = 16
		w.boot(t, o)
		_, err := wf.StartAll(w.ctx(), func(yield func(string, int) bool) {
			for i := range 120 {
				if !yield(fmt.Sprintf("r%03d", i), i) {
					return
				}
			}
		})
		require.NoError(t, err)
		for range 20 {
			pass(600 * time.Millisecond)
			w.reboot(t, o)
		}
		pass(10 * time.Minute)
		for i := range 120 {
			id := fmt.Sprintf("r%03d", i)
			if row := w.row(id); row.Code == durable.CodeQuarantined {
				require.Greater(t, begun[id], durable.DefaultQuarantineAfter, "%s: %s", id, row.Reason)
			} else {
				require.Equal(t, store.Completed, row.Status, id)
			}
		}
	})
}

// On probation a body begins on record, at no other time.
func TestABodyBeginsOnRecordOnlyAfterAnEndWithoutAWord(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for _, name := range []string{"a", "b", "c", "d"} {
				body := fails(nil)
				if name == "b" {
					body = h.body
				}
				if err := durable.Do(ctx, name, body); err != nil {
					return 0, err
				}
			}
			return 1, nil
		})
		w.open(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []string{
			"workflow_created", "workflow_started", "step_completed a", "run_resumed", "step_started b",
			"step_completed b", "step_completed c", "step_completed d", "workflow_completed",
		}, w.story("r"))
	})
}

// The person who is told of a run that was set aside learns what is known, and
// what to do.
func TestAQuarantineSaysWhatIsKnown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Retry(ctx, "copy", durable.Policy{}, func(ctx context.Context) (int, error) {
				if durable.Attempt(ctx).Number == 1 {
					return 0, errors.New("disk full")
				}
				<-ctx.Done() // killed from outside each time, before it is done
				return 0, context.Cause(ctx)
			})
			return 0, err
		})
		w.open(t, with(wf))
		start(t, w, wf, "r", 0)
		var rep durable.Report
		for range 10 {
			pass(time.Minute)
			if rep = w.reboot(t, with(wf)); len(rep.Quarantine) > 0 {
				break
			}
		}
		require.Equal(t, []string{"r"}, rep.Quarantine)
		require.Len(t, rep.Stuck, 1)
		require.Contains(t, rep.Stuck[0].Reason, "its process ended 3 times without a word while attempt 2 of step copy was under way")
		require.Contains(t, rep.Stuck[0].Reason, "may be the cause, or something outside of it")
		require.NotContains(t, rep.Stuck[0].Reason, "killed its process")
		require.Contains(t, rep.Stuck[0].Next, `operate.On(engine).Resume(ctx, "r")`)
		require.Contains(t, rep.Stuck[0].Next, "memory")
	})
}
