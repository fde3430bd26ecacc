package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A rowProgram is what the runs of these tests execute: it counts the bodies that
// begin, and holds some of them until it is released.
type rowProgram struct {
	bodies, others atomic.Int32
	open           atomic.Bool
	defs           []durable.Definition
	flow           *durable.Workflow[string, string]
}

func newRowProgram() *rowProgram {
	p := &rowProgram{}
	body := func(ctx context.Context) (string, error) { p.bodies.Add(1); return "a", nil }
	other := func(context.Context, string) (string, error) { p.others.Add(1); return "other", nil }
	p.flow = durable.Define("flow", func(ctx context.Context, kind string) (string, error) {
		if rest, ok := bytes.CutPrefix([]byte(kind), []byte("again ")); ok {
			return "", durable.Continue(ctx, string(rest))
		}
		if _, err := durable.Step(ctx, "a", body); err != nil {
			return "", err
		}
		if err := p.middle(ctx, kind); err != nil {
			return "", err
		}
		return durable.Step(ctx, "z", body)
	}, durable.Version("1"))
	parent := durable.Define("parent", func(ctx context.Context, kind string) (string, error) {
		return p.flow.Run(ctx, "r", kind)
	}, durable.Version("1"))
	p.defs = []durable.Definition{
		durable.Define("flow", other, durable.Version("1x")), durable.Define("flowx", other, durable.Version("1")),
		p.flow, parent,
	}
	return p
}

