package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

type decision struct {
	Approved bool
	By       string
	Reason   string
}

func TestAVerdictHasTheFormOfWhatIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct{ sample, want string }{
		"a boolean":          {`false`, `true`},
		"a struct":           {`{"Approved":false,"By":"","Reason":"","N":0}`, `{"Approved":true,"By":"ada","N":0,"Reason":"fine"}`},
		"lower case":         {`{"ok":false,"comment":""}`, `{"comment":"fine","ok":true}`},
		"no yes or no in it": {`{"amount":0,"urgent":false}`, ""},
		"a text":             {`""`, ""},
		"not known":          {``, ""},
	} {
		a := durable.Approval{RunID: "r", Key: "approve", Sample: json.RawMessage(c.sample)}
		got, err := a.Verdict(true, "ada", "fine")
		if c.want == "" {
			require.ErrorIs(t, err, durable.ErrInvalid, name)
			continue
		}
		require.NoError(t, err, name)
		require.JSONEq(t, c.want, string(got), name)
	}
}

func TestOfSeveralAnswersTheFirstCountsAndTheOthersAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		asking := durable.Define("asking", func(ctx context.Context, _ string) (decision, error) {
			return durable.Await[decision](ctx, "approve", durable.Prompt("Ship it?"))
		})
		w.serve(t, asking)
		h, err := asking.Start(w.ctx(), "r", "")
		require.NoError(t, err)
		pass(time.Millisecond)
		open, err := operate.On(w.eng).ApprovalsOf(w.ctx(), "r")
		require.NoError(t, err)
		require.Len(t, open, 1)
		require.JSONEq(t, `{"Approved":false,"By":"","Reason":""}`, string(open[0].Sample))
		yes, err := open[0].Verdict(true, "ada", "")
		require.NoError(t, err)
		require.NoError(t, operate.On(w.eng).Answer(w.ctx(), open[0], yes))
		var late *operate.TooLateError
		err = operate.On(w.eng).Answer(w.ctx(), open[0], json.RawMessage(`{"Approved":false}`))
		if !errors.As(err, &late) {
			require.ErrorIs(t, err, durable.ErrNotRunning, "it has ended meanwhile")
		}
		got, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, decision{Approved: true, By: "ada"}, got)
		open, err = operate.On(w.eng).ApprovalsOf(w.ctx(), "r")
		require.NoError(t, err)
		require.Empty(t, open)
		_, err = operate.On(w.eng).ApprovalsOf(w.ctx(), "nobody")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

func TestALaterAnswerToAnApprovalOfARunThatGoesOnIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		asking := durable.Define("asking", func(ctx context.Context, _ string) (bool, error) {
			ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship it?"))
			if err != nil {
				return false, err
			}
			return ok, durable.Sleep(ctx, time.Hour)
		})
		w.serve(t, asking)
		h, err := asking.Start(w.ctx(), "r", "")
		require.NoError(t, err)
		pass(time.Millisecond)
		open, err := operate.On(w.eng).ApprovalsOf(w.ctx(), "r")
		require.NoError(t, err)
		for _, wrong := range []string{`"yes"`, `{}`, `1`, `null`, ``} {
			require.ErrorIs(t, operate.On(w.eng).Answer(w.ctx(), open[0], json.RawMessage(wrong)), durable.ErrInvalid, wrong)
		}
		require.NoError(t, operate.On(w.eng).Answer(w.ctx(), open[0], true))
		pass(time.Millisecond)
		var late *operate.TooLateError
		require.ErrorAs(t, operate.On(w.eng).Answer(w.ctx(), open[0], false), &late)
		require.Equal(t, "approve", late.Key)
		got, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.True(t, got)
	})
}

func TestStartingByNameAndJSONIsTheSameStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type order struct{ ID string }
		shop := durable.Define("shop", func(_ context.Context, o order) (string, error) { return o.ID, nil })
		w.serve(t, shop)
		id, err := operate.On(w.eng).StartJSON(w.ctx(), "shop", "r", json.RawMessage(` {"ID": "o-1"} `), durable.Attributes(map[string]string{"a": "b"}))
		require.NoError(t, err)
		require.Equal(t, "r", id)
		h, err := shop.Start(w.ctx(), "r", order{ID: "o-1"})
		require.NoError(t, err, "the same workflow and input: the same run")
		got, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "o-1", got)

		_, err = operate.On(w.eng).StartJSON(w.ctx(), "shop", "r", json.RawMessage(`{"ID":"o-2"}`))
		require.ErrorIs(t, err, durable.ErrConflict)
		for _, bad := range []string{`{"Id2":"x"}`, `{"ID":1}`, `{"ID":"x"} trailing`, `{`, "{\"ID\":\"caf\xe9\"}"} {
			_, err = operate.On(w.eng).StartJSON(w.ctx(), "shop", "bad", json.RawMessage(bad))
			require.ErrorIs(t, err, durable.ErrInvalid, bad)
		}
		_, err = operate.On(w.eng).StartJSON(w.ctx(), "nowhere", "bad", nil)
		require.ErrorIs(t, err, durable.ErrNotRegistered)
		_, err = w.eng.Get(w.ctx(), "bad")
		require.ErrorIs(t, err, durable.ErrNotFound, "nothing was started")

		auto, err := operate.On(w.eng).StartJSON(w.ctx(), "shop", durable.AutoID, nil)
		require.NoError(t, err)
		require.Contains(t, auto, "shop-")
	})
}

func TestStartingByNameReachesAWorkflowThatIsServedElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		shop := durable.Define("shop", func(_ context.Context, o map[string]int) (int, error) { return o["n"], nil })
		w.boot(t, durable.Options{Workflows: []durable.Definition{shop}})
		w.serve(t) // without code
		id, err := operate.On(w.eng).StartJSON(w.ctx(), "shop", durable.AutoID, json.RawMessage(`{"n":7}`))
		require.NoError(t, err)
		h, err := shop.Handle(w.ctx(), id)
		require.NoError(t, err)
		got, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 7, got)
	})
}

func TestAnEditByJSONKeepsTheRecordedType(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type address struct{ Street string }
		broken := true
		ship := durable.Define("ship", func(ctx context.Context, _ string) (string, error) {
			a, err := durable.Step(ctx, "address", func(context.Context) (address, error) { return address{"wrong"}, nil })
			if err != nil {
				return "", err
			}
			return durable.Step(ctx, "send", func(context.Context) (string, error) {
				if broken {
					return "", durable.Permanent(context.DeadlineExceeded)
				}
				return a.Street, nil
			})
		})
		w.serve(t, ship)
		h, err := ship.Start(w.ctx(), "r", "")
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.Error(t, err)
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "address", json.RawMessage(`"right"`), operate.EditOptions{})
		var no *durable.EncodeError
		require.ErrorAs(t, err, &no, "a text where an object is recorded")
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "address", json.RawMessage(`{`), operate.EditOptions{})
		require.ErrorAs(t, err, &no)
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "address", json.RawMessage(`{"Street":"right"}`), operate.EditOptions{By: "mara"})
		require.NoError(t, err)
		for ev, err := range w.eng.History(w.ctx(), "r") {
			require.NoError(t, err)
			if ev.Type == store.StepCompleted {
				p, err := operate.On(w.eng).Payload("r", ev)
				require.NoError(t, err)
				require.Equal(t, "durable_test.address", p.Type)
			}
		}
		broken = false
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		again, err := ship.Handle(w.ctx(), "r")
		require.NoError(t, err)
		got, err := again.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "right", got)
	})
}

func TestStuckListsEveryKindWithWhatToDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		forever := durable.Define("forever", func(ctx context.Context, _ string) (string, error) {
			return durable.Step(ctx, "hang", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		})
		nap := durable.Define("nap", func(ctx context.Context, _ string) (string, error) {
			return "", durable.Sleep(ctx, 24*time.Hour)
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{forever, nap}})
		_, err := forever.Start(w.ctx(), "orphan", "")
		require.NoError(t, err)
		for _, id := range []string{"paused", "waits"} {
			_, err = nap.Start(w.ctx(), id, "")
			require.NoError(t, err)
		}
		require.NoError(t, w.eng.Pause(w.ctx(), "paused", "lunch"))
		pass(time.Second)
		none, err := operate.On(w.eng).Stuck(w.ctx(), 0)
		require.NoError(t, err)
		require.Len(t, none, 1)
		w.crash()
		w.expire()
		w.serve(t)
		found, err := operate.On(w.eng).Stuck(w.ctx(), 0)
		require.NoError(t, err)
		codes := map[string]string{}
		for _, s := range found {
			require.NotEmpty(t, s.Next)
			require.NotEmpty(t, s.Reason)
			codes[s.RunID] = s.Code
		}
		require.Equal(t, map[string]string{"orphan": durable.CodeNotRegistered, "waits": durable.CodeNotRegistered, "paused": durable.CodePaused}, codes)
		w.serve(t, forever)
		found, err = operate.On(w.eng).Stuck(w.ctx(), 0)
		require.NoError(t, err)
		require.Len(t, found, 3)
		require.Equal(t, operate.CodeOrphaned, found[0].Code)
	})
}

