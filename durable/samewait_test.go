package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/store"
)

// rivals waits for one name in two branches, the second an hour after the
// first, and says what each came to. The last function is for all branches behind it.
func rivals(waits ...func(ctx context.Context) (string, error)) *durable.Workflow[int, string] {
	return durable.Define("rivals", func(ctx context.Context, _ int) (string, error) {
		var fs []*durable.Future[string]
		for i := range 2 {
			fs = append(fs, durable.Go(ctx, "branch", func(ctx context.Context) (string, error) {
				if err := durable.Sleep(ctx, time.Duration(i)*time.Hour); err != nil {
					return "", err
				}
				v, err := waits[min(i, len(waits)-1)](ctx)
				var same *misuse.SameWaitError
				if errors.As(err, &same) {
					return fmt.Sprintf("%s yields to %s for %s", same.Key, same.Other, same.Name), nil
				}
				return v, err
			}))
		}
		a, err := fs[0].Wait(ctx)
		b, err2 := fs[1].Wait(ctx)
		return a + "; " + b, errors.Join(err, err2)
	})
}

func await(o ...durable.AwaitOption) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return durable.Await[string](ctx, "go", o...) }
}

func TestTheSecondOfTwoWaitsForOneNameIsRefusedAndNothingIsLost(t *testing.T) {
	const want = "first; branch#2/go yields to branch/go for go"
	for name, restarts := range map[string][]time.Duration{
		"in one life": nil, "killed while the first waits": {30 * time.Minute}, "killed behind the refusal": {2 * time.Hour},
		"the second comes back first": {30 * time.Minute, 29 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := rivals(await())
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				for _, d := range restarts {
					pass(d)
					w.reboot(t, with(wf))
				}
				pass(3 * time.Hour)
				require.Equal(t, store.Waiting, w.row("r").Status, "the first goes on waiting")
				require.NoError(t, durable.Signal(w.ctx(), "r", "go", "first"))
				if err := durable.Signal(w.ctx(), "r", "go", "second"); !errors.Is(err, durable.ErrNotRunning) { // it may have ended by then
					require.NoError(t, err)
				}
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, want, out)
				require.Equal(t, 1, strings.Count(strings.Join(w.story("r"), ","), "signal_received"))
				require.Contains(t, w.story("r"), "wait_closed branch#2/go")
			})
		})
	}
}

func TestTheRefusalOfAWaitSaysWhatToDo(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		first := durable.Go(ctx, "first", func(ctx context.Context) (int, error) {
			return durable.Await[int](ctx, "go", durable.Timeout(3*time.Hour))
		})
		second := durable.Go(ctx, "second", func(ctx context.Context) (int, error) {
			if err := durable.Sleep(ctx, time.Minute); err != nil {
				return 0, err
			}
			return durable.Await[int](ctx, "go")
		})
		_, err := second.Wait(ctx)
		var same *misuse.SameWaitError
		if !errors.As(err, &same) {
			return 0, fmt.Errorf("not refused: %w", err)
		}
		for _, part := range []string{"second/go", "first/go", `"go"`, "names of their own"} {
			if !strings.Contains(err.Error(), part) {
				return 0, fmt.Errorf("it does not say %s: %w", part, err)
			}
		}
		if err := durable.Do(ctx, "release", func(ctx context.Context) error {
			return durable.Signal(ctx, durable.Attempt(ctx).RunID, "go", 5)
		}); err != nil {
			return 0, err
		}
		return first.Wait(ctx)
	})
	require.NoError(t, live.err)
	require.Equal(t, 5, live.value)
	require.Equal(t, live, replay)
}