// middle is where a run of this kind is when the test looks at it.
func (p *rowProgram) middle(ctx context.Context, kind string) (err error) {
	switch kind {
	case "signal":
		_, err = durable.Await[string](ctx, "go")
	case "approval":
		_, err = durable.Await[string](ctx, "go", durable.Prompt("Go?"), durable.Timeout(time.Hour))
	case "timer":
		err = durable.Sleep(ctx, time.Hour)
	case "backoff":
		err = durable.Do(ctx, "try", func(ctx context.Context) error { return nil })
		if err == nil {
			_, err = durable.Retry(ctx, "retry", durable.Policy{Initial: time.Hour, MaxAttempts: 3}, func(ctx context.Context) (int, error) {
				if durable.Attempt(ctx).Number == 1 {
					return 0, errors.New("not yet")
				}
				return 1, nil
			})
		}
	case "failure":
		if !p.open.Load() {
			return errors.New("out of stock")
		}
	case "hold":
		err = durable.Do(ctx, "hold", func(ctx context.Context) error {
			if !p.open.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
	}
	return err
}

// rowStates leave a run "r" behind, with nobody alive who has it.
func rowStates() map[string]func(t *testing.T, w *world, p *rowProgram) {
	begin := func(kind string, then func(t *testing.T, w *world, p *rowProgram), o ...durable.StartOption) func(t *testing.T, w *world, p *rowProgram) {
		return func(t *testing.T, w *world, p *rowProgram) {
			w.boot(t, with(p.defs...))
			o := append([]durable.StartOption{durable.Attributes(map[string]string{"team": "blue"})}, o...)
			_, err := p.flow.Start(w.ctx(), "r", kind, o...)
			require.NoError(t, err)
			synctest.Wait()
			if then != nil {
				then(t, w, p)
			}
			w.crash()
			w.expire()
		}
	}
	op := func(f func(w *world) error) func(t *testing.T, w *world, p *rowProgram) {
		return func(t *testing.T, w *world, p *rowProgram) { require.NoError(t, f(w)); synctest.Wait() }
	}
	pause := op(func(w *world) error { return w.eng.Pause(w.ctx(), "r", "lunch") })
	// afterwards acts in a process that does not serve the run, when its own is gone.
	afterwards := func(act func(t *testing.T, w *world, p *rowProgram)) func(t *testing.T, w *world, p *rowProgram) {
		return func(t *testing.T, w *world, p *rowProgram) {
			w.crash()
			w.expire()
			w.boot(t, durable.Options{})
			act(t, w, p)
		}
	}
	return map[string]func(t *testing.T, w *world, p *rowProgram){
		"pending": func(t *testing.T, w *world, p *rowProgram) {
			w.boot(t, durable.Options{})
			start(t, w, durable.Ref[string, string]("flow"), "r", "signal")
			w.crash()
			w.expire()
		},
		"running":         begin("hold", nil),
		"on a signal":     begin("signal", nil),
		"with a deadline": begin("signal", nil, durable.Deadline(24*time.Hour)),
		"with mail": begin("signal", op(func(w *world) error {
			return durable.Signal(w.ctx(), "r", "elsewhere", "x")
		})),
		"answered":       begin("signal", afterwards(op(func(w *world) error { return durable.Signal(w.ctx(), "r", "go", "yes") }))),
		"on an approval": begin("approval", nil),
		"on a timer":     begin("timer", nil),
		"in a backoff":   begin("backoff", nil),
		"paused waiting": begin("signal", pause),
		"paused":         begin("hold", afterwards(pause)),
		"failed":         begin("failure", nil),
		"interrupted": begin("hold", func(t *testing.T, w *world, p *rowProgram) {
			require.NoError(t, w.eng.Close())
		}),
		"completed":        begin("", nil),
		"cancelled":        begin("signal", op(func(w *world) error { return w.eng.Cancel(w.ctx(), "r", "enough") })),
		"being cancelled":  begin("signal", afterwards(op(func(w *world) error { return w.eng.Cancel(w.ctx(), "r", "enough") }))),
		"later generation": begin("again signal", nil),
		"child": func(t *testing.T, w *world, p *rowProgram) {
			w.boot(t, with(p.defs...))
			start(t, w, p.defs[3].(*durable.Workflow[string, string]), "p", "signal")
			synctest.Wait()
			w.crash()
			w.expire()
		},
		"fork": func(t *testing.T, w *world, p *rowProgram) {
			w.boot(t, with(p.defs...))
			start(t, w, p.flow, "source", "signal")
			synctest.Wait()
			_, err := operate.On(w.eng).Fork(w.ctx(), "source", operate.ForkOptions{ID: "r"})
			require.NoError(t, err)
			synctest.Wait()
			w.crash()
			w.expire()
		},
		"fork of nobody": func(t *testing.T, w *world, p *rowProgram) {
			w.boot(t, with(p.defs...))
			start(t, w, p.flow, "source", "signal")
			synctest.Wait()
			w.crash()
			w.expire()
			w.boot(t, durable.Options{})
			require.NoError(t, second(operate.On(w.eng).Fork(w.ctx(), "source", operate.ForkOptions{ID: "r"})))
			w.crash()
			w.expire()
		},
		"copy": func(t *testing.T, w *world, p *rowProgram) {
			w.boot(t, with(p.defs...))
			start(t, w, p.flow, "source", "signal")
			synctest.Wait()
			at, err := operate.On(w.eng).CheckpointOf(w.ctx(), "source", "a")
			require.NoError(t, err)
			require.NoError(t, second(operate.On(w.eng).Jump(w.ctx(), "source", at, operate.JumpOptions{})))
			synctest.Wait()
			var file bytes.Buffer
			require.NoError(t, operate.On(w.eng).Export(w.ctx(), "source", &file))
			require.NoError(t, second(operate.On(w.eng).Import(w.ctx(), &file, operate.ImportOptions{NewID: "r"})))
			w.crash()
			w.expire()
		},
		"other branch": begin("signal", func(t *testing.T, w *world, p *rowProgram) {
			at, err := operate.On(w.eng).CheckpointOf(w.ctx(), "r", "a")
			require.NoError(t, err)
			require.NoError(t, second(operate.On(w.eng).Jump(w.ctx(), "r", at, operate.JumpOptions{})))
			synctest.Wait()
		}),
	}
}

// inState runs a test on a run in this state.
func inState(t *testing.T, state string, test func(t *testing.T, w *world, p *rowProgram, before store.Run)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		p := newRowProgram()
		rowStates()[state](t, w, p)
		before := w.row("r")
		w.open(t, durable.Options{Lease: rareBeats}) // hours pass, and nothing in these tests depends on its beats
		require.Empty(t, verify(t, w, "r").Findings, "%s: it is sound", state)
		test(t, w, p, before)
	})
}

