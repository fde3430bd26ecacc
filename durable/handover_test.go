package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A hoarder takes signals, each with a step behind it, until one says that there are no
// more.
func hoarder() *durable.Workflow[int, []string] {
	return durable.Define("hoarder", func(ctx context.Context, _ int) ([]string, error) {
		var got []string
		for {
			s, err := durable.Await[string](ctx, "x")
			if err != nil || s == "end" {
				return got, err
			}
			got = append(got, s)
			if err := durable.Do(ctx, "took", func(context.Context) error { return nil }); err != nil {
				return got, err
			}
		}
	})
}

// A stranger is another process that sends signals and executes nothing.
func (w *world) stranger(t *testing.T) (send func(id, name, value string)) {
	eng, err := durable.Open(context.Background(), w.data.Handle(), durable.Options{Logger: slog.New(w.log), Grace: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return func(id, name, value string) {
		t.Helper()
		require.NoError(t, eng.Signal(context.Background(), id, name, value))
	}
}

// calls counts what the process opened last asks of its store.
func (w *world) calls() (count func() map[string]int) {
	var mu sync.Mutex
	n := map[string]int{}
	add := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		n[what]++
	}
	w.disk.tamper(func(_ []store.Change, forward func() []error) []error { add("commit"); return forward() })
	w.disk.tamperCalls(func(call string, forward func() error) error { add(call); return forward() })
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		was := n
		n = map[string]int{}
		return was
	}
}

// The message and its receipt are one change.
func TestASignalInOneProcessCostsOneCallOfTheStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var before map[string]int
		var count func() map[string]int
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			for range n {
				if _, err := durable.Await[int](ctx, "x"); err != nil {
					return 0, err
				}
				if err := durable.Do(ctx, "woken", func(context.Context) error { before = count(); return nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		w.boot(t, with(wf))
		const signals = 100
		run := start(t, w, wf, "r", signals)
		pass(time.Second)
		count = w.calls()
		for i := range signals {
			require.NoError(t, durable.Signal(w.ctx(), "r", "x", i))
			synctest.Wait()
			require.LessOrEqual(t, before["commit"], 1, "the send, with what was received")
			delete(before, "commit")
			require.Empty(t, before, "until the step begins")
			after := count()
			require.LessOrEqual(t, after["commit"], 2, "the step, and the next wait or the end")
			delete(after, "commit")
			if i == signals-1 {
				delete(after, "claim") // the place of a run that has ended is free
			}
			require.Empty(t, after, "nothing is read back")
		}
		_, err := run.Wait(w.ctx())
		require.NoError(t, err)
	})
}

func TestTheEndOfAChildInOneProcessIsNotReadBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "x") })
		parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
			h, err := child.Start(ctx, "c", 0)
			if err != nil {
				return 0, err
			}
			return h.Wait(ctx)
		})
		w.boot(t, with(parent, child))
		run := start(t, w, parent, "p", 0)
		pass(time.Second)
		count := w.calls()
		require.NoError(t, durable.Signal(w.ctx(), "c", "x", 7))
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 7, out)
		n := count()
		require.LessOrEqual(t, n["commit"], 5, "the send, what was received, the end of the child, what the parent heard, its end")
		require.Zero(t, n["load"])
	})
}

func TestAMessageOfAnotherProcessBetweenTwoOfOursIsTakenInItsPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := hoarder()
		w.boot(t, with(wf))
		stranger := w.stranger(t)
		run := start(t, w, wf, "r", 0)
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "1 ours"))
		synctest.Wait()
		// Until the store can be read again, this process does not know of the foreign one.
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" || call == "list" || call == "beat" {
				return errors.New("not now")
			}
			return forward()
		})
		stranger("r", "x", "2 foreign")
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "3 ours"))
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "4 ours"))
		pass(time.Second)
		require.Equal(t, 1, len(w.takenBy("r")), "none of ours before the one that came first")
		w.disk.tamperCalls(nil)
		pass(time.Minute)
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "end"))
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, []string{"1 ours", "2 foreign", "3 ours", "4 ours"}, out)
	})
}

// takenBy returns the numbers of the events of a run that have taken a message.
func (w *world) takenBy(id string) (taken []int64) {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{})
	require.NoError(w.t, err)
	for e, err := range h.Events {
		require.NoError(w.t, err)
		if e.Type == store.SignalReceived {
			taken = append(taken, e.Seq)
		}
	}
	return taken
}