func TestWaitsThatDoNotCompeteAreNotRefused(t *testing.T) {
	request := func(ctx context.Context) (string, error) {
		q, err := durable.AwaitRequest[string](ctx, "go")
		return q.Value, err
	}
	for name, c := range map[string]struct {
		wf    *durable.Workflow[int, string]
		send  func(w *world) error
		want  string
		early bool // sent before anybody waits
	}{
		"two prompts": {
			wf: rivals(await(durable.Prompt("Go?"))),
			send: func(w *world) error {
				return errors.Join(
					durable.Signal(w.ctx(), "r", durable.WaitKey("branch#2/go", 0), "second"),
					durable.Signal(w.ctx(), "r", "go", "first"))
			},
			want: "first; second",
		},
		"one after the other": {
			wf: rivals(func(ctx context.Context) (string, error) {
				v, err := durable.Await[string](ctx, "go", durable.Timeout(30*time.Minute))
				if errors.Is(err, durable.ErrTimeout) {
					return "late", nil
				}
				return v, err
			}),
			send: func(w *world) error { return nil }, want: "late; late",
		},
		"signals that came before": {
			wf: rivals(await()), early: true, want: "a; b",
			send: func(w *world) error {
				return errors.Join(durable.Signal(w.ctx(), "r", "go", "a"), durable.Signal(w.ctx(), "r", "go", "b"))
			},
		},
		"a signal and a request": {
			wf: rivals(request, await()),
			send: func(w *world) error {
				ctx, cancel := context.WithTimeout(w.ctx(), time.Second)
				defer cancel()
				if _, err := durable.Request[int](ctx, "r", "go", "request"); !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
				return durable.Signal(w.ctx(), "r", "go", "signal")
			},
			want: "request; signal",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.boot(t, with(c.wf))
				start(t, w, c.wf, "r", 0)
				if !c.early {
					pass(2 * time.Hour)
				}
				require.NoError(t, c.send(w))
				out, err := wait(t, w, c.wf, "r")
				require.NoError(t, err)
				require.Equal(t, c.want, out)
			})
		})
	}
	t.Run("two requests do compete", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			wf := rivals(request)
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			pass(2 * time.Hour)
			ctx, cancel := context.WithTimeout(w.ctx(), time.Second)
			defer cancel()
			_, _ = durable.Request[int](ctx, "r", "go", "request")
			out, err := wait(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, "request; branch#2/go yields to branch/go for go", out)
		})
	})
}

// A signal that names no wait goes to the one that was asked first, live as
// after a restart, in whatever order the branches come back.
func TestAPlainSignalGoesToTheWaitThatWasAskedFirst(t *testing.T) {
	for name, restart := range map[string]bool{"live": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				const n = 8
				lives := 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					lives++
					life := lives
					var fs []*durable.Future[string]
					for i := range n {
						fs = append(fs, durable.Go(ctx, "b", func(ctx context.Context) (string, error) {
							// Asked in the order 7, 6, ... 0.
							if err := durable.Sleep(ctx, time.Duration(n-i)*time.Minute); err != nil {
								return "", err
							}
							if life > 1 {
								time.Sleep(time.Duration((i*5)%n) * time.Second) // and come back in another one
							}
							return durable.Await[string](ctx, "go", durable.Prompt(fmt.Sprint("Go ", i, "?")))
						}))
					}
					all := ""
					for _, f := range fs {
						v, err := f.Wait(ctx)
						if err != nil {
							return "", err
						}
						all += v
					}
					return all, nil
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				pass(time.Hour)
				if restart {
					w.crash()
					w.expire()
					w.serve(t)
				}
				for i := range n {
					require.NoError(t, durable.Signal(w.ctx(), "r", "go", fmt.Sprint(i)))
				}
				synctest.Wait()
				w.boot(t, with(wf))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "76543210", out)
			})
		})
	}
}

// The end of a wait by a signal of the wrong type is recorded: what was taken
// behind it stays taken.
func TestASignalOfTheWrongTypeIsTheSameErrorOnReplay(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (string, error) {
		err := durable.Do(ctx, "send", func(ctx context.Context) error {
			id := durable.Attempt(ctx).RunID
			return errors.Join(durable.Signal(ctx, id, "n", "three"), durable.Signal(ctx, id, "n", "four"))
		})
		if err != nil {
			return "", err
		}
		_, err = durable.Await[int](ctx, "n")
		var wrong *durable.SignalTypeError
		if !errors.As(err, &wrong) {
			return "", fmt.Errorf("want a type error: %w", err)
		}
		v, err := durable.Await[string](ctx, "n")
		return v + wrong.Error(), err
	})
	require.NoError(t, live.err)
	require.Equal(t, live, replay)
	require.Contains(t, live.value, "holds a string and cannot be read as int")
}