// others returns values that a field might have instead of this one.
func others(v reflect.Value) (list []any) {
	switch v.Kind() {
	case reflect.String:
		list = []any{v.String() + "x"}
		if v.Type() == reflect.TypeFor[store.Status]() {
			for _, s := range store.Statuses() {
				list = append(list, string(s))
			}
		} else if v.String() != "" {
			list = append(list, "")
		}
	case reflect.Int32, reflect.Int64:
		list = []any{v.Int() + 1, v.Int() ^ 1<<20}
		if v.Int() != 0 {
			list = append(list, int64(0))
		}
	case reflect.Bool:
		list = []any{!v.Bool()}
	case reflect.Array: // of bytes
		b := reflect.New(v.Type()).Elem()
		b.Set(v)
		b.Index(3).SetUint(b.Index(3).Uint() ^ 1)
		list = []any{b.Interface()}
	case reflect.Map:
		list = []any{map[string]string{}, map[string]string{"team": "red"}}
	}
	return slices.DeleteFunc(list, func(x any) bool {
		if v.Kind() == reflect.Map && v.Len() == 0 && reflect.ValueOf(x).Len() == 0 {
			return true
		}
		return reflect.DeepEqual(reflect.ValueOf(x).Convert(v.Type()).Interface(), v.Interface())
	})
}

// change sets one field of a row.
func change(r *store.Run, field string, to any) {
	v := reflect.ValueOf(r).Elem().FieldByName(field)
	v.Set(reflect.ValueOf(to).Convert(v.Type()))
}

// harmless says why a value of a field that is not what was written is not found, and
// why no execution goes wrong by it; empty: it must be found.
func harmless(state, field string, before, after *store.Run) string {
	switch {
	case field == "UpdatedAt":
		return "people see it"
	case field == "ArchivedSeq" && after.ArchivedSeq >= 0 && after.ArchivedSeq <= before.Last.Seq:
		return "it is archived again, or stands in no archive: no execution looks at it"
	case field == "Seen" && after.Seen >= 0 && after.Seen < before.Seen:
		return "it is looked at once more"
	case field == "Seen" && after.Seen >= 0 && after.Seen <= before.Inbox && state != "answered":
		return "of what is in its inbox, no wait asks for anything"
	case field == "Strikes" && after.Strikes < before.Strikes:
		return "it is tried once more"
	case field == "WakeAt" && before.Status == store.Interrupted:
		return "nobody looks at it"
	case field == "Status" && slices.Contains([]store.Status{store.Running, store.Resuming, store.Waiting}, before.Status) && (after.Status == store.Running || after.Status == store.Resuming) && !before.Paused:
		return "an execution replays its history, and says anew what it does"
	case field == "Status" && before.Paused && (after.Status == store.Interrupted || after.Status == store.Waiting):
		return "once it goes on, an execution says anew what it does"
	}
	return ""
}

// A field that is added to a row fails here until it is decided: found by Verify
// whatever else it says, or harmless with a reason.
func TestVerifyFindsEveryFieldOfARowThatIsNotWhatWasWritten(t *testing.T) {
	for state := range rowStates() {
		t.Run(state, func(t *testing.T) {
			inState(t, state, func(t *testing.T, w *world, p *rowProgram, before store.Run) {
				s := w.rotting(t, rot{run: "r"}, durable.Options{})
				for i := range reflect.TypeFor[store.Run]().NumField() {
					field := reflect.TypeFor[store.Run]().Field(i).Name
					if field == "Last" {
						continue // no store keeps it
					}
					values := others(reflect.ValueOf(before).Field(i))
					require.NotEmpty(t, values, "no other value of %s is known", field)
					for _, to := range values {
						after := before
						change(&after, field, to)
						s.rot.row = func(r *store.Run) { change(r, field, to) }
						v := verify(t, w, "r")
						if harmless(state, field, &before, &after) != "" {
							continue
						}
						require.True(t, v.Corrupt(), "%s: %s is %v, was %v: %v", state, field, to, reflect.ValueOf(before).Field(i), v.Findings)
						if field != "ID" { // then nothing fits
							require.True(t, slices.ContainsFunc(v.Findings, func(f operate.Finding) bool { return f.Part == operate.PartRow }), "%s: %v", field, v.Findings)
						}
					}
				}
			})
		})
	}
}