func TestAPersonIsToldWhyARunShouldNotBeResumed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails := durable.Define("fails", func(ctx context.Context, step bool) (string, error) {
			if step {
				if _, err := durable.Step(ctx, "one", func(context.Context) (string, error) { return "x", nil }); err != nil {
					return "", err
				}
			}
			return "", errors.New("no")
		})
		secret := durable.StaticKeys("k1", map[string][]byte{"k1": make([]byte, durable.KeySize)})
		w.open(t, durable.Options{Workflows: []durable.Definition{fails}, Encrypt: secret})
		for id, step := range map[string]bool{"empty": false, "full": true} {
			h, err := fails.Start(w.ctx(), id, step)
			require.NoError(t, err)
			_, err = h.Wait(w.ctx())
			require.ErrorIs(t, err, durable.ErrRunFailed)
		}
		resume := func(id string, o operate.ResumeOptions) error {
			_, err := operate.On(w.eng).Resume(w.ctx(), id, o)
			return err
		}
		require.NoError(t, resume("full", operate.ResumeOptions{DryRun: true}))
		require.ErrorIs(t, resume("nobody", operate.ResumeOptions{}), durable.ErrNotFound)
		var none *operate.CheckpointError
		require.ErrorAs(t, resume("empty", operate.ResumeOptions{}), &none)
		require.NoError(t, resume("empty", operate.ResumeOptions{Force: true, DryRun: true}))
		w.serve(t, fails) // without the key
		var unreadable *durable.UndecodableError
		require.ErrorAs(t, resume("full", operate.ResumeOptions{}), &unreadable)
		require.Equal(t, store.Failed, w.row("full").Status)
	})
}

// Whoever answers late has not seen what came before: the end of the wait, a signal of its name, or
// the next generation of the run.
func TestAnAnswerIsRefusedOnceItsApprovalHasEndedOtherwise(t *testing.T) {
	for name, ends := range map[string]func(w *world){
		"by its time-out": func(*world) { pass(time.Minute) },
		"by a signal": func(w *world) {
			require.NoError(t, w.eng.Signal(w.ctx(), "r", "approve", true))
			pass(time.Second)
		},
		"by a signal that is not taken yet": func(w *world) {
			require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
			pass(time.Second)
			require.NoError(t, w.eng.Signal(w.ctx(), "r", "approve", true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				asking := durable.Define("asking", func(ctx context.Context, again bool) (bool, error) {
					_, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship it?"), durable.Timeout(time.Minute))
					if again {
						return false, durable.Continue(ctx, false)
					}
					return err == nil, durable.Sleep(ctx, time.Hour)
				})
				w.serve(t, asking)
				_, err := asking.Start(w.ctx(), "r", name == "by a signal")
				require.NoError(t, err)
				pass(time.Second)
				op := operate.On(w.eng)
				open, err := op.ApprovalsOf(w.ctx(), "r")
				require.NoError(t, err)
				require.Len(t, open, 1)
				ends(w)
				var late *operate.TooLateError
				require.ErrorAs(t, op.Answer(w.ctx(), open[0], true), &late)
			})
		})
	}
}

func TestAnApprovalWhoseKeyIsLongIsAnswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		long := strings.Repeat("n", store.MaxName)
		asking := durable.Define("asking", func(ctx context.Context, _ string) (bool, error) {
			oks, err := durable.Map(ctx, long, []int{0, 1}, durable.MapOptions{}, func(ctx context.Context, _ int) (bool, error) {
				return durable.Await[bool](ctx, "approve", durable.Prompt("Ship it?"))
			})
			return err == nil && !oks[0] && oks[1], err
		})
		w.serve(t, asking)
		h, err := asking.Start(w.ctx(), "r", "")
		require.NoError(t, err)
		pass(time.Second)
		op := operate.On(w.eng)
		open, err := op.ApprovalsOf(w.ctx(), "r")
		require.NoError(t, err)
		require.Len(t, open, 2)
		for _, a := range open {
			require.NoError(t, op.Answer(w.ctx(), a, strings.Contains(a.Key, "[1]")))
		}
		got, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.True(t, got)
	})
}
