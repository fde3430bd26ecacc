package outline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// world is data that survives, and processes that come and go on it, in virtual
// time.
type world struct {
	t    *testing.T
	data *memory.Store
	disk crashstore.Notifier
	eng  *durable.Engine
	left sync.WaitGroup
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, data: memory.Open()}
		t.Cleanup(w.left.Wait)
		test(t, w)
	})
}

func (w *world) boot(name string, defs ...durable.Definition) context.Context {
	w.t.Helper()
	w.disk = crashstore.Notifier{Store: crashstore.New(w.data.Handle())}
	eng, err := durable.Open(context.Background(), w.disk, durable.Options{Name: name, Workflows: defs, Grace: -1})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, eng.Close()) })
	w.eng = eng
	_, err = eng.Recover(context.Background())
	require.NoError(w.t, err)
	return durable.NewContext(context.Background(), eng)
}

func (w *world) crash() {
	w.disk.Die()
	eng := w.eng
	w.left.Go(func() { _ = eng.Close() })
	synctest.Wait()
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// tell reads a run past every engine, as a page does.
func (w *world) tell(id string) *outline.Outline {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(w.t, err)
	xs, err := w.data.Executors(context.Background())
	require.NoError(w.t, err)
	o, err := outline.Of(outline.Input{Run: h.Run, Branches: h.Branches, Executors: xs, Now: store.Time(time.Now().UnixMicro())}, h.Events)
	require.NoError(w.t, err)
	return o
}

// lines draws an outline as text: a line per life, lane and row.
func lines(o *outline.Outline) []string {
	var out []string
	for _, l := range o.Lives {
		out = append(out, fmt.Sprintf("life %s %s +%d", l.Name, l.How, l.Replayed))
	}
	row := func(mark string) func(r *outline.Row) bool {
		return func(r *outline.Row) bool {
			s := mark + strings.Repeat("  ", r.Depth) + r.Key + " " + string(r.State)
			if label := r.Label(); label != "" {
				s += " (" + label + ")"
			}
			for _, a := range r.Attempts {
				s += fmt.Sprintf(" [%d %s]", a.N, a.State)
			}
			out = append(out, s)
			return true
		}
	}
	for _, l := range o.Lanes {
		if len(o.Lanes) > 1 {
			out = append(out, fmt.Sprintf("lane %d %s by %q because %q, cut after %d", l.Branch, l.Act, l.By, l.Reason, l.Cutoff))
		}
		outline.Each(l.Rows, row(""))
		outline.Each(l.Left, row("left "))
	}
	return out
}

func TestAKilledProcessIsToldWithTheAttemptThatMayHaveRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		slow := true
		checkout := durable.Define("checkout", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "reserve", func(context.Context) error { time.Sleep(40 * time.Millisecond); return nil }); err != nil {
				return "", err
			}
			_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Second, Multiplier: 2, Jitter: -1}, func(ctx context.Context) (int, error) {
				switch n := durable.Attempt(ctx).Number; {
				case n < 3:
					time.Sleep(500 * time.Millisecond)
					durable.Note(ctx, "bank.request_id", fmt.Sprintf("rq_%d", n))
					return 0, fmt.Errorf("bank: 503, try %d", n)
				case slow:
					slow = false
					<-ctx.Done()
					return 0, ctx.Err()
				}
				time.Sleep(700 * time.Millisecond)
				return 1, nil
			})
			if err != nil {
				return "", err
			}
			ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship order-42?"), durable.Timeout(24*time.Hour))
			return fmt.Sprint(ok), err
		}, durable.Steps("reserve", "charge", "approve", "ship"))
		ctx := w.boot("web-1", checkout)
		_, err := checkout.Start(ctx, "order-42", 1)
		require.NoError(t, err)
		pass(2500 * time.Millisecond) // between attempts 2 and 3
		o := w.tell("order-42")
		require.Equal(t, []string{
			"life web-1 alive +0",
			"reserve done [1 done]",
			"charge backoff (attempt 3 of 5) [1 failed] [2 failed]",
			"approve expected", "ship expected",
		}, lines(o))
		require.Equal(t, "charge failed twice; attempt 3 of 5 begins in 2 s", o.Verdict.Head.String())
		require.Equal(t, "bank: 503, try 2", o.Verdict.Error)
		require.Equal(t, []outline.Note{{Key: "bank.request_id", Value: `"rq_1"`}}, o.Row("charge").Attempts[0].Notes)

		pass(10 * time.Second) // attempt 3 is under way
		require.Equal(t, "Running charge, attempt 3 of 5, due since 00:00:04", w.tell("order-42").Verdict.Head.String())
		w.crash()
		pass(durable.DefaultLease + time.Second)
		o = w.tell("order-42")
		require.Equal(t, outline.Lost, o.Lives[0].How)
		require.Equal(t, outline.ToneStuck, o.Verdict.Tone)
		require.Contains(t, o.Verdict.Text(), "Nobody executes this run: web-1 was lost")
		require.Contains(t, o.Verdict.Text(), "before attempt 3 of 5 of charge")
		require.Contains(t, o.Verdict.Text(), "No live process serves checkout")

		w.boot("web-2", checkout)
		pass(2 * time.Second)
		o = w.tell("order-42")
		require.Equal(t, []string{
			"life web-1 lost +0", "life web-2 alive +1",
			"reserve done [1 done]",
			"charge done (3 of 5 attempts) [1 failed] [2 failed] [3 cut off] [3 done]",
			"approve waiting (approval)", "ship expected",
		}, lines(o))
		require.Equal(t, outline.ToneWait, o.Verdict.Tone)
		require.Equal(t, "Waiting for a person: “Ship order-42?”", o.Verdict.Head.String())
		require.Regexp(t, `Asked .* ago in approve; without an answer it times out tomorrow .*web-1 was lost about attempt 3 of 5 of charge; web-2 went on .* later`, o.Verdict.Text())
		require.Contains(t, o.Sentence(o.Row("charge")), "Attempts 1 and 2 failed.")
		require.Contains(t, o.Sentence(o.Row("charge")), "Attempt 3 may have been cut off when web-1 was lost.")
		require.Equal(t, 1, len(o.Waits))
		require.Equal(t, 3, o.Attempts-1, "of charge; one of reserve")
	})
}