// patchOf returns a patch that sets one field of a row; nil: no patch has it.
func patchOf(r *store.Run, field string) *store.RowPatch {
	p := &store.RowPatch{}
	v := reflect.ValueOf(p).Elem().FieldByName(field)
	if !v.IsValid() {
		return nil
	}
	is := reflect.ValueOf(r).Elem().FieldByName(field)
	if v.Kind() == reflect.Map {
		v.Set(is)
		return p
	}
	v.Set(reflect.New(is.Type()))
	v.Elem().Set(is)
	return p
}

// What a patch can put right, Repair does; of anything else it says that only a person
// can.
func TestRepairPutsEveryFieldOfARowRightThatAPatchCan(t *testing.T) {
	for state := range rowStates() {
		t.Run(state, func(t *testing.T) {
			for i := range reflect.TypeFor[store.Run]().NumField() {
				field := reflect.TypeFor[store.Run]().Field(i).Name
				if slices.Contains([]string{"ID", "Last", "Status", "Epoch", "Inbox"}, field) {
					continue // of them, TestARowThatContradictsItsEventsIsFoundAndRebuilt and others tell
				}
				inState(t, state, func(t *testing.T, w *world, p *rowProgram, before store.Run) {
					after := before
					for _, to := range others(reflect.ValueOf(before).Field(i)) {
						change(&after, field, to)
						if harmless(state, field, &before, &after) == "" {
							break
						}
					}
					if harmless(state, field, &before, &after) != "" {
						return
					}
					patch := patchOf(&after, field)
					if patch == nil {
						repairByHand(t, w, field, &before, &after)
						return
					}
					require.NoError(t, w.data.Commit(context.Background(), []store.Change{{RunID: "r", Expect: store.Expect{Epoch: before.Epoch}, Row: patch}})[0])
					require.NotEmpty(t, verify(t, w, "r").Findings)
					rep, err := operate.On(w.eng).Repair(w.ctx(), "r", operate.RepairOptions{})
					require.NoError(t, err, "%s", field)
					require.NotEmpty(t, rep.Did)
					require.Empty(t, verify(t, w, "r").Findings, "%s: %v", field, rep.Did)
					now := w.row("r")
					if want := reflect.ValueOf(before).Field(i).Interface(); !settles(field, &now) && (field != "Attributes" || len(before.Attributes)+len(now.Attributes) > 0) {
						require.EqualValues(t, want, reflect.ValueOf(now).Field(i).Interface(), "%s: %v", field, rep.Did)
					}
				})
			}
		})
	}
}

// settles reports whether a repair sets this field to something else than it was: one
// that takes the run from an owner that is gone interrupts it.
func settles(field string, now *store.Run) bool {
	switch field {
	case "Seen", "Strikes", "ArchivedSeq":
		return true // looked at, tried, archived once more
	case "WakeAt":
		return now.Status == store.Interrupted
	case "Code", "Reason":
		return now.ForkedFrom != "" // an import leaves no event: it is a run that was left behind
	}
	return false
}

func repairByHand(t *testing.T, w *world, field string, before, after *store.Run) {
	t.Helper()
	w.rotting(t, rot{run: "r", row: func(r *store.Run) {
		change(r, field, reflect.ValueOf(after).Elem().FieldByName(field).Interface())
	}}, durable.Options{})
	rep, err := operate.On(w.eng).Repair(w.ctx(), "r", operate.RepairOptions{})
	if field == "Owner" && !before.Status.Terminal() {
		require.NoError(t, err)
		require.Contains(t, rep.Did[0], "owner: nobody")
		require.Empty(t, w.row("r").Owner)
		return
	}
	var no *operate.UnrepairableError
	require.ErrorAs(t, err, &no, field)
	require.False(t, no.Forceable)
	require.ErrorContains(t, err, "set it back in the database", field)
	require.Equal(t, before.Epoch, w.row("r").Epoch, "nothing was changed")
}

