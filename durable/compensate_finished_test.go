package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// undoing keeps which effects were made and undone, in order.
type undoing struct {
	mu   sync.Mutex
	list []string
}

func (u *undoing) add(what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, what)
}

// compensations are those that have run, in order.
func (u *undoing) compensations() (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, what := range u.list {
		if name, ok := strings.CutPrefix(what, "undo "); ok {
			names = append(names, name)
		}
	}
	return names
}

// effect registers how name is undone and does it.
func (u *undoing) effect(ctx context.Context, name string) error {
	err := durable.Compensate(ctx, "undo "+name, func(context.Context) error { u.add("undo " + name); return nil })
	if err != nil {
		return err
	}
	return durable.Do(ctx, name, func(context.Context) error { u.add(name); return nil })
}

func doNothing(context.Context) error { return nil }

// effectsInside are workflow functions that leave effects behind in branches and
// items which have come to their end, and what undoes them in order.
func effectsInside(u *undoing) map[string]struct {
	fn   func(ctx context.Context) error
	want []string
} {
	type shape = struct {
		fn   func(ctx context.Context) error
		want []string
	}
	branch := func(ctx context.Context, name string) *durable.Future[int] {
		return durable.Go(ctx, name, func(ctx context.Context) (int, error) { return 7, u.effect(ctx, name) })
	}
	return map[string]shape{
		"branches": {func(ctx context.Context) error {
			a, b := branch(ctx, "a"), branch(ctx, "b")
			_, errA := a.Wait(ctx)
			n, errB := b.Wait(ctx)
			if n != 7 {
				return fmt.Errorf("branch b has given %d", n)
			}
			return errors.Join(errA, errB, u.effect(ctx, "c"))
		}, []string{"c", "b", "a"}},
		"a branch that has failed": {func(ctx context.Context) error {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				return 0, errors.Join(u.effect(ctx, "a"), errors.New("no"))
			})
			if _, err := f.Wait(ctx); err == nil {
				return errors.New("the branch has not failed")
			}
			return nil
		}, []string{"a"}},
		"a branch that has panicked": {func(ctx context.Context) error {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				if err := u.effect(ctx, "a"); err != nil {
					return 0, err
				}
				panic("no")
			})
			_, _ = f.Wait(ctx)
			return nil
		}, []string{"a"}},
		"a branch without calls": {func(ctx context.Context) error {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				return 0, durable.Compensate(ctx, "undo a", func(context.Context) error { u.add("undo a"); return nil })
			})
			_, err := f.Wait(ctx)
			return err
		}, []string{"a"}},
		"nested branches": {func(ctx context.Context) error {
			f := durable.Go(ctx, "outer", func(ctx context.Context) (int, error) {
				in := branch(ctx, "a")
				if _, err := in.Wait(ctx); err != nil {
					return 0, err
				}
				_, err := durable.Map(ctx, "m", []string{"b", "c"}, durable.MapOptions{}, func(ctx context.Context, name string) (int, error) {
					return 0, u.effect(ctx, name)
				})
				return 0, err
			})
			_, err := f.Wait(ctx)
			return err
		}, []string{"c", "b", "a"}},
		"items of a Map": {func(ctx context.Context) error {
			got, err := durable.Map(ctx, "m", []string{"a", "b", "c"}, durable.MapOptions{Concurrency: 2, KeepGoing: true}, func(ctx context.Context, name string) (string, error) {
				if err := u.effect(ctx, name); err != nil {
					return "", err
				}
				if name == "b" {
					return "", errors.New("no")
				}
				return strings.ToUpper(name), nil
			})
			if failed := (*durable.MapError)(nil); !errors.As(err, &failed) || len(failed.Failed) != 1 || !slices.Equal(got, []string{"A", "", "C"}) {
				return fmt.Errorf("map gave %q: %w", got, err)
			}
			return nil
		}, []string{"c", "b", "a"}},
		"items of a MapSeq": {func(ctx context.Context) error {
			got, err := durable.MapSeq(ctx, "m", slices.Values([]string{"a", "b", "c"}), durable.MapOptions{Concurrency: 1}, func(ctx context.Context, name string) (string, error) {
				return name, u.effect(ctx, name)
			}, "", func(all, one string) string { return all + one })
			if got != "abc" {
				return fmt.Errorf("folded to %q: %w", got, err)
			}
			return err
		}, []string{"c", "b", "a"}},
		"a group": {func(ctx context.Context) error {
			g := durable.NewGroup(ctx)
			for _, name := range []string{"a", "b", "c"} {
				g.Go("g", func(ctx context.Context) error { return u.effect(ctx, name) })
			}
			return g.Wait()
		}, []string{"c", "b", "a"}},
		"the loser of a First, which has ended": {func(ctx context.Context) error {
			slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
				if err := durable.Sleep(ctx, time.Second); err != nil {
					return 0, err
				}
				return 0, u.effect(ctx, "slow")
			})
			_, _, err := durable.First(ctx, "first", branch(ctx, "quick"), slow)
			return errors.Join(err, durable.Sleep(ctx, 2*time.Second))
		}, []string{"quick", "slow"}},
		"the loser of a First, which goes on": {func(ctx context.Context) error {
			slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
				if err := errors.Join(u.effect(ctx, "slow"), durable.Sleep(ctx, 1000*time.Hour)); err != nil {
					return 0, err
				}
				return 0, u.effect(ctx, "never")
			})
			_, _, err := durable.First(ctx, "first", slow, durable.Go(ctx, "quick", func(ctx context.Context) (int, error) {
				return 0, errors.Join(durable.Sleep(ctx, time.Second), u.effect(ctx, "quick"))
			}))
			return err
		}, []string{"quick", "slow"}},
		"the loser of a First in a branch that has ended": {func(ctx context.Context) error {
			f := durable.Go(ctx, "outer", func(ctx context.Context) (int, error) {
				slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
					return 0, errors.Join(durable.Sleep(ctx, time.Second), u.effect(ctx, "slow"))
				})
				quick := durable.Go(ctx, "quick", func(context.Context) (int, error) { return 1, nil })
				_, n, err := durable.First(ctx, "first", slow, quick)
				return n, err
			})
			_, err := f.Wait(ctx)
			return errors.Join(err, durable.Sleep(ctx, 2*time.Second))
		}, []string{"slow"}},
		"a branch begun in an item": {func(ctx context.Context) error {
			_, err := durable.Map(ctx, "m", []string{"a", "b"}, durable.MapOptions{}, func(ctx context.Context, name string) (int, error) {
				return branch(ctx, name).Wait(ctx)
			})
			return err
		}, []string{"b", "a"}},
	}
}