func TestASignalThatIsSentAgainIsHandedOverOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := hoarder()
		w.boot(t, with(wf))
		run := start(t, w, wf, "r", 0)
		for range 3 {
			require.NoError(t, durable.Signal(w.ctx(), "r", "x", "same", durable.SignalID("same")))
			synctest.Wait()
		}
		// The reply is lost; the engine sends it again, and the store drops that one.
		lost := true
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			errs := forward()
			if lost && len(batch[0].Send) > 0 {
				lost = false
				return all(batch, store.ErrUnknown)
			}
			return errs
		})
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "reply lost"))
		require.False(t, lost)
		synctest.Wait()
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "end"))
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, []string{"same", "reply lost"}, out)
	})
}

func TestAMessageHandedOverInMemoryOutlivesTheProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := hoarder()
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "1"))
		synctest.Wait()
		w.disk.cutBefore(store.SignalReceived)
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "2", durable.SignalID("2")), "it is acknowledged")
		synctest.Wait()
		require.Len(t, w.takenBy("r"), 1, "and the process is gone before that is recorded")

		w.reboot(t, with(wf))
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "end"))
		run, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2"}, out)
	})
}

// Without an id of the caller's, a signal that cannot be recorded with its receipt is not recorded.
func TestASignalThatTheProcessDoesNotOutliveIsNotAcknowledged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := hoarder()
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "1"))
		synctest.Wait()
		w.disk.cutBefore(store.SignalReceived)
		require.Error(t, durable.Signal(w.ctx(), "r", "x", "2"))
		w.reboot(t, with(wf))
		require.EqualValues(t, 1, w.row("r").Inbox)

		disk := w.disk
		disk.tamper(func(batch []store.Change, forward func() []error) []error {
			forward()
			disk.cut()
			return all(batch, store.ErrClosed)
		})
		require.Error(t, durable.Signal(w.ctx(), "r", "x", "3"), "the answer does not come")
		w.reboot(t, with(wf))
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "end"))
		run, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, []string{"1", "3"}, out)
	})
}

// A store that refuses one change takes the next: what could not be recorded with its receipt is
// recorded alone, and the run goes on.
func TestASignalIsRecordedAloneIfItsReceiptIsRefusedBesideIt(t *testing.T) {
	for name, why := range map[string]error{"refused": store.ErrFenced, "not carried out": errors.New("not now"), "too large": store.ErrTooLarge} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := hoarder()
				w.boot(t, with(wf))
				run := start(t, w, wf, "r", 0)
				synctest.Wait()
				refused := 0
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					if batch[0].Expect.Inbox != nil && len(batch[0].Send) > 0 {
						refused++
						return all(batch, why)
					}
					return forward()
				})
				require.NoError(t, durable.Signal(w.ctx(), "r", "x", "1"))
				pass(time.Minute)
				require.Equal(t, 1, refused)
				require.Equal(t, store.Waiting, w.row("r").Status)
				w.disk.tamper(nil)
				require.NoError(t, durable.Signal(w.ctx(), "r", "x", "end"))
				out, err := run.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, []string{"1"}, out)
			})
		})
	}
}

func TestTheEndOfAChildHandedOverInMemoryOutlivesTheProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		child := durable.Define("child", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "s", func(context.Context) (int, error) { bodies++; return n + 1, nil })
		})
		parent := durable.Define("parent", func(ctx context.Context, n int) (int, error) { return child.Run(ctx, "c", n) })
		w.boot(t, with(parent, child))
		w.disk.cutBefore(store.ChildFinished)
		start(t, w, parent, "p", 1)
		synctest.Wait()
		require.Equal(t, store.Completed, w.row("c").Status)
		require.NotEqual(t, store.Completed, w.row("p").Status)
		w.reboot(t, with(parent, child))
		require.Equal(t, store.Completed, w.eventually("p", store.Completed).Status)
		require.Equal(t, 1, bodies)
	})
}

