package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// standingOf feeds a Tracker with events.
func standingOf(t require.TestingT, events []store.Event) operate.Standing {
	var tr operate.Tracker
	for _, ev := range events {
		require.NoError(t, tr.Add(ev))
	}
	return tr.Standing()
}

// checkStanding compares what the history of a finished run "r" adds up to with
// what its row says, whatever kills it has lived through.
func checkStanding(t require.TestingT, data store.Store) {
	h, err := data.Load(context.Background(), "r", store.Cursor{})
	require.NoError(t, err)
	var tr operate.Tracker
	var last store.Event
	for e, err := range h.Events {
		require.NoError(t, err)
		require.NoError(t, tr.Add(e))
		s := tr.Standing()
		require.GreaterOrEqual(t, s.Total, s.Done, "event %d", e.Seq)
		switch e.Type {
		case store.AttemptFailed:
			require.Equal(t, e.Key, s.Current.Key)
			require.EqualValues(t, e.Attempt+1, s.Current.Attempt)
			require.NotEmpty(t, s.Current.Failed)
		case store.StepCompleted, store.StepFailed:
			for _, c := range s.Open {
				require.NotEqual(t, e.Key, c.Key, "over, and still open")
			}
		}
		last = e
	}
	s := tr.Standing()
	require.Equal(t, h.Run.Status, s.Status)
	require.Equal(t, last.Active, s.Active)
	if len(h.Branches) > 0 { // a cut, or another generation, leaves resumes behind
		require.LessOrEqual(t, s.Resumes, int(h.Run.Resumes))
	} else {
		require.EqualValues(t, h.Run.Resumes, s.Resumes)
	}
	require.EqualValues(t, h.Run.Last.Steps, s.Steps)
	require.Empty(t, s.Open)
	require.Zero(t, s.Step())
	if h.Run.Generation == 0 {
		require.Equal(t, h.Run.CreatedAt, s.CreatedAt)
		require.Equal(t, s.Steps, s.Done+s.Failed)
		require.Equal(t, s.Steps, s.Total)
	}
}

// takes is a body that works for a while.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// slowOrder is the workflow of the terminal's transcripts: four declared steps, of
// which one is a wait. Each body takes ten seconds.
func slowOrder(failures int, o ...durable.DefineOption) *durable.Workflow[int, string] {
	body := takes(10 * time.Second)
	return durable.Define("checkout", func(ctx context.Context, _ int) (string, error) {
		if err := durable.Do(ctx, "reserve", body); err != nil {
			return "", err
		}
		_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Second, Jitter: -1}, func(ctx context.Context) (int, error) {
			if err := body(ctx); err != nil {
				return 0, err
			}
			if n := durable.Attempt(ctx).Number; n <= failures {
				return 0, fmt.Errorf("bank: no %d", n)
			}
			return 1, nil
		})
		if err != nil {
			return "", err
		}
		if _, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship?")); err != nil {
			return "", err
		}
		return "H-7", durable.Do(ctx, "ship", body)
	}, o...)
}

func theFour() durable.DefineOption { return durable.Steps("reserve", "charge", "approve", "ship") }

