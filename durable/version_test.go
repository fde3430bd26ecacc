package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// versioned is a version of the workflow "w": it sleeps for an hour, and says in
// a body and outside which version it is.
func versioned(v string) *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		in, err := durable.Step(ctx, "in", func(ctx context.Context) (string, error) { return durable.RunVersion(ctx), nil })
		if err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		return v + " " + in + " " + durable.RunVersion(ctx), nil
	}, durable.Version(v))
}

func TestSeveralVersionsServeTheirOwnRuns(t *testing.T) {
	require.Empty(t, durable.RunVersion(context.Background()))
	inWorld(t, func(t *testing.T, w *world) {
		one, two := versioned("1"), versioned("2")
		w.boot(t, with(one))
		start(t, w, one, "old", 0)
		w.eventually("old", store.Waiting)
		w.reboot(t, with(one, two))
		start(t, w, two, "new", 0)
		for id, want := range map[string]string{"old": "1 1 1", "new": "2 2 2"} {
			out, err := wait(t, w, two, id)
			require.NoError(t, err)
			require.Equal(t, want, out)
			require.Equal(t, want[:1], w.row(id).Version)
		}
	})
}

// A rolling deployment: two processes with different versions on one store. Each
// takes what it has the code of, also from the other one when that dies, and
// nothing else.
func TestInARollingDeploymentEachProcessTakesWhatItServes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, two, both := versioned("1"), versioned("2"), []durable.Definition{versioned("1"), versioned("2")}
		w.boot(t, with(one))
		start(t, w, one, "a", 0)
		w.eventually("a", store.Waiting)
		oldDisk, oldEngine := w.disk, w.eng
		rep := w.boot(t, with(two))
		require.Empty(t, rep.Stuck, "somebody alive serves it")
		start(t, w, two, "b", 0)
		w.eventually("b", store.Waiting)

		oldDisk.cut()
		w.left.Go(func() { _ = oldEngine.Close() })
		w.expire()
		pass(2 * time.Hour) // the sleep of a is over, and only version 2 is left
		require.Equal(t, store.Waiting, w.row("a").Status)
		require.Equal(t, store.Completed, w.row("b").Status)
		rep, err := w.eng.Recover(w.ctx())
		require.NoError(t, err)
		require.Len(t, rep.Stuck, 1)
		stuck := rep.Stuck[0]
		require.Equal(t, "a", stuck.RunID)
		require.Equal(t, durable.CodeNotRegistered, stuck.Code)
		require.Equal(t, "version 1 of workflow w is not registered here; registered: 2", stuck.Reason)
		require.Contains(t, stuck.Next, `serves workflow w version 1 (durable.Define with durable.Version("1")`)

		w.boot(t, with(both...)) // beside the one with version 2
		out, err := wait(t, w, one, "a")
		require.NoError(t, err)
		require.Equal(t, "1 1 1", out)
	})
}

// repin has the row say that a run is pinned to this version, as nothing in this
// version of the library does: a torn state.
func repin(t *testing.T, w *world, id, version string) {
	row := w.row(id)
	require.NoError(t, w.data.Commit(context.Background(), []store.Change{{
		RunID: id, Expect: store.Expect{Epoch: row.Epoch}, Row: &store.RowPatch{Version: &version},
	}})[0])
}

func TestAnUnknownVersionFallsBackToTheInitialOne(t *testing.T) {
	one := versioned("1")
	for name, c := range map[string]struct {
		prepare func(t *testing.T, w *world) // the process that has the run
		resume  bool
	}{
		"waiting": {prepare: func(t *testing.T, w *world) { w.eventually("r", store.Waiting); w.crash() }},
		"running": {prepare: func(t *testing.T, w *world) {
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				errs := forward()
				w.disk.cut() // right after the first checkpoint
				return errs
			})
			pass(time.Second)
			w.crash()
		}},
		"interrupted, by Resume": {resume: true, prepare: func(t *testing.T, w *world) {
			w.eventually("r", store.Waiting)
			w.crash()
			w.expire()
			code, interrupted := durable.CodeNotRegistered, store.Interrupted
			row := w.row("r")
			require.NoError(t, w.data.Commit(context.Background(), []store.Change{{
				RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Row: &store.RowPatch{Status: &interrupted, Code: &code},
			}})[0])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.boot(t, with(one))
				start(t, w, one, "r", 0)
				c.prepare(t, w)
				w.expire()
				repin(t, w, "r", "9")
				if c.resume {
					w.open(t, with(one))
					require.NoError(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})))
				} else {
					require.Empty(t, w.boot(t, with(one)).Stuck)
				}
				out, err := wait(t, w, one, "r")
				require.NoError(t, err)
				require.Equal(t, "1 1 1", out)
				require.Contains(t, w.story("r"), "workflow_recovered")
				require.Equal(t, "1", w.row("r").Version)
				require.NotEmpty(t, w.log.find("E2: Pinned version is not registered. Pinned to version 1"))
			})
		})
	}
}