func TestWhatWasCutOffIsKnownAlsoAfterAPersonLetTheRunGoOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		charge := func(ctx context.Context) error {
			return durable.RetryDo(ctx, "charge", durable.Policy{Initial: time.Millisecond}, func(ctx context.Context) error {
				if durable.Attempt(ctx).Number == 1 {
					return errors.New("503")
				}
				time.Sleep(time.Minute)
				return nil
			})
		}
		w.begun(charge)
		w.crash()
		pass(durable.DefaultLease + time.Second)
		ctx := w.boot("terminal")
		_, err := operate.On(w.eng).Resume(ctx, "r", operate.ResumeOptions{})
		require.NoError(t, err, "a program without the code hands it over")
		require.Contains(t, w.tell("r").Verdict.Text(), "Asked to go on")
		w.boot("web-2", durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, charge(ctx) }))
		pass(2 * time.Minute)
		o := w.tell("r")
		require.Equal(t, []string{"life web-1 lost +0", "life web-2 clean +0", "charge done (2 of 5 attempts) [1 failed] [2 cut off] [2 done]"}, lines(o))
		require.Contains(t, o.Verdict.Text(), "web-1 was lost about attempt 2 of 5 of charge")
	})
}

func TestAProcessThatDiedBeforeTheAttemptWasDueCutNothingOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "a", durable.Policy{Initial: time.Hour, Jitter: -1}, func(ctx context.Context) (int, error) {
				if durable.Attempt(ctx).Number == 1 {
					return 0, errors.New("no")
				}
				return 1, nil
			})
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Second)
		w.crash()
		pass(durable.DefaultLease + time.Second)
		w.boot("web-2", wf)
		pass(2 * time.Hour)
		o := w.tell("r")
		require.Equal(t, []string{"life web-1 lost +0", "life web-2 clean +0", "a done (2 of 5 attempts) [1 failed] [2 done]"}, lines(o))
		require.Contains(t, o.Verdict.Head.String(), "Completed in")
	})
}