// observe collects what Standings tells of a run, through an engine that lives
// all the time and executes nothing.
func (w *world) observe(t *testing.T, id string) (seen *[]operate.Standing, done <-chan struct{}) {
	eng, err := durable.Open(context.Background(), w.data.Handle(), durable.Options{Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	seen, over := new([]operate.Standing), make(chan struct{})
	go func() {
		defer close(over)
		for s, err := range operate.On(eng).Standings(context.Background(), id) {
			if !errors.Is(err, durable.ErrClosed) {
				require.NoError(t, err)
			}
			*seen = append(*seen, s)
		}
	}()
	return seen, over
}

func TestAStandingIsTheSameLiveAndByHistoryOverThreeLives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := slowOrder(2, theFour())
		o := durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: -1}
		w.boot(t, o)
		began := time.Now()
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		live, done := w.observe(t, "r")
		pass(22 * time.Second) // reserve, and a failed attempt of charge
		w.reboot(t, o)
		pass(15 * time.Second) // another one
		w.reboot(t, o)
		w.eventually("r", store.Waiting)

		s, err := operate.On(w.eng).Standing(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, store.Waiting, s.Status)
		require.Equal(t, 2, s.Done)
		require.Equal(t, 4, s.Total)
		require.Equal(t, 3, s.Step())
		require.Equal(t, 2, s.Resumes)
		require.Equal(t, "approve", s.Current.Key)
		require.Equal(t, "Ship?", s.Current.Prompt)
		require.WithinDuration(t, began, s.CreatedAt.Time(), 0)

		require.NoError(t, durable.Signal(w.ctx(), "r", "approve", true))
		w.eventually("r", store.Completed)
		<-done

		// Each thing that was told live is what the history up to there says.
		events := w.events("r")
		require.GreaterOrEqual(t, len(*live), len(events)-2)
		for _, s := range *live {
			want := standingOf(t, events[:s.Seq])
			want.Status, want.Reason = s.Status, s.Reason // the row says more at times
			require.Equal(t, want, s)
		}
		last := standingOf(t, events)
		require.Equal(t, last, (*live)[len(*live)-1])
		require.Equal(t, store.Completed, last.Status)
		require.Equal(t, [3]int{4, 4, 2}, [3]int{last.Done, last.Total, last.Resumes})

		info, err := w.eng.Get(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, last.Active, info.Active)
		require.Equal(t, 4, info.Total)
		require.EqualValues(t, 2, info.Resumes)
		require.Equal(t, last.CreatedAt, info.CreatedAt)
	})
}

func TestActiveTimeIsThatOfAllProcessesWithoutTheTimeBetween(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for range 3 {
				if err := durable.Do(ctx, "s", takes(10*time.Second)); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		for range 2 {
			pass(14 * time.Second) // 10 on record, 4 lost with the process
			w.crash()
			pass(24 * time.Hour)
			w.boot(t, o)
		}
		w.eventually("r", store.Completed)
		s, err := operate.On(w.eng).Standing(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, 30*time.Second, s.Active)
		require.Equal(t, 2, s.Resumes)
		require.Greater(t, s.At.Sub(s.CreatedAt), 48*time.Hour)
	})
}

func TestTheTotalIsDeclaredOrKnownAndNeverGuessed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := slowOrder(1)
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		at := func(id string, d time.Duration) operate.Standing {
			pass(d)
			s, err := operate.On(w.eng).Standing(w.ctx(), id)
			require.NoError(t, err)
			info, err := w.eng.Get(w.ctx(), id)
			require.NoError(t, err)
			require.LessOrEqual(t, info.Total, s.Total)
			return s
		}
		_, err := wf.Start(w.ctx(), "first", 0)
		require.NoError(t, err)
		s := at("first", 5*time.Second)
		require.Equal(t, [3]int{0, 0, 1}, [3]int{s.Done, s.Total, s.Step()}, "nothing is on record")
		s = at("first", 16*time.Second)
		require.Equal(t, [3]int{1, 2, 2}, [3]int{s.Done, s.Total, s.Step()}, "charge has failed once")
		require.Equal(t, "charge", s.Current.Key)
		require.Equal(t, 2, s.Current.Attempt)
		require.Equal(t, 5, s.Current.Max)
		require.Equal(t, "bank: no 1", s.Current.Failed)
		require.NoError(t, durable.Signal(w.ctx(), "first", "approve", true))
		w.eventually("first", store.Completed)
		s = at("first", 0)
		require.Equal(t, [3]int{3, 3, 0}, [3]int{s.Done, s.Total, s.Step()})

		// The next one knows what the first came to.
		_, err = wf.Start(w.ctx(), "second", 0)
		require.NoError(t, err)
		s = at("second", 5*time.Second)
		require.Equal(t, [3]int{0, 3, 1}, [3]int{s.Done, s.Total, s.Step()})
	})
}

