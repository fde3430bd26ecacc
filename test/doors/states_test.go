package doors_test

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A state is how a run is found, and what every door then says.
type state struct {
	name string
	make func(w *world) // leaves the run "r"
	code string         // of the refusal; empty: it is resumed
	says string         // in the words of the refusal, or how it goes on
	http int            // status of a refusal
	exit int            // of a terminal that is refused
	// waits: the run waits, which the route for waiting runs takes, and with it a
	// terminal that acts on a server.
	waits bool
	ends  store.Status // of a run that is resumed
	// late: what refuses it is looked at last, and not in a dry run.
	late bool
}

const refusedExit, notFoundExit = 4, 3

// states are all of them, in the order of the page.
func states() []state {
	at := func(s store.Status) func(w *world) {
		return func(w *world) { w.retell("template", s, 3, nil) }
	}
	refused := func(name string, make func(w *world), code, says string) state {
		return state{name: name, make: make, code: code, says: says, http: 409, exit: refusedExit}
	}
	resumed := func(name string, make func(w *world), says string, ends store.Status) state {
		return state{name: name, make: make, says: says, ends: ends}
	}
	waiting := func(name, how string) state {
		s := refused(name, func(w *world) { w.begin("waits", how, store.Waiting) }, "not_resumable", "Session r is not resumable (status: waiting)")
		s.waits = how == "approval"
		return s
	}
	occupied := refused("failed, another run holds its exclusive key", func(w *world) {
		w.begin("order", "fail", store.Failed, durable.Exclusive("desk"))
		w.mood("signal")
		_, err := durable.Ref[string, string]("waits").Start(w.ctx(), "holder", "", durable.Exclusive("desk"))
		require.NoError(w.t, err)
		w.until("holder", store.Waiting)
		w.mood("fine")
	}, "occupied", "holder")
	occupied.late = true
	unserved := refused("parked: its version is not among those served", func(w *world) {
		w.retell("template", store.Interrupted, 3, func(r *store.Run) {
			r.Version, r.InitialVersion = "7", "7"
			r.Code, r.Reason = durable.CodeNotRegistered, "nobody served workflow order 7"
		})
	}, "unrecoverable", "neither its version 7 nor its initial version 7 of workflow order is registered")
	unserved.http = 500
	return []state{
		{name: "unknown id", make: func(*world) {}, code: "not_found", says: "not found", http: 404, exit: notFoundExit},
		refused("pending", func(w *world) { w.unserved("elsewhere") }, "not_resumable", "Session r is not resumable (status: pending)"),
		refused("running here", func(w *world) { w.begin("order", "hang", store.Running) }, "not_resumable", "in progress"),
		refused("running elsewhere", func(w *world) { w.other(); w.begin("order", "hang", store.Running) }, "not_resumable", "in progress"),
		refused("between two attempts elsewhere", func(w *world) {
			w.other()
			w.begin("order", "retry", store.Running)
			require.Eventually(w.t, func() bool { return w.ran.Load() == 2 && w.row("r").Last.Type == store.AttemptFailed }, time.Minute, time.Millisecond)
		}, "not_resumable", "in progress"),
		resumed("interrupted", at(store.Interrupted), "goes on", store.Completed),
		resumed("running, its process is gone", at(store.Running), "goes on", store.Completed),
		waiting("waiting for an approval", "approval"),
		waiting("waiting for a signal", "signal"),
		waiting("sleeping", "sleep"),
		waiting("waiting for a child", "child"),
		refused("paused", func(w *world) {
			w.begin("waits", "signal", store.Waiting)
			require.NoError(w.t, w.eng.Pause(w.ctx(), "r", ""))
			require.Eventually(w.t, func() bool { return w.row("r").Paused }, time.Minute, time.Millisecond)
		}, "not_resumable", "Session r is not resumable (status: waiting)"),
		resumed("failed, its attempts used up", func(w *world) { w.begin("order", "fail", store.Failed); w.mood("fine") }, "the step has its attempts again", store.Completed),
		resumed("failed for good (Permanent)", func(w *world) { w.begin("order", "permanent", store.Failed); w.mood("fine") }, "the step has its attempts again", store.Completed),
		resumed("failed by its function", func(w *world) { w.begin("order", "no", store.Failed); w.mood("fine") }, "goes on", store.Completed),
		resumed("failed, and nothing is left to run", func(w *world) { w.begin("order", "no", store.Failed) }, "fails again at once, as the plan says", store.Failed),
		refused("failed before anything was recorded", func(w *world) { w.begin("order", "early", store.Failed) }, "no_checkpoint", "checkpoint"),
		resumed("quarantined", func(w *world) {
			w.retell("template", store.Failed, 3, func(r *store.Run) {
				r.Code, r.Reason, r.Recoverable = durable.CodeQuarantined, "quarantined: its process ended 3 times without a word while attempt 1 of step work was under way", true
			})
		}, "goes on", store.Completed),
		refused("completed", func(w *world) { w.begin("order", "fine", store.Completed) }, "not_resumable", "Session r is not resumable (status: completed)"),
		refused("cancelled", func(w *world) {
			w.begin("waits", "signal", store.Waiting)
			require.NoError(w.t, w.eng.Cancel(w.ctx(), "r", "enough"))
			w.until("r", store.Cancelled)
		}, "not_resumable", "Session r is not resumable (status: cancelled)"),
		refused("the code was changed, interrupted", func(w *world) { at(store.Interrupted)(w); w.mood("changed") }, "definition_changed", "Definition changed"),
		refused("the code was changed, its process is gone", func(w *world) { at(store.Running)(w); w.mood("changed") }, "definition_changed", "Definition changed"),
		refused("the code was changed, failed", func(w *world) { w.begin("order", "fail", store.Failed); w.mood("changed") }, "definition_changed", "Definition changed"),
		refused("a value cannot be read", func(w *world) { at(store.Interrupted)(w); w.mood("retyped") }, "undecodable", "cannot be read"),
		refused("a value cannot be read, failed", func(w *world) { w.begin("order", "fail", store.Failed); w.mood("retyped") }, "undecodable", "cannot be read"),
		refused("its log is damaged, interrupted", func(w *world) { w.damage(store.Interrupted) }, "damaged", "checksum"),
		refused("its log is damaged, its process is gone", func(w *world) { w.damage(store.Running) }, "damaged", "checksum"),
		refused("its log is damaged, failed", func(w *world) { w.damage(store.Failed) }, "damaged", "checksum"),
		refused("its row is damaged", func(w *world) {
			w.retell("template", store.Interrupted, 3, func(r *store.Run) { r.Workflow = "waits" })
		}, "damaged", "its row was changed"),
		refused("not even its first event is left, interrupted", func(w *world) { at(store.Interrupted)(w); w.bare.Store(true) }, "damaged", "it has no event"),
		refused("not even its first event is left, its process is gone", func(w *world) { at(store.Running)(w); w.bare.Store(true) }, "damaged", "it has no event"),
		occupied,
		unserved,
		resumed("its version is not served", func(w *world) {
			w.retell("template", store.Interrupted, 3, func(r *store.Run) { r.Workflow, r.Version, r.InitialVersion = "gone", "7", "7" })
		}, "handed over, unchecked, to who serves it", store.Interrupted),
		resumed("its version is not served, its process is gone", func(w *world) {
			w.retell("template", store.Running, 3, func(r *store.Run) { r.Workflow, r.Version, r.InitialVersion = "gone", "7", "7" })
		}, "handed over, unchecked, to who serves it", store.Interrupted),
	}
}