func TestAFailureIsToldWithItsErrorAndWhetherItCanBeResumed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bank := errors.New("bank: POST /v2/charges: 503 Service Unavailable")
		wf := durable.Define("w", func(ctx context.Context, final bool) (int, error) {
			return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Second}, func(ctx context.Context) (int, error) {
				if final {
					return 0, durable.Permanent(errors.New("card country is not allowed"))
				}
				return 0, bank
			})
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "a", false)
		require.NoError(t, err)
		_, err = wf.Start(ctx, "b", true)
		require.NoError(t, err)
		pass(time.Hour)
		v := w.tell("a").Verdict
		require.Equal(t, outline.ToneFail, v.Tone)
		require.Equal(t, "charge failed 5 times; the last error was “bank: POST /v2/charges: 503 Service Unavailable”", v.Head.String())
		require.Equal(t, bank.Error(), v.Error)
		require.Contains(t, v.Text(), "All 5 attempts ended alike.")
		require.NotContains(t, v.Text(), "final")
		v = w.tell("b").Verdict
		require.Equal(t, "charge failed: “card country is not allowed”", v.Head.String())
		require.Contains(t, v.Text(), "It is final")
	})
}

func TestAnEditedResultBeginsALaneAndLeavesTheRestBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			a, err := durable.Step(ctx, "address", func(context.Context) (string, error) { time.Sleep(180 * time.Millisecond); return "wrong", nil })
			if err != nil {
				return "", err
			}
			if err := durable.Do(ctx, "packing-slip", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			_, err = durable.Await[bool](ctx, "approve", durable.Prompt("Ship to "+a+"?"))
			return a, err
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Minute)
		require.NoError(t, w.eng.Pause(ctx, "r", "wrong address"))
		pass(time.Second)
		require.Contains(t, w.tell("r").Verdict.Text(), "Paused: “wrong address”")
		_, err = operate.On(w.eng).Edit(ctx, "r", "address", "right", operate.EditOptions{Reason: "Wrong street number", By: "mara@shop"})
		require.NoError(t, err)
		require.NoError(t, w.eng.Unpause(ctx, "r"))
		pass(time.Minute)
		o := w.tell("r")
		require.Equal(t, []string{
			"life web-1 clean +0", "life web-1 alive +1",
			`lane 0  by "" because "", cut after 0`,
			"address done (result edited) [1 done]",
			"left packing-slip done [1 done]",
			"left approve waiting (approval)",
			`lane 1 edited by "mara@shop" because "Wrong street number", cut after 2`,
			"packing-slip done [1 done]",
			"approve waiting (approval)",
		}, lines(o))
		require.Equal(t, 180*time.Millisecond, o.Row("address").Attempts[0].Took)
		require.Equal(t, "Waiting for a person: “Ship to right?”", o.Verdict.Head.String())
		require.Contains(t, o.Verdict.Text(), "The result of address was edited by mara@shop (“Wrong street number”)")
	})
}