func TestStandingsBeginAnewBehindACut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := slowOrder(1, theFour())
		o := durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: -1}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(15 * time.Second)
		w.reboot(t, o)
		live, done := w.observe(t, "r")
		w.eventually("r", store.Waiting)
		reserved, err := operate.On(w.eng).CheckpointOf(w.ctx(), "r", "reserve")
		require.NoError(t, err)
		_, err = operate.On(w.eng).Jump(w.ctx(), "r", reserved, operate.JumpOptions{})
		require.NoError(t, err)
		pass(time.Second)
		s := (*live)[len(*live)-1]
		require.Equal(t, [2]int{1, 4}, [2]int{s.Done, s.Total}, "charge and approve are taken back")
		require.Equal(t, "charge", s.Current.Key)
		require.EqualValues(t, w.row("r").Resumes, s.Resumes, "also the resume that was cut off counts")
		w.eventually("r", store.Waiting)
		require.NoError(t, durable.Signal(w.ctx(), "r", "approve", true))
		w.eventually("r", store.Completed)
		<-done
		s = (*live)[len(*live)-1]
		require.Equal(t, store.Completed, s.Status)
		require.Equal(t, [2]int{4, 4}, [2]int{s.Done, s.Total})
		require.EqualValues(t, w.row("r").Resumes, s.Resumes)
		again, err := operate.On(w.eng).Standing(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, again, s)
	})
}

func TestAResetTakesADeclaredStepBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := slowOrder(5, theFour())
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Failed)
		s, err := operate.On(w.eng).Standing(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, [4]int{1, 1, 4, 0}, [4]int{s.Done, s.Failed, s.Total, s.Step()}, "what has failed is not done")
		require.Contains(t, s.Reason, "bank: no 5")
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		synctest.Wait()
		s, err = operate.On(w.eng).Standing(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, [4]int{1, 0, 4, 2}, [4]int{s.Done, s.Failed, s.Total, s.Step()})
		require.Equal(t, "charge", s.Current.Key)
		require.Equal(t, 1, s.Current.Attempt)
		key, ok := w.eng.Executing("r")
		require.True(t, ok)
		require.Equal(t, "charge", key)
	})
}

// A failure that the code has handled stays one: the run completes with it.
func TestWhatHasFailedIsCountedApartFromWhatIsDone(t *testing.T) {
	for name, declared := range map[string][]durable.DefineOption{"declared": {durable.Steps("a", "child", "ask", "b")}, "not declared": nil} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				child := durable.Define("child", func(context.Context, int) (int, error) { return 0, errStock })
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					_ = durable.Do(ctx, "a", func(context.Context) error { return durable.Permanent(errStock) })
					_, _ = child.Run(ctx, "child", 0)
					_, _ = durable.Await[int](ctx, "ask", durable.Timeout(time.Minute))
					return 1, durable.Do(ctx, "b", func(context.Context) error { return nil })
				}, declared...)
				w.boot(t, with(wf, child))
				_, err := run(t, w, wf, "r", 0)
				require.NoError(t, err)
				s, err := operate.On(w.eng).Standing(w.ctx(), "r")
				require.NoError(t, err)
				want := [3]int{1, 1, 2} // of the steps
				if declared != nil {
					want = [3]int{1, 3, 4}
				}
				require.Equal(t, want, [3]int{s.Done, s.Failed, s.Total})
			})
		})
	}
}