// An engine that slept past its lease still executes the run, as far as it knows.
func TestAFencedEngineDoesNothingWithAMessageThatItHandsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var bodies atomic.Int32
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "first", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			s, err := durable.Await[string](ctx, "x")
			if err != nil {
				return "", err
			}
			return s, durable.Do(ctx, "after", func(context.Context) error { bodies.Add(1); return nil })
		})
		o := with(wf)
		o.UnloadAfter = -1
		w.boot(t, o)
		stale, staleDisk := w.ctx(), w.disk
		start(t, w, wf, "r", 0)
		synctest.Wait()
		// It hears nothing of the store, and can write all the same.
		staleDisk.tamperCalls(func(string, func() error) error { return errors.New("not now") })
		w.expire()
		w.boot(t, with(wf))
		_, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "first"), operate.JumpOptions{})
		require.NoError(t, err)
		pass(time.Minute)
		require.Equal(t, w.eng.ID(), w.row("r").Owner, "another engine has the run")

		require.NoError(t, durable.Signal(stale, "r", "x", "hello"))
		pass(time.Minute)
		run, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "hello", out)
		require.EqualValues(t, 1, bodies.Load(), "one of the two acts")
		require.Len(t, w.takenBy("r"), 1)
	})
}

// Whatever comes between messages of ours, the run gets what its inbox has, in that order,
// each once.
func TestSignalsAreTakenInTheOrderOfTheInboxWhateverComesBetween(t *testing.T) {
	acts := []string{"ours", "ours", "ours", "foreign", "again", "reply lost", "burst", "deaf", "unload", "crash", "other name", "cut before"}
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(acts), 1, 16).Draw(rt, "acts")
		named := rapid.SliceOfN(rapid.Bool(), len(list), len(list)).Draw(rt, "named")
		pauses := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second}), len(list), len(list)).Draw(rt, "pauses")
		inWorld(t, func(t *testing.T, w *world) {
			wf := hoarder()
			o := with(wf)
			o.UnloadAfter = 10 * time.Second
			w.boot(t, o)
			stranger := w.stranger(t)
			start(t, w, wf, "r", 0)
			n := 0
			next := func() string { n++; return fmt.Sprint(n) }
			byName, dies := true, false
			signal := func(name, v string) {
				var o []durable.SignalOption
				if byName {
					o = append(o, durable.SignalID(name+v))
				}
				if err := durable.Signal(w.ctx(), "r", name, v, o...); err != nil && !dies {
					t.Error(err)
				}
			}
			for i, act := range list {
				byName, dies = named[i], act == "cut before" && !named[i]
				switch act {
				case "ours":
					signal("x", next())
				case "foreign":
					stranger("r", "x", next())
				case "again":
					if n > 0 {
						signal("x", fmt.Sprint(n)) // if it was foreign, its id is another one
					}
				case "reply lost":
					var lost atomic.Bool
					w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
						errs := forward()
						if len(batch[0].Send) > 0 && !lost.Swap(true) {
							return all(batch, store.ErrUnknown)
						}
						return errs
					})
					signal("x", next())
					w.disk.tamper(nil)
				case "burst":
					var all sync.WaitGroup
					for range 3 {
						v := next()
						all.Go(func() { signal("x", v) })
					}
					all.Wait()
				case "deaf": // notices and reads come late
					w.disk.tamperCalls(func(call string, forward func() error) error {
						if call == "load" || call == "list" {
							time.Sleep(3 * time.Second)
						}
						return forward()
					})
					stranger("r", "x", next())
					signal("x", next())
					w.disk.tamperCalls(nil)
				case "unload":
					pass(time.Minute)
				case "crash":
					w.reboot(t, o)
				case "cut before":
					synctest.Wait()
					w.disk.cutBefore(store.SignalReceived)
					signal("x", next())
					synctest.Wait()
					w.reboot(t, o)
				case "other name":
					signal("y", next())
				}
				if d := pauses[i]; d > 0 {
					pass(d)
				}
			}
			pass(time.Minute)
			dies = false
			signal("x", "end")
			run, err := wf.Handle(w.ctx(), "r")
			require.NoError(t, err)
			out, err := run.Wait(w.ctx())
			require.NoError(t, err)
			h, err := w.data.Load(context.Background(), "r", store.Cursor{})
			require.NoError(t, err)
			var want []string
			for i := range h.Inbox {
				if m := &h.Inbox[i]; m.Name == "x" {
					_, text, _ := bytes.Cut(m.Payload, []byte("\n"))
					var v string
					require.NoError(t, json.Unmarshal(text, &v))
					want = append(want, v)
				}
			}
			require.Equal(t, want, append(out, "end"), "acts: %v", list)
		})
	})
}
