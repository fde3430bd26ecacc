package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// changingKeys are keys that can be rotated, lost and broken while they are used.
type changingKeys struct {
	mu      sync.Mutex
	current string
	lost    map[string]error
	asked   map[string]int
	panics  bool
}

func (k *changingKeys) Current() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.panics {
		panic("the key store is on fire")
	}
	return k.current
}

func (k *changingKeys) Key(id string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked == nil {
		k.asked = map[string]int{}
	}
	k.asked[id]++
	if err := k.lost[id]; err != nil {
		return nil, err
	}
	return key(id), nil
}

func (k *changingKeys) set(f func(*changingKeys)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

func TestOldKeysStayReadableAndAMissingOneParksTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := threeSteps(&h)
		w.boot(t, encrypted(keysOf("k1"), wf))
		start(t, w, wf, "r", "in")
		synctest.Wait()

		// Without the key, and without any.
		for _, keys := range []durable.Keys{keysOf("k2"), nil} {
			w.reboot(t, encrypted(keys, wf))
			if w.row("r").Status == store.Interrupted {
				require.ErrorIs(t, resume(w.eng, w.ctx(), "r"), durable.ErrNoKey)
			}
			row := w.eventually("r", store.Interrupted)
			require.Equal(t, durable.CodeUndecodable, row.Code)
			require.Contains(t, row.Reason, `encrypted with key "k1"`)
			require.Contains(t, row.Reason, "Options.Encrypt")
			_, err := wait(t, w, wf, "r")
			require.ErrorIs(t, err, durable.ErrNoKey)
			requireNoKey(t, "k2", err.Error())
		}

		// With another key of that id.
		w.reboot(t, encrypted(durable.StaticKeys("k1", map[string][]byte{"k1": key("zz")}), wf))
		require.ErrorIs(t, resume(w.eng, w.ctx(), "r"), durable.ErrWrongKey)

		// Rotated, and then turned off: everything reads on.
		w.reboot(t, encrypted(keysOf("k2", "k1"), wf))
		goesOn(t, w, "r")
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, threeDone, out)
		require.Equal(t, map[string]string{
			"workflow_created": "k1", "step_completed value": "k1", "step_completed value#2": "k1", "step_completed value#3": "k1", "workflow_completed": "k2",
		}, keptWith(t, w, "r"))
		w.open(t, encrypted(keysOf("", "k1", "k2")))
		out, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, threeDone, out)
	})
}

func TestKeysRotateWhileTheEngineRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		keys := &changingKeys{current: "k1", lost: map[string]error{"k2": errors.New("vault: timeout")}}
		next := make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
			for range in {
				if err := durable.Do(ctx, "go", func(context.Context) error { <-next; return nil }); err != nil {
					return 0, err
				}
				if _, err := durable.Step(ctx, "value", func(context.Context) (string, error) { return "v", nil }); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		w.boot(t, encrypted(keys, wf))
		h := start(t, w, wf, "r", 6)
		go1 := func() { next <- struct{}{}; synctest.Wait() }
		go1()
		keys.set(func(k *changingKeys) { k.current = "k2" })
		go1() // its key cannot be had: the one before stays
		go1()
		require.Equal(t, 1, keys.asked["k2"], "it is not asked for at every payload")
		require.Len(t, w.log.find("the current encryption key cannot be had"), 1)
		require.Contains(t, w.log.String(), "vault: timeout")
		keys.set(func(k *changingKeys) { delete(k.lost, "k2") })
		pass(2 * time.Minute)
		go1()
		keys.set(func(k *changingKeys) { k.panics = true })
		go1()
		keys.set(func(k *changingKeys) { k.panics, k.current = false, "" })
		go1()
		_, err := h.Wait(w.ctx())
		require.NoError(t, err)
		kept := keptWith(t, w, "r")
		require.Equal(t, map[string]string{
			"workflow_created": "k1", "step_completed value": "k1", "step_completed value#2": "k1", "step_completed value#3": "k1",
			"step_completed value#4": "k2", "step_completed value#5": "k2", "step_completed value#6": "", "workflow_completed": "",
		}, kept)
		require.Equal(t, 1, keys.asked["k1"], "a key that is known is not asked for again")
	})
}