func TestItemsAndBranchesUnderWayAreToldAndForgottenWithWhatHoldsThem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		patient := durable.Policy{MaxAttempts: 3, Initial: time.Minute, Jitter: -1}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			f := durable.Go(ctx, "side", func(ctx context.Context) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
			_, err := durable.Map(ctx, "items", []int{0, 1}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, n int) (int, error) {
				return durable.Retry(ctx, "resize", patient, func(ctx context.Context) (int, error) {
					if durable.Attempt(ctx).Number <= n+1 {
						return 0, errors.New("no")
					}
					return n, nil
				})
			})
			if err != nil {
				return 0, err
			}
			return f.Wait(ctx)
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		open := func() (keys []string) {
			s, err := operate.On(w.eng).Standing(w.ctx(), "r")
			require.NoError(t, err)
			for _, c := range s.Open {
				keys = append(keys, fmt.Sprintf("%s %s %d", c.Kind, c.Key, c.Attempt))
			}
			return keys
		}
		pass(time.Second)
		require.Subset(t, open(), []string{"step items[0]/resize 2", "step items[1]/resize 2"})
		pass(time.Minute)
		require.Contains(t, open(), "step items[1]/resize 3")
		require.NotContains(t, fmt.Sprint(open()), "items[0]")
		pass(2 * time.Minute)
		require.NotContains(t, fmt.Sprint(open()), "items")
		require.Contains(t, fmt.Sprint(open()), "sleep side/")
		pass(time.Hour)
		w.eventually("r", store.Completed)
		require.Empty(t, open())
	})
}

func TestEachGenerationCountsItsStepsAndTheStartIsTheFirstOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if err := durable.Do(ctx, "a", takes(time.Minute)); err != nil {
				return 0, err
			}
			if n == 0 {
				return 0, durable.Continue(ctx, 1)
			}
			return n, durable.Sleep(ctx, time.Hour)
		}, durable.Steps("a", "b"))
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		live, done := w.observe(t, "r")
		pass(90 * time.Second)
		s, err := operate.On(w.eng).Standing(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, [3]int{0, 2, 1}, [3]int{s.Done, s.Total, s.Generation})
		require.Equal(t, w.row("r").CreatedAt, s.CreatedAt)
		pass(2 * time.Hour)
		w.eventually("r", store.Completed)
		<-done
		s, err = operate.On(w.eng).Standing(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, s, (*live)[len(*live)-1])
		require.GreaterOrEqual(t, s.Active, 2*time.Minute, "of both generations")
	})
}

func TestATrackerRefusesWhatItCannotReadAndStaysAsItWas(t *testing.T) {
	var tr operate.Tracker
	require.NoError(t, tr.Add(store.Event{Seq: 1, Type: store.WorkflowCreated, At: 7}))
	before := tr.Standing()
	require.ErrorContains(t, tr.Add(store.Event{Seq: 2, Type: "from_the_future"}), "newer version")
	require.ErrorContains(t, tr.Add(store.Event{Seq: 2, Type: store.TimerSet, Key: "t", Data: []byte("{")}), "event 2")
	require.Equal(t, before, tr.Standing())
	require.NoError(t, tr.Add(store.Event{Seq: 1, Type: store.WorkflowCompleted}), "known already")
	require.Equal(t, before, tr.Standing())
}

func TestWhatFailsTakesWhatIsOpenInItAlong(t *testing.T) {
	var tr operate.Tracker
	seq := int64(0)
	add := func(typ store.Type, key string, attempt int32, open ...string) {
		t.Helper()
		seq++
		require.NoError(t, tr.Add(store.Event{Seq: seq, Type: typ, Key: key, Attempt: attempt, At: store.Time(seq)}))
		var keys []string
		for _, c := range tr.Standing().Open {
			keys = append(keys, c.Key)
		}
		require.Equal(t, open, keys)
	}
	add(store.WorkflowCreated, "", 0)
	add(store.AttemptFailed, "items[0]/resize", 1, "items[0]/resize")
	add(store.AttemptFailed, "items[1]/resize", 1, "items[0]/resize", "items[1]/resize")
	add(store.AttemptFailed, "items#2[1]/resize", 1, "items[0]/resize", "items[1]/resize", "items#2[1]/resize")
	add(store.TimerSet, "side/nap", 0, "items[0]/resize", "items[1]/resize", "items#2[1]/resize", "side/nap")
	add(store.ItemFailed, "items[1]", 0, "items[0]/resize", "items#2[1]/resize", "side/nap")
	add(store.StepFailed, "items", 0, "items#2[1]/resize", "side/nap")
	add(store.StepFailed, "side", 0, "items#2[1]/resize")
	require.Equal(t, store.Pending, tr.Standing().Status, "no process has had it, by these events")
}
