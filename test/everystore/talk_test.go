package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/store"
)

var errRude = errors.New("rude")

// talkShapes are about what others learn of a live run, and say to it.
func talkShapes() []*shape {
	return []*shape{
		{
			name: "published", may: []string{"r wait_requested seen"}, want: []string{"they saw 2, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("published", func(ctx context.Context, _ int) (string, error) {
					for i := 1; i <= 2; i++ {
						if err := durable.Publish(ctx, "progress", i); err != nil {
							return "", err
						}
					}
					return durable.Await[string](ctx, "seen")
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r workflow_started"); err != nil {
					return err
				}
				n, err := durable.WaitPublished(l.ctx, l.trial.id, "progress", func(n int) bool { return n == 2 })
				if err != nil {
					return err
				}
				return l.signal("seen", fmt.Sprint("they saw ", n), "1")
			},
		},
		{
			name: "requests", may: []string{"r wait_requested ask", "r wait_requested ask#2"}, want: []string{"polite, rude, <nil>"}, unloadsEverywhere: true,
			errors: []durable.ErrorKind{durable.Sentinel("rude", errRude)},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("requests", func(ctx context.Context, _ int) (string, error) {
					first, err := durable.AwaitRequest[string](ctx, "ask")
					if err != nil {
						return "", err
					}
					if _, err := l.step(ctx, "think", ""); err != nil {
						return "", err
					}
					if err := first.Reply(ctx, "you said "+first.Value); err != nil {
						return "", err
					}
					second, err := durable.AwaitRequest[string](ctx, "ask")
					if err != nil {
						return "", err
					}
					if err := second.Refuse(ctx, errRude); err != nil {
						return "", err
					}
					var again *durable.AnsweredError
					if err := second.Reply(ctx, "sorry"); !errors.As(err, &again) {
						return "", fmt.Errorf("answered twice: %w", err)
					}
					return first.Value + ", " + second.Value, nil
				})}
			},
			// Every life asks again, and gets the same answers, also when the run has
			// ended before.
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r workflow_started"); err != nil {
					return err
				}
				got, err := durable.Request[string](l.ctx, l.trial.id, "ask", "polite", durable.SignalID("1"))
				if err != nil {
					return err
				}
				if got != "you said polite" {
					return fmt.Errorf("answer: %q", got)
				}
				_, err = durable.Request[string](l.ctx, l.trial.id, "ask", "rude", durable.SignalID("2"))
				if !errors.Is(err, errRude) {
					return fmt.Errorf("not refused: %w", err)
				}
				return nil
			},
		},
		{
			name: "request of a child", may: []string{"r wait_requested may I"}, want: []string{"kid was told yes, <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				kid := durable.Define("asker", func(ctx context.Context, _ int) (string, error) {
					return durable.Step(ctx, "ask", func(ctx context.Context) (string, error) {
						l.did(ctx)
						v, err := durable.Request[string](ctx, l.trial.id, "may I", "please")
						return "kid was told " + v, err
					})
				})
				return []durable.Definition{durable.Define("request of a child", func(ctx context.Context, _ int) (string, error) {
					child, err := kid.Start(ctx, durable.AutoID, 1)
					if err != nil {
						return "", err
					}
					q, err := durable.AwaitRequest[string](ctx, "may I")
					if err != nil {
						return "", err
					}
					if err := q.Reply(ctx, "yes"); err != nil {
						return "", err
					}
					return child.Wait(ctx)
				}), kid}
			},
		},
		{
			name: "attributes", want: []string{"[a=1 b=2 state=done], <nil>"},
			start: []durable.StartOption{durable.Attributes(map[string]string{"state": "new", "old": "yes"})},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("attributes", func(ctx context.Context, _ int) (string, error) {
					set := func(name, v string) *durable.Future[int] {
						return durable.Go(ctx, name, func(ctx context.Context) (int, error) {
							return 0, durable.SetAttributes(ctx, map[string]string{name: v})
						})
					}
					a, b := set("a", "1"), set("b", "2")
					if _, err := a.Wait(ctx); err != nil {
						return "", err
					}
					if _, err := b.Wait(ctx); err != nil {
						return "", err
					}
					if err := durable.SetAttributes(ctx, map[string]string{"state": "done", "old": ""}); err != nil {
						return "", err
					}
					return durable.Step(ctx, "look", func(ctx context.Context) (string, error) {
						l.did(ctx)
						h, err := l.d.outside.Load(ctx, l.trial.id, store.Cursor{NoEvents: true})
						if err != nil {
							return "", err
						}
						var list []string
						for _, name := range slices.Sorted(maps.Keys(h.Run.Attributes)) {
							list = append(list, name+"="+h.Run.Attributes[name])
						}
						return fmt.Sprint(list), nil
					})
				})}
			},
		},
		{
			name: "two waits for one name", want: []string{"x and a refusal, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("two waits for one name", func(ctx context.Context, _ int) (string, error) {
					first := durable.Go(ctx, "first", func(ctx context.Context) (string, error) { return durable.Await[string](ctx, "letter") })
					if err := durable.Do(ctx, "until it waits", func(ctx context.Context) error {
						l.did(ctx)
						return l.until(ctx, "r wait_requested first/letter")
					}); err != nil {
						return "", err
					}
					var same *misuse.SameWaitError
					if _, err := durable.Await[string](ctx, "letter"); !errors.As(err, &same) || same.Other != "first/letter" {
						return "", fmt.Errorf("not refused: %w", err)
					}
					v, err := first.Wait(ctx)
					return v + " and a refusal", err
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r wait_closed letter"); err != nil {
					return err
				}
				return l.signal("letter", "x", "1")
			},
		},
		{
			name: "prompts of one name", want: []string{"ann: yes, bob: no, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("prompts of one name", func(ctx context.Context, _ int) (string, error) {
					ask := func(who string) *durable.Future[string] {
						return durable.Go(ctx, who, func(ctx context.Context) (string, error) {
							return durable.Await[string](ctx, "approve", durable.Prompt("Do you, "+who+"?"))
						})
					}
					ann, bob := ask("ann"), ask("bob")
					a, err := ann.Wait(ctx)
					if err != nil {
						return "", err
					}
					b, err := bob.Wait(ctx)
					return "ann: " + a + ", bob: " + b, err
				})}
			},
			script: func(ctx context.Context, l *life) error {
				for _, who := range []string{"ann", "bob"} {
					if err := l.until(ctx, "r wait_requested "+who+"/approve"); err != nil {
						return err
					}
				}
				if err := l.signal(durable.WaitKey("bob/approve", 0), "no", "1"); err != nil {
					return err
				}
				return l.signal(durable.WaitKey("ann/approve", 0), "yes", "2")
			},
		},
	}
}
