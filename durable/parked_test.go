package durable_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// After a bad deploy is rolled back, Recover continues what the bad code has parked; a build
// that does not fit writes nothing.
func TestRecoverContinuesWhatABadDeployHasParked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const runs = 50
		build := func(name string, held string, calls ...string) (durable.Definition, durable.Options) {
			wf := called(held, plainly(calls...))
			o := with(wf)
			o.Build, o.Name = name, name
			return wf, o
		}
		first, good := build("good", "b", "a", "b", "c")
		w.boot(t, good)
		for i := range runs {
			start(t, w, first.(*durable.Workflow[int, string]), fmt.Sprint("r-", i), 0)
		}
		synctest.Wait()

		_, bad := build("bad", "", "other", "b", "c")
		w.reboot(t, bad)
		synctest.Wait()
		parked := func() (seqs []int64) {
			for i := range runs {
				row := w.row(fmt.Sprint("r-", i))
				require.Equal(t, durable.CodeDefinitionChanged, row.Code)
				seqs = append(seqs, row.Last.Seq)
			}
			return seqs
		}
		before := parked()
		for _, name := range []string{"bad", "worse", "worse"} {
			_, o := build(name, "", "other", "b", "c")
			report := w.reboot(t, o)
			require.Len(t, report.Stuck, runs)
			require.Empty(t, report.Unparked)
			require.Contains(t, report.Stuck[0].Reason, "version 1, build good", "the code that fits is named")
			require.Equal(t, before, parked(), "nothing is written about what does not fit")
		}

		again, rolledBack := build("good", "", "a", "b", "c")
		report := w.reboot(t, rolledBack)
		require.Len(t, report.Unparked, runs)
		require.Empty(t, report.Stuck)
		for i := range runs {
			out, err := wait(t, w, again.(*durable.Workflow[int, string]), fmt.Sprint("r-", i))
			require.NoError(t, err)
			require.Equal(t, "done", out)
		}
	})
}

// A wait under a deadline of the context cannot be recorded. The code that is mended goes on by
// itself; the same build would only park the run again, after its bodies ran once more.
func TestRecoverOfAMendedBuildContinuesWhatCouldNotBeRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		build := func(name string, mended bool) (*durable.Workflow[int, int], durable.Options) {
			wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
				if !mended {
					within, stop := context.WithTimeout(ctx, time.Hour)
					defer stop()
					ctx = within
				}
				return durable.Await[int](ctx, "go on")
			})
			o := with(wf)
			o.Build = name
			return wf, o
		}
		wf, o := build("1", false)
		w.boot(t, o)
		_, err := start(t, w, wf, "r", 0).Wait(w.ctx())
		var stopped *durable.InterruptedError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, durable.CodeUnrecorded, stopped.Code)
		const advice = "mend what the reason names: durable.Recover of another build (Options.Build) then continues it"
		require.ErrorContains(t, err, advice)
		require.NotContains(t, err.Error(), "a process that serves it")
		before := w.row("r").Last.Seq
		for _, name := range []string{"1", "", "2"} {
			_, o := build(name, false)
			report := w.reboot(t, o)
			require.Empty(t, report.Unparked)
			require.Len(t, report.Stuck, 1)
			require.Contains(t, report.Stuck[0].Next, advice)
			synctest.Wait()
			require.Equal(t, before, w.row("r").Last.Seq, "nothing is written about what is not mended")
		}
		_, o = build("", true)
		require.Empty(t, w.reboot(t, o).Unparked, "whether it is another build is not known")
		_, o = build("3", true)
		require.Equal(t, []string{"r"}, w.reboot(t, o).Unparked)
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "go on", 7))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

// Recover continues only some of the runs that have stopped: nobody is told to wait for it in vain.
func TestTheAdviceOfAnInterruptedRunIsThatOfItsCode(t *testing.T) {
	for code, says := range map[string]string{
		"":                            `or let durable.Recover(ctx) of a process that serves it continue it`,
		durable.CodeNotRegistered:     `or let durable.Recover(ctx) of a process that serves it continue it`,
		durable.CodeDamaged:           `Verify(ctx, "r")`,
		durable.CodeDefinitionChanged: `run the code that recorded it`,
		durable.CodeShutdown:          `operate.On(engine).Resume(ctx, "r")`,
	} {
		err := &durable.InterruptedError{RunID: "r", Workflow: "w", Code: code, Reason: "why"}
		require.ErrorContains(t, err, says, code)
		if code != "" && code != durable.CodeNotRegistered {
			require.NotContains(t, err.Error(), "durable.Recover", code)
		}
	}
}

// Whose policy leaves runs to a person is not overruled.
func TestRecoverLeavesParkedRunsToAPersonUnderTheirPolicy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := called("b", plainly("a", "b"))
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.reboot(t, with(called("", plainly("other"))))
		synctest.Wait()
		require.Equal(t, durable.CodeDefinitionChanged, w.row("r").Code)
		o := with(called("", plainly("a", "b")))
		o.OnBoot = durable.LeaveOnBoot
		report := w.reboot(t, o)
		require.Empty(t, report.Unparked)
		require.Len(t, report.Stuck, 1)
		require.Equal(t, store.Interrupted, w.row("r").Status)
		require.Equal(t, []string{"r"}, w.reboot(t, with(called("", plainly("a", "b")))).Unparked)
	})
}

// The mail of a run is no part of its history, which is all that a rehearsal reads.
func TestRecoverWritesNothingAboutARunWhoseMailItCannotRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		waiting := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "s") })
		w.boot(t, with(waiting))
		start(t, w, waiting, "r", 0)
		synctest.Wait()
		old := w.eng
		w.boot(t, encrypted(keysOf("k1")))
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "s", "hello"))
		require.Equal(t, durable.CodeUndecodable, w.eventually("r", store.Interrupted).Code)
		require.NoError(t, old.Close())
		before := w.row("r").Last.Seq
		for range 3 {
			report := w.reboot(t, with(waiting))
			require.Empty(t, report.Unparked)
			require.Len(t, report.Stuck, 1)
			synctest.Wait()
		}
		require.Equal(t, before, w.row("r").Last.Seq, "nothing is written about what does not fit")
		w.reboot(t, encrypted(keysOf("k1"), waiting))
		out, err := wait(t, w, waiting, "r")
		require.NoError(t, err)
		require.Equal(t, "hello", out)
	})
}