func TestKeysThatCannotBeUsedAreRefusedByOpen(t *testing.T) {
	for says, keys := range map[string]durable.Keys{
		"has 16 bytes and needs 32":      durable.StaticKeys("k", map[string][]byte{"k": make([]byte, 16)}),
		"it is not among the keys [a b]": durable.StaticKeys("k", map[string][]byte{"a": key("a"), "b": key("b")}),
		"printable ASCII":                keysOf("a key"),
		"1 to 64":                        keysOf(strings.Repeat("k", 65)),
		"on fire":                        &changingKeys{panics: true},
		"vault: sealed":                  &changingKeys{current: "k", lost: map[string]error{"k": errors.New("vault: sealed")}},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			_, err := durable.Open(context.Background(), w.data, durable.Options{Encrypt: keys})
			require.ErrorIs(t, err, durable.ErrInvalid)
			require.ErrorContains(t, err, says)
			requireNoKey(t, "a", err.Error())
		})
	}
}

// An engine that was opened without a current key, and whose first one cannot be
// had, records nothing in clear: what was to be recorded is refused, and goes on
// once the key is there.
func TestWhileTheFirstKeyCannotBeHadNothingIsRecordedInClear(t *testing.T) {
	for _, how := range []string{"a step", "a step that has begun", "a map", "a branch", "a child", "a published value", "progress", "a new generation", "the output"} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				keys := &changingKeys{lost: map[string]error{"k1": errors.New("vault: sealed")}}
				bodies, rotated := 0, false
				rotate := func() {
					if !rotated {
						rotated = true
						keys.set(func(k *changingKeys) { k.current = "k1" })
					}
				}
				body := func(context.Context) (string, error) { bodies++; return canary, nil }
				child := durable.Define("child", func(ctx context.Context, in string) (string, error) { return in, nil })
				wf := durable.Define("w", func(ctx context.Context, in string) (string, error) {
					if in == canary {
						return in, nil
					}
					if _, err := durable.Await[int](ctx, "go"); err != nil {
						return "", err
					}
					if how != "a step that has begun" && how != "progress" {
						rotate()
					}
					switch how {
					case "a step":
						return durable.Step(ctx, "s", body)
					case "a step that has begun":
						return durable.Step(ctx, "s", func(ctx context.Context) (string, error) { rotate(); return body(ctx) })
					case "a map":
						out, err := durable.Map(ctx, "m", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (string, error) { return body(ctx) })
						if err != nil {
							return "", err
						}
						return out[0], nil
					case "a branch":
						return durable.Go(ctx, "b", body).Wait(ctx)
					case "a child":
						return child.Run(ctx, "kid", canary)
					case "a published value":
						return "", durable.Publish(ctx, "p", canary)
					case "progress":
						return canary, durable.Do(ctx, "s", func(ctx context.Context) error {
							rotate()
							return durable.SaveProgress(ctx, canary)
						})
					case "a new generation":
						return "", durable.Continue(ctx, canary)
					}
					return canary, nil
				})
				w.boot(t, encrypted(keys, wf, child))
				h := start(t, w, wf, "r", "in")
				require.NoError(t, durable.Signal(w.ctx(), "r", "go", 1))
				row := w.eventually("r", store.Interrupted)
				require.Contains(t, row.Reason, "vault: sealed")
				_, err := h.Wait(w.ctx())
				require.ErrorIs(t, err, durable.ErrNoKey)
				_, err = wf.Start(w.ctx(), "another", "in")
				require.ErrorIs(t, err, durable.ErrNoKey)
				require.ErrorIs(t, durable.Signal(w.ctx(), "r", "go", 1), durable.ErrNoKey)
				if how == "a step" {
					require.Zero(t, bodies, "it would run in vain")
				}
				inClear := func() {
					t.Helper()
					h, err := w.data.Load(w.ctx(), "r", store.Cursor{All: true})
					require.NoError(t, err)
					for ev, err := range h.Events {
						require.NoError(t, err)
						require.NotContains(t, string(ev.Payload)+string(ev.Data), canary)
					}
				}
				inClear()

				keys.set(func(k *changingKeys) { delete(k.lost, "k1") })
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
				_, err = wait(t, w, wf, "r")
				require.NoError(t, err)
				inClear()
			})
		})
	}
}