// What a branch or an item has registered is undone when the run fails or is
// cancelled, though the branch has come to its end in a process that is gone, or
// the run was unloaded meanwhile.
func TestWhatAFinishedBranchHasRegisteredIsUndoneByALaterProcess(t *testing.T) {
	for name := range effectsInside(&undoing{}) {
		for _, between := range []string{"nothing", "a crash", "a shutdown", "an unloading"} {
			for _, end := range []string{"fails", "is cancelled"} {
				t.Run(name+"/"+between+"/"+end, func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						u := &undoing{}
						shape := effectsInside(u)[name]
						var o []durable.DefineOption
						if between == "nothing" {
							o = append(o, durable.KeepLoaded())
						}
						wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
							if err := shape.fn(ctx); err != nil {
								return 0, fmt.Errorf("too early: %w", err)
							}
							if err := durable.Sleep(ctx, 2*time.Hour); err != nil {
								return 0, err
							}
							return 0, errors.New("out of stock")
						}, o...)
						w.boot(t, with(wf))
						start(t, w, wf, "r", 0)
						pass(10 * time.Second)
						require.Empty(t, u.compensations())
						switch between {
						case "a crash":
							w.reboot(t, with(wf))
						case "a shutdown":
							require.NoError(t, w.eng.Close())
							w.boot(t, with(wf))
						case "an unloading":
							pass(time.Hour)
						}
						want := "out of stock"
						if end == "is cancelled" {
							want = "no time"
							require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no time"))
						} else {
							pass(3 * time.Hour)
						}
						_, err := wait(t, w, wf, "r")
						require.ErrorContains(t, err, want)
						require.NotContains(t, err.Error(), "too early")
						require.Equal(t, shape.want, u.compensations(), "story:\n%s\nlog:\n%s", strings.Join(w.story("r"), "\n"), w.log)
						for _, did := range shape.want {
							n := 0
							for _, what := range u.list {
								if what == did {
									n++
								}
							}
							require.LessOrEqual(t, n, 1, "%s was done again", did)
						}
						checkVerified(t, w.data)
					})
				})
			}
		}
	}
}

// Whatever write the process dies at, and in whatever compensation: all effects are
// undone, in order, and none that was undone is undone again.
func TestASagaInBranchesKilledAtAnyWriteUndoesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(u *undoing) func(*journal) *durable.Workflow[int, string] {
			return func(*journal) *durable.Workflow[int, string] {
				return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					for _, name := range []string{"branches", "nested branches", "items of a Map", "the loser of a First, which goes on"} {
						if err := effectsInside(u)[name].fn(ctx); err != nil {
							return "", err
						}
					}
					return "", errors.New("out of stock")
				})
			}
		}
		clean := &undoing{}
		want, _, writes := lives(t, define(clean), nil)
		require.Len(t, clean.compensations(), 11)
		for at := 1; at <= writes; at++ {
			for _, deaths := range [][]death{{{at, false}}, {{at, true}}, {{at, true}, {3, false}}} {
				u := &undoing{}
				got, _, _ := lives(t, define(u), deaths)
				require.Equal(t, want, got)
				require.Equal(t, clean.compensations(), slices.Compact(u.compensations()), "killed at %v", deaths)
				require.LessOrEqual(t, len(u.compensations()), len(clean.compensations())+len(deaths))
			}
		}
	})
}