// mood is what the workflow's code does at the moment.
func (w *world) mood(m string) { w.how.Store(m) }

var errNo = errors.New("the function says no")

// order is a workflow of three steps.
func (w *world) order(ctx context.Context, _ string) (string, error) {
	how := w.how.Load().(string)
	step := func(name string, err error) error {
		return durable.Do(ctx, name, func(ctx context.Context) error {
			w.ran.Add(1)
			if how == "hang" && name == "two" {
				<-ctx.Done()
				return ctx.Err()
			}
			return err
		})
	}
	if how == "early" {
		return "", errNo
	}
	if how == "changed" {
		if err := step("zero", nil); err != nil {
			return "", err
		}
	}
	if how == "retyped" {
		if _, err := durable.Step(ctx, "one", func(context.Context) ([]int, error) { return nil, nil }); err != nil {
			return "", err
		}
	}
	if _, err := durable.Step(ctx, "one", func(context.Context) (string, error) { w.ran.Add(1); return "one", nil }); err != nil {
		return "", err
	}
	fault := map[string]error{"fail": errors.New("no stock"), "permanent": durable.Permanent(errors.New("never"))}[how]
	if how == "no" {
		return "", errNo
	}
	if how == "retry" {
		_, err := durable.Retry(ctx, "two", durable.Policy{MaxAttempts: 3, Initial: time.Hour}, func(context.Context) (string, error) { w.ran.Add(1); return "", errors.New("not yet") })
		return "", err
	}
	if err := step("two", fault); err != nil {
		return "", err
	}
	return "done", step("three", nil)
}

// waits is a workflow that waits.
func (w *world) waits(ctx context.Context, _ string) (string, error) {
	if err := durable.Do(ctx, "one", func(context.Context) error { return nil }); err != nil {
		return "", err
	}
	var err error
	switch w.how.Load() {
	case "approval":
		_, err = durable.Await[bool](ctx, "approve", durable.Prompt("Go?"))
	case "signal":
		_, err = durable.Await[string](ctx, "go")
	case "sleep":
		err = durable.Sleep(ctx, time.Hour)
	case "child":
		_, err = w.child.Run(ctx, durable.AutoID, "")
	}
	return "", err
}