// No fallback: while somebody alive serves the version, when the initial one is
// not here either, and for other versions.
func TestNoOtherVersionIsEverTaken(t *testing.T) {
	for name, c := range map[string]struct {
		beside, here string
		pinned       string
		says         string
	}{
		"somebody serves it":              {beside: "9", here: "1", pinned: "9"},
		"neither is here":                 {here: "2", pinned: "9", says: "version 9 of workflow w is not registered here; registered: 2 (and neither is version 1, with which the run was started)"},
		"another one than it was started": {here: "2", pinned: "1", says: "version 1 of workflow w is not registered here; registered: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				one := versioned("1")
				w.boot(t, with(one))
				start(t, w, one, "r", 0)
				w.eventually("r", store.Waiting)
				w.crash()
				w.expire()
				repin(t, w, "r", c.pinned)
				if c.beside != "" {
					w.open(t, with(versioned(c.beside))) // it has not called Recover
				}
				rep := w.boot(t, with(versioned(c.here)))
				pass(2 * time.Hour)
				require.Equal(t, store.Waiting, w.row("r").Status)
				require.NotContains(t, w.story("r"), "workflow_recovered")
				if c.says == "" {
					require.Empty(t, rep.Stuck)
					return
				}
				require.Len(t, rep.Stuck, 1)
				require.Equal(t, c.says, rep.Stuck[0].Reason)
			})
		})
	}
}

// A run started by a program without the code belongs to the first version that
// takes it.
func TestARunStartedByARefIsPinnedWhenItIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, durable.Options{})
		ref := durable.Ref[int, string]("w")
		start(t, w, ref, "r", 0)
		require.Empty(t, w.row("r").Version)
		w.boot(t, with(versioned("1")))
		w.eventually("r", store.Waiting)
		require.Equal(t, "1", w.row("r").Version)
		rep := w.reboot(t, with(versioned("2")))
		require.Len(t, rep.Stuck, 1, "version 2 does not take it over")
		require.NotContains(t, w.story("r"), "workflow_recovered", "there is no initial version to go back to")
		_, err := w.eng.RecoverRun(w.ctx(), "r")
		require.EqualError(t, err, "run r is unrecoverable: its version 1 of workflow w is not registered, and it was started without one; run a program that serves it")
		w.reboot(t, with(versioned("2"), versioned("1")))
		out, err := wait(t, w, ref, "r")
		require.NoError(t, err)
		require.Equal(t, "1 1 1", out)
	})
}

func TestResumeDoesNotFallBackWhileSomebodyServesTheVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one := versioned("1")
		w.boot(t, with(one))
		start(t, w, one, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		code, interrupted, nine := durable.CodeNotRegistered, store.Interrupted, "9"
		require.NoError(t, w.data.Commit(context.Background(), []store.Change{{
			RunID: "r", Expect: store.Expect{Epoch: w.row("r").Epoch}, Row: &store.RowPatch{Status: &interrupted, Code: &code, Version: &nine},
		}})[0])
		w.open(t, with(versioned("9"))) // alive, without Recover
		w.open(t, with(one))
		require.NoError(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})), "claimable by whoever has its code")
		require.Equal(t, "9", w.row("r").Version)
		require.NotContains(t, w.story("r"), "workflow_recovered")
	})
}

func TestAFallbackThatIsKilledBeforeItsClaimIsNotLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one := versioned("1")
		w.boot(t, with(one))
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			errs := forward()
			w.disk.cut()
			return errs
		})
		_, _ = one.Start(w.ctx(), "r", 0)
		w.crash()
		w.expire()
		require.Equal(t, store.Running, w.row("r").Status)
		repin(t, w, "r", "9")
		eng := w.open(t, with(one))
		disk := w.disk
		disk.tamperCalls(func(call string, forward func() error) error {
			if call == "claim" {
				disk.cut()
				return store.ErrClosed
			}
			return forward()
		})
		_, _ = eng.Recover(w.ctx())
		require.Contains(t, w.story("r"), "workflow_recovered")
		w.reboot(t, with(one))
		out, err := wait(t, w, one, "r")
		require.NoError(t, err)
		require.Equal(t, "1 1 1", out)
	})
}

// E1: the row names no version, as rows of other origin may. The run belongs to
// the version it was started with, not to the newest, and is pinned to it.
func TestARunWithoutAVersionBelongsToItsInitialOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one := versioned("1")
		w.boot(t, with(one))
		start(t, w, one, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		repin(t, w, "r", "")
		rep := w.boot(t, with(one, versioned("2")))
		require.Empty(t, rep.Stuck)
		out, err := wait(t, w, one, "r")
		require.NoError(t, err)
		require.Equal(t, "1 1 1", out)
		require.Equal(t, "1", w.row("r").Version)
		require.NotEmpty(t, w.log.find("E1: the row of a run names no version"))
	})
}