// deciding are the fields by which other work would be done, or somebody else told,
// and the states in which they can do so.
var deciding = map[string]any{
	"Workflow": "flowx", "InitialVersion": "1x", "Version": "1x", "Parent": "other", "ParentKey": "other", "InputHash": [16]byte{1}, "Generation": 7, "Branch": 7,
	"CancelAsked": true, "Paused": false,
}

// Whichever field is damaged, the workflow is not executed by it: a run whose row
// would have it do something else stops, and any other does what it would have done.
func TestNoExecutionBelievesADamagedRow(t *testing.T) {
	for state := range rowStates() {
		t.Run(state, func(t *testing.T) {
			for i := range reflect.TypeFor[store.Run]().NumField() {
				field := reflect.TypeFor[store.Run]().Field(i).Name
				if slices.Contains([]string{"ID", "Last", "Epoch"}, field) {
					continue // that is another run, or no row at all, or fenced at its first write
				}
				inState(t, state, func(t *testing.T, w *world, p *rowProgram, before store.Run) {
					to, decides := deciding[field]
					if !decides {
						to = others(reflect.ValueOf(before).Field(i))[0]
					}
					is := reflect.ValueOf(before).Field(i)
					if reflect.DeepEqual(reflect.ValueOf(to).Convert(is.Type()).Interface(), is.Interface()) || field == "CancelAsked" && before.Paused {
						return
					}
					ran := p.bodies.Load()
					p.open.Store(true)
					o := with(p.defs...)
					o.Lease = rareBeats
					s := w.rotting(t, rot{run: "r", row: func(r *store.Run) { change(r, field, to) }}, o)
					if field == "Paused" { // for real, so that it can be claimed
						s.rot.row = nil
						no := false
						require.NoError(t, w.data.Commit(context.Background(), []store.Change{{RunID: "r", Expect: store.Expect{Epoch: before.Epoch}, Row: &store.RowPatch{Paused: &no}}})[0])
					}
					goOn(w)
					require.Zero(t, p.others.Load(), "%s: other code was executed", field)
					now := w.row("r")
					if field == "InputHash" && before.Generation > 0 {
						return // it is of an input that no execution looks at any more; Verify does
					}
					if !decides || before.Status.Terminal() && before.Status != store.Failed {
						if now.Status == store.Completed && before.Status != store.Completed {
							require.EqualValues(t, 2, p.bodies.Load(), "%s: each body once", field)
						}
						return
					}
					require.Equal(t, ran, p.bodies.Load(), "%s is %v: a body was run; it is %s: %s\n%s", field, to, now.Status, now.Reason, w.log)
					require.NotEqual(t, store.Completed, now.Status, "%s", field)
					require.False(t, before.Status != store.Cancelled && now.Status == store.Cancelled && !before.CancelAsked, "%s: cancelled by the row alone", field)
					if now.Status == store.Interrupted && now.Epoch != before.Epoch && now.Code != durable.CodeImported {
						require.Equal(t, durable.CodeDamaged, now.Code, "%s: %s", field, now.Reason)
					}
				})
			}
		})
	}
}

// goOn does all that lets a run go on.
func goOn(w *world) {
	ctx := w.ctx()
	_, _ = w.eng.Recover(ctx)
	synctest.Wait()
	_ = durable.Signal(ctx, "r", "go", "yes")
	pass(2 * time.Hour)
	_, _ = operate.On(w.eng).Resume(ctx, "r", operate.ResumeOptions{})
	pass(2 * time.Hour)
}

// Each damage is tried in every state that a row can be in.
func TestTheStatesOfRowDamageAreAllThatThereAre(t *testing.T) {
	seen := map[store.Status]bool{}
	for state := range rowStates() {
		inState(t, state, func(t *testing.T, w *world, p *rowProgram, before store.Run) { seen[before.Status] = true })
	}
	for _, s := range store.Statuses() {
		if s != store.Resuming { // of a process that was killed twice; as running
			require.Contains(t, slices.Collect(maps.Keys(seen)), s, fmt.Sprint(seen))
		}
	}
}