// A run that was forked, taken back or resumed knows what the branches have
// registered that it did not run.
func TestWhatAFinishedBranchHasRegisteredIsUndoneAfterAJumpAForkAndAResume(t *testing.T) {
	for name, act := range map[string]func(t *testing.T, w *world, at int64) (id string){
		"jump": func(t *testing.T, w *world, at int64) string {
			_, err := operate.On(w.eng).Jump(w.ctx(), "r", at, operate.JumpOptions{})
			require.NoError(t, err)
			return "r"
		},
		"fork": func(t *testing.T, w *world, at int64) string {
			_, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{At: at, ID: "copy"})
			require.NoError(t, err)
			return "copy"
		},
		"pause and unpause": func(t *testing.T, w *world, at int64) string {
			require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
			require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
			return "r"
		},
		"a jump into a branch": func(t *testing.T, w *world, at int64) string {
			_, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "a/a"), operate.JumpOptions{})
			require.NoError(t, err)
			return "r"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				u := &undoing{}
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := effectsInside(u)["branches"].fn(ctx); err != nil {
						return 0, err
					}
					if err := durable.Do(ctx, "between", doNothing); err != nil {
						return 0, err
					}
					if _, err := durable.Await[int](ctx, "go"); err != nil {
						return 0, err
					}
					return 0, errors.New("out of stock")
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				w.eventually("r", store.Waiting)
				id := act(t, w, seqOf(t, w, "r", "c"))
				pass(time.Second)
				require.NoError(t, durable.Signal(w.ctx(), id, "go", 1))
				w.eventually(id, store.Failed)
				require.Equal(t, []string{"c", "b", "a"}, u.compensations(), w.log)
			})
		})
	}
}

// The function of a branch that has ended is replayed for what it has registered,
// and for nothing else: what was added behind its end is not done.
func TestABranchThatHasEndedGoesNoFurther(t *testing.T) {
	define := func(u *undoing, more func(ctx context.Context) error) *durable.Workflow[int, int] {
		return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				if err := u.effect(ctx, "a"); err != nil {
					return 0, err
				}
				return 7, more(ctx)
			})
			n, err := f.Wait(ctx)
			if err != nil || n != 7 {
				return 0, fmt.Errorf("too early: %d, %w", n, err)
			}
			if err := durable.Sleep(ctx, time.Minute); err != nil {
				return 0, err
			}
			return 0, errors.New("out of stock")
		})
	}
	forever := func(call func(ctx context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			for {
				if call(ctx) == nil {
					return nil
				}
			}
		}
	}
	for name, call := range map[string]func(u *undoing) func(ctx context.Context) error{
		"a step": func(u *undoing) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				return durable.Do(ctx, "more", func(context.Context) error { u.add("more"); return nil })
			}
		},
		"a sleep": func(u *undoing) func(ctx context.Context) error {
			return func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) }
		},
		"a branch": func(u *undoing) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				_, err := durable.Go(ctx, "x", func(ctx context.Context) (int, error) { return 0, u.effect(ctx, "more") }).Wait(ctx)
				return err
			}
		},
		"a Map": func(u *undoing) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				_, err := durable.Map(ctx, "x", []string{"more"}, durable.MapOptions{}, func(ctx context.Context, name string) (int, error) { return 0, u.effect(ctx, name) })
				return err
			}
		},
		"for ever": func(u *undoing) func(ctx context.Context) error {
			return forever(func(ctx context.Context) error {
				return durable.Do(ctx, "more", func(context.Context) error { u.add("more"); return nil })
			})
		},
		"a published value": func(u *undoing) func(ctx context.Context) error {
			return func(ctx context.Context) error { return durable.Publish(ctx, "p", 1) }
		},
		"a patch": func(u *undoing) func(ctx context.Context) error {
			return func(ctx context.Context) error { durable.Patched(ctx, "change"); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				u := &undoing{}
				w.boot(t, with(define(u, func(context.Context) error { return nil })))
				wf := define(u, call(u))
				start(t, w, wf, "r", 0)
				pass(time.Second)
				n := len(w.events("r"))
				w.reboot(t, with(wf))
				_, err := wait(t, w, wf, "r")
				require.ErrorContains(t, err, "out of stock")
				require.NotContains(t, err.Error(), "too early")
				require.Equal(t, []string{"a", "undo a"}, u.list)
				for _, ev := range w.events("r")[n:] {
					require.False(t, strings.HasPrefix(ev.Key, "b"), "%s %s", ev.Type, ev.Key)
				}
				checkVerified(t, w.data)
			})
		})
	}
	t.Run("a call in its middle", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			u := &undoing{}
			w.boot(t, with(define(u, func(ctx context.Context) error { return u.effect(ctx, "b") })))
			wf := define(u, func(ctx context.Context) error { return u.effect(ctx, "other") })
			start(t, w, wf, "r", 0)
			pass(time.Second)
			w.reboot(t, with(wf))
			require.Equal(t, durable.CodeDefinitionChanged, w.eventually("r", store.Interrupted).Code)
			require.Empty(t, u.compensations())
		})
	})
}
