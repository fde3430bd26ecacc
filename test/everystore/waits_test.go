package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// isAsked looks whether the root run is listed as waiting for a person, as long
// as nobody has answered.
func (l *life) isAsked(prompt string) error {
	h, err := l.d.outside.Load(l.ctx, l.trial.id, store.Cursor{NoEvents: true})
	if err != nil {
		return err
	}
	if r := &h.Run; r.Inbox == 0 && (r.Status != store.Waiting || r.Code != durable.CodeApproval || r.Reason != prompt) {
		return fmt.Errorf("nobody can see what is asked: the run is %s, %q: %q", r.Status, r.Code, r.Reason)
	}
	return nil
}

func waitShapes() []*shape {
	return []*shape{
		{
			name: "signal before the wait", may: []string{"r wait_requested letter"}, want: []string{"x, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("signal before", func(ctx context.Context, _ int) (string, error) {
					if err := durable.Do(ctx, "work", func(ctx context.Context) error {
						l.did(ctx)
						return l.until(ctx, "mail to r: signal letter 1")
					}); err != nil {
						return "", err
					}
					v, err := durable.Await[string](ctx, "letter")
					if err != nil {
						return "", err
					}
					return l.step(ctx, "after", v)
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r workflow_started"); err != nil {
					return err
				}
				return l.signal("letter", "x", "1")
			},
		},
		{
			name: "signals after the waits", unloadsEverywhere: true, want: []string{"x1 y, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("signals after", func(ctx context.Context, _ int) (string, error) {
					x, err := durable.Await[string](ctx, "letter")
					if err != nil {
						return "", err
					}
					if x, err = l.step(ctx, "between", x+"1"); err != nil {
						return "", err
					}
					y, err := durable.Await[string](ctx, "letter")
					return x + " " + y, err
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r wait_requested letter"); err != nil {
					return err
				}
				if err := l.signal("letter", "x", "1"); err != nil {
					return err
				}
				if err := l.until(ctx, "r wait_requested letter#2"); err != nil {
					return err
				}
				return l.signal("letter", "y", "2")
			},
		},
		{
			name: "approval", want: []string{"shipped true, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("approval", func(ctx context.Context, _ int) (string, error) {
					ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship it?"), durable.Timeout(time.Hour))
					if err != nil {
						return "", err
					}
					return l.step(ctx, "ship", fmt.Sprint("shipped ", ok))
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r wait_requested approve"); err != nil {
					return err
				}
				if err := l.isAsked("Ship it?"); err != nil {
					return err
				}
				return l.signal(durable.WaitKey("approve", 0), true, "1")
			},
			recovered: func(l *life, r durable.Report) error {
				if !l.past["r wait_requested approve"] || l.past["r signal_received approve"] {
					return nil
				}
				h, err := l.d.outside.Load(l.ctx, l.trial.id, store.Cursor{NoEvents: true})
				switch {
				case err != nil:
					return err
				case h.Run.Inbox > 0 && len(r.Approvals) == 0:
					return nil // it is answered already, and only to be taken
				case len(r.Approvals) != 1 || r.Approvals[0].RunID != l.trial.id || r.Approvals[0].Key != "approve" || r.Approvals[0].Prompt != "Ship it?" || r.Approvals[0].Answer != durable.WaitKey("approve", 0):
					return fmt.Errorf("approvals restored: %v", r.Approvals)
				}
				return nil
			},
		},
		{
			name: "time-out", want: []string{"nobody, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("time-out", func(ctx context.Context, _ int) (string, error) {
					_, err := durable.Await[bool](ctx, "approve", durable.Timeout(short))
					if !errors.Is(err, durable.ErrTimeout) {
						return "", fmt.Errorf("no time-out: %w", err)
					}
					return l.step(ctx, "after", "nobody")
				})}
			},
		},
		{
			name: "signal against time-out", want: []string{"x, <nil>", "nobody, <nil>"}, races: true,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("signal against time-out", func(ctx context.Context, _ int) (string, error) {
					v, err := durable.Await[string](ctx, "letter", durable.Timeout(short))
					if errors.Is(err, durable.ErrTimeout) {
						v, err = "nobody", nil
					}
					if err != nil {
						return "", err
					}
					return l.step(ctx, "after", v)
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r wait_requested letter"); err != nil {
					return err
				}
				select {
				case <-time.After(short):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return l.signal("letter", "x", "1")
			},
		},
		{
			name: "cancel in mid-wait", want: []string{", run r (cancel in mid-wait) cancelled: enough"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("cancel in mid-wait", func(ctx context.Context, _ int) (string, error) {
					if _, err := l.step(ctx, "before", "a"); err != nil {
						return "", err
					}
					if _, err := durable.Await[string](ctx, "never"); !errors.Is(err, durable.ErrCancelled) {
						return "", fmt.Errorf("no cancel: %w", err)
					}
					_, err := l.step(ctx, "after", "a body that begins after the cancel")
					return "swallowed", err
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r wait_requested never"); err != nil {
					return err
				}
				return l.cancel()
			},
		},
		{
			name: "cancel in mid-step", may: []string{"r step_completed long 1", "r long/1"}, want: []string{", run r (cancel in mid-step) cancelled: enough"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("cancel in mid-step", func(ctx context.Context, _ int) (string, error) {
					// What a body completes after the cancel is recorded.
					if _, err := durable.Step(ctx, "long", func(ctx context.Context) (string, error) {
						l.did(ctx)
						<-ctx.Done()
						if !errors.Is(context.Cause(ctx), durable.ErrCancelled) {
							return "", context.Cause(ctx)
						}
						return "done all the same", nil
					}, durable.LongOperation()); err != nil {
						return "", err
					}
					return "", durable.Sleep(ctx, time.Hour)
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r step_started long 1"); err != nil {
					return err
				}
				return l.cancel()
			},
		},
	}
}