func TestAMapOfAThousandItemsIsOneRowWithItsItemsInIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		in := make([]int, 1000)
		for i := range in {
			in[i] = i
		}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			out, err := durable.Map(ctx, "rows", in, durable.MapOptions{Concurrency: 8, KeepGoing: true}, func(ctx context.Context, i int) (int, error) {
				return durable.Step(ctx, "upsert", func(context.Context) (int, error) {
					if i == 7 {
						return 0, durable.Permanent(errors.New("no such row"))
					}
					return i, nil
				})
			})
			return len(out), err
		})
		ctx := w.boot("batch-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Minute)
		o := w.tell("r")
		require.Len(t, o.Lanes[0].Rows, 1)
		m := o.Lanes[0].Rows[0]
		require.Equal(t, "map, 999 of 1,000, 1 failed", m.Label())
		require.Len(t, m.Rows, 1000)
		for i, item := range m.Rows {
			require.Equal(t, fmt.Sprintf("rows[%d]", i), item.Key, "items stand in their order")
			require.Len(t, item.Rows, 1)
			require.Equal(t, item.Key+"/upsert", item.Rows[0].Key)
			require.Equal(t, 2, item.Rows[0].Depth)
		}
		require.Equal(t, outline.Failed, m.Rows[7].State)
	})
}

func TestAForkIsToldToBeOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return durable.Await[int](ctx, "go")
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Minute)
		_, err = operate.On(w.eng).Fork(ctx, "r", operate.ForkOptions{ID: "s"})
		require.NoError(t, err)
		pass(time.Minute)
		o := w.tell("s")
		require.Equal(t, []string{"life web-1 alive +1", "a done [1 done]", "go waiting (signal)"}, lines(o))
		require.True(t, o.Row("a").Copied)
		require.Contains(t, o.Verdict.Text(), "Forked from r.")
		require.Contains(t, o.Verdict.Head.String(), "Waiting for the signal go")
	})
}

func TestAForkWithEditsTellsWhatIsAnotherResultThanTheSourceHas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for _, name := range []string{"a", "b"} {
				if _, err := durable.Step(ctx, name, func(context.Context) (int, error) { return 1, nil }); err != nil {
					return 0, err
				}
			}
			return durable.Await[int](ctx, "go")
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Minute)
		_, err = operate.On(w.eng).Fork(ctx, "r", operate.ForkOptions{ID: "s", Edits: map[string]any{"a": 2, "b": 3}, By: "ann", Reason: "by hand"})
		require.NoError(t, err)
		pass(time.Minute)
		o := w.tell("s")
		require.Equal(t, []string{"life web-1 alive +2", "a done (result edited)", "b done (result edited)", "go waiting (signal)"}, lines(o))
		require.Equal(t, "ann", o.Row("a").Edited.By)
		require.Contains(t, o.Verdict.Text(), "It has another result than its source of a, b, by ann (“by hand”).")
		require.Contains(t, o.Sentence(o.Row("a")), "Its result was edited by ann.")
		require.Nil(t, w.tell("r").Row("a").Edited)
	})
}

func TestAnUnloadedRunIsHeldAndAGracefulStopLosesNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			return 1, durable.Do(ctx, "a", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(20 * time.Minute)
		o := w.tell("r")
		require.Regexp(t, "Sleeping in sleep until .*", o.Verdict.Head.String())
		require.True(t, o.Attended)
		require.NoError(t, w.eng.Close())
		o = w.tell("r")
		require.Equal(t, outline.Gone, o.Lives[0].How, "it waited: nothing was lost with its process")
		w.boot("web-2", wf)
		pass(time.Hour)
		require.NoError(t, w.eng.Close())
		o = w.tell("r")
		require.Equal(t, []string{"life web-1 gone +0", "life web-2 clean +0", "sleep done (timer)"}, lines(o))
		require.NotZero(t, o.Lives[0].PID, "the history knows who it was, after both have left")
		require.Equal(t, outline.ToneStuck, o.Verdict.Tone)
		require.Contains(t, o.Verdict.Text(), "Stopped in good order")
		require.NotContains(t, o.Verdict.Text(), "was lost")
	})
}

