package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// An option that somebody forgot to set was a panic deep inside of the engine.
func TestANilOptionIsRefusedByEveryDoor(t *testing.T) {
	one := func(context.Context) (int, error) { return 1, nil }
	done := func(context.Context) error { return nil }
	wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
	ctx := context.Background()

	for name, call := range map[string]func(ctx context.Context) error{
		"Step":  func(ctx context.Context) error { return second(durable.Step(ctx, "s", one, durable.Relaxed(), nil)) },
		"Do":    func(ctx context.Context) error { return durable.Do(ctx, "s", done, nil) },
		"Retry": func(ctx context.Context) error { return second(durable.Retry(ctx, "s", durable.Policy{}, one, nil)) },
		"Seek": func(ctx context.Context) error {
			return second(durable.Seek(ctx, "s", durable.Policy{}, one, func(int) error { return nil }, nil))
		},
		"Once": func(ctx context.Context) error { return second(durable.Once(ctx, "s", one, nil)) },
		"Transact": func(ctx context.Context) error {
			return second(durable.Transact(ctx, "s", func(context.Context, *sqlx.Tx) (int, error) { return 1, nil }, nil))
		},
		"Await":        func(ctx context.Context) error { return second(durable.Await[int](ctx, "s", nil)) },
		"AwaitRequest": func(ctx context.Context) error { return second(durable.AwaitRequest[int](ctx, "s", nil)) },
		"a child":      func(ctx context.Context) error { return second(wf.Start(ctx, durable.AutoID, 1, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				caller := durable.Define("caller", func(ctx context.Context, _ int) (int, error) {
					err := call(ctx)
					require.ErrorIs(t, err, durable.ErrInvalid)
					require.ErrorContains(t, err, " is nil: ")
					return durable.Step(ctx, "after", one) // nothing of it is left
				})
				w.boot(t, with(caller, wf))
				_, err := run(t, w, caller, "r", 1)
				require.NoError(t, err)
				require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed after", "workflow_completed"}, w.story("r"))
			})
		})
	}

	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}})
	require.NoError(t, err)
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	open := func(o durable.Options) error {
		e, err := durable.Open(ctx, memory.Open(), o)
		if err != nil {
			return err
		}
		defer e.Close()
		return second(e.Recover(ctx))
	}
	for name, err := range map[string]error{
		"Start":        second(wf.Start(ctx, "r", 1, nil)),
		"Enqueue":      second(wf.Enqueue(ctx, "r", 1, durable.Delay(0), nil)),
		"Run":          second(wf.Run(ctx, "r", 1, nil)),
		"StartAll":     second(wf.StartAll(ctx, func(func(string, int) bool) {}, nil)),
		"StartJSON":    second(operate.On(eng).StartJSON(ctx, "w", "r", nil, nil)),
		"WithSignal":   second(wf.Start(ctx, "r", 1, durable.WithSignal("s", 1, nil))),
		"Signal":       durable.Signal(ctx, "r", "s", 1, nil),
		"Request":      second(durable.Request[int](ctx, "r", "s", 1, nil)),
		"Cancel":       eng.Cancel(ctx, "r", "", nil),
		"Define":       open(durable.Options{Workflows: []durable.Definition{durable.Define("w", func(context.Context, int) (int, error) { return 1, nil }, nil)}}),
		"Type":         open(durable.Options{Types: []durable.TypeDef{durable.Type[kindOfOption]("registered", 1, nil)}}),
		"Schedule":     open(durable.Options{Workflows: []durable.Definition{wf}, Schedules: []durable.Schedule{wf.Schedule("s", durable.Every(time.Hour), 1, nil)}}),
		"no timetable": open(durable.Options{Workflows: []durable.Definition{wf}, Schedules: []durable.Schedule{wf.Schedule("s", durable.Timetable{}, 1)}}),
		"no schedule":  open(durable.Options{Workflows: []durable.Definition{wf}, Schedules: []durable.Schedule{{}}}),
	} {
		require.ErrorIs(t, err, durable.ErrInvalid, name)
	}
}

type kindOfOption struct{ N int }