func TestAJumpBackIsALane(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for _, name := range []string{"a", "b", "c"} {
				if err := durable.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			return durable.Await[int](ctx, "go")
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Minute)
		at, err := operate.On(w.eng).CheckpointOf(ctx, "r", "a")
		require.NoError(t, err)
		_, err = operate.On(w.eng).Jump(ctx, "r", at, operate.JumpOptions{Reason: "b was wrong", By: "jo"})
		require.NoError(t, err)
		pass(time.Minute)
		o := w.tell("r")
		require.Equal(t, []string{
			`lane 0  by "" because "", cut after 0`,
			"a done [1 done]",
			"left b done [1 done]", "left c done [1 done]", "left go waiting (signal)",
			`lane 1 jump_activated by "jo" because "b was wrong", cut after 3`,
			"b done [1 done]", "c done [1 done]", "go waiting (signal)",
		}, lines(o)[len(o.Lives):])
		require.Contains(t, o.Verdict.Text(), "It was taken back by jo (“b was wrong”)")
	})
}

// Telling costs time in proportion to the events, and a story that goes on is
// told again from the same Builder.
func TestTheStoryGoesOn(t *testing.T) {
	run := store.Run{ID: "r", Workflow: "w", Status: store.Running, Owner: "ex-1"}
	b := outline.New(outline.Input{Run: run, Now: 1 << 50})
	b.Add(&store.Event{Seq: 1, Type: store.WorkflowCreated, At: 1})
	b.Add(&store.Event{Seq: 2, Type: store.WorkflowStarted, At: 2, Data: []byte(`{"executor":"ex-1"}`)})
	for i := int64(3); i < 10_003; i++ {
		b.Add(&store.Event{Seq: i, Type: store.StepCompleted, Key: fmt.Sprintf("s%d", i), Ordinal: int32(i - 2), Attempt: 1, Steps: int32(i - 2), At: store.Time(i)})
	}
	begin := time.Now()
	require.Len(t, b.Outline().Lanes[0].Rows, 10_000)
	require.Less(t, time.Since(begin), time.Second)
	b.Add(&store.Event{Seq: 10_003, Type: store.StepCompleted, Key: "last", Ordinal: 10_001, Attempt: 1, Steps: 10_001, At: 20_000})
	o := b.Outline()
	require.Len(t, o.Lanes[0].Rows, 10_001)
	require.Equal(t, 10_001, o.Steps)
	require.False(t, b.Stale())
	b.Add(&store.Event{Seq: 10_004, Branch: 3, Type: store.Edited, At: 20_001})
	require.True(t, b.Stale(), "a branch it does not know")
}

func BenchmarkOutline(b *testing.B) {
	events := []store.Event{{Seq: 1, Type: store.WorkflowCreated, At: 1}}
	for i := int64(2); i < 10_002; i++ {
		events = append(events, store.Event{Seq: i, Type: store.StepCompleted, Key: fmt.Sprintf("s%d", i), Ordinal: int32(i - 1), Attempt: 1, At: store.Time(i)})
	}
	in := outline.Input{Run: store.Run{ID: "r", Workflow: "w", Status: store.Running}, Now: 1 << 50}
	b.ReportAllocs()
	for b.Loop() {
		bd := outline.New(in)
		for i := range events {
			bd.Add(&events[i])
		}
		bd.Outline()
	}
}

func TestNothingIsSaidToBeCutOffInItemsThatHadRecordedNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		held := true
		wf := durable.Define("w", func(ctx context.Context, _ int) ([]int, error) {
			return durable.Map(ctx, "pick", []int{1, 2, 3, 4}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, n int) (int, error) {
				return durable.Step(ctx, "fetch", func(ctx context.Context) (int, error) {
					if held && n == 2 {
						<-ctx.Done()
						return 0, ctx.Err()
					}
					return n, nil
				})
			})
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Second)
		w.crash()
		held = false
		pass(durable.DefaultLease + time.Second)
		w.boot("web-2", wf)
		pass(time.Minute)
		for _, key := range []string{"pick[0]/fetch", "pick[2]/fetch", "pick[3]/fetch"} {
			r := w.tell("r").Row(key)
			require.NotNil(t, r, key)
			require.Len(t, r.Attempts, 1, "%s: %+v", key, r.Attempts)
		}
	})
}
