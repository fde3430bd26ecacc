package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// listed is a workflow that makes these steps in order; "!name" is one that
// fails, "?name" one whose workflow returns the error. The steps named in hold
// are not finished by the process that is killed.
func listed(ran *[]string, held *bool, names ...string) *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		var out []string
		for _, n := range names {
			name, fails := strings.CutPrefix(n, "!")
			v, err := durable.Step(ctx, name, func(ctx context.Context) (string, error) {
				if name == "hold" && !*held {
					*held = true
					<-ctx.Done()
					return "", ctx.Err()
				}
				*ran = append(*ran, name)
				if fails {
					return "", errStock
				}
				return name, nil
			})
			if err != nil && !fails {
				return "", err
			}
			out = append(out, v)
		}
		return strings.Join(out, ","), nil
	})
}

func TestAChangedDefinitionParksTheRunAndIsNeverMisread(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		ordinal       int
		recorded      string
		call          string
	}{
		"inserted first":            {"a b hold", "x a b hold", 1, "a", "x"},
		"inserted in between":       {"a b hold", "a x b hold", 2, "b", "x"},
		"removed first":             {"a b c hold", "b c hold", 1, "a", "b"},
		"removed in between":        {"a b c hold", "a c hold", 2, "b", "c"},
		"removed last":              {"a b hold", "a hold", 2, "b", "hold"},
		"removed all that followed": {"a b hold", "a", 2, "b", ""},
		"nothing is left":           {"a b hold", "", 1, "a", ""},
		"renamed":                   {"a b hold", "a B hold", 2, "b", "B"},
		"renamed first":             {"a b hold", "A b hold", 1, "a", "A"},
		"swapped":                   {"a b hold", "b a hold", 1, "a", "b"},
		"moved behind":              {"a b c hold", "b c a hold", 1, "a", "b"},
		"one repetition less":       {"a a a hold", "a a hold", 3, "a#3", "hold"},
		"one repetition more":       {"a a hold", "a a a hold", 3, "", ""},
		"a failed step is gone":     {"a !b hold", "a hold", 2, "b", "hold"},
		"the step under way is another": {
			"a hold", "a x", 0, "", "", // nothing of hold is recorded: it is as if it never was
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var ran []string
				held := false
				first := listed(&ran, &held, strings.Fields(c.before)...)
				w.serve(t, first)
				start(t, w, first, "r", 0)
				pass(time.Second)
				require.True(t, held)
				ran = nil
				second := listed(&ran, &held, strings.Fields(c.after)...)
				w.reboot(t, with(second))
				_, err := wait(t, w, second, "r")
				if c.recorded == "" {
					require.NoError(t, err, "what comes after the resume point may change")
					return
				}
				var changed *durable.DefinitionChangedError
				require.ErrorAs(t, err, &changed)
				require.ErrorIs(t, err, durable.ErrDefinitionChanged)
				require.ErrorIs(t, err, durable.ErrInterrupted)
				require.Equal(t, c.ordinal, changed.Ordinal)
				require.Equal(t, c.recorded, changed.Recorded[c.ordinal-1])
				require.Equal(t, c.call, changed.Call)
				require.Empty(t, ran, "no body ran under the changed code")

				row := w.row("r")
				require.Equal(t, store.Interrupted, row.Status)
				require.Equal(t, durable.CodeDefinitionChanged, row.Code)
				require.Contains(t, row.Reason, "Definition changed: r (w) stopped at call")

				text := changed.Error()
				require.Contains(t, text, "still resumable")
				require.Regexp(t, `recorded +code now`, text)
				if c.call == "" {
					require.Regexp(t, fmt.Sprintf(`(?m)^> %d %s +\(returned\)`, c.ordinal, c.recorded), text)
					require.Empty(t, changed.Source)
				} else {
					require.Regexp(t, fmt.Sprintf(`(?m)^> %d %s +%s .*definition_test\.go:\d+$`, c.ordinal, c.recorded, c.call), text)
					require.Contains(t, text, "durable.Patched(ctx, ")
				}

				// Whoever asks later, or elsewhere, gets the same.
				w.crash()
				w.expire()
				w.open(t, durable.Options{})
				_, later := wait(t, w, second, "r")
				require.Equal(t, err, later)

				// Nobody claims it by itself; with the right code it is resumed.
				rep := w.reboot(t, with(second))
				require.Empty(t, rep.Resumed)
				require.Len(t, rep.Stuck, 1)
				require.Equal(t, durable.CodeDefinitionChanged, rep.Stuck[0].Code)
				w.crash()
				w.expire()
				w.boot(t, with(first))
				goesOn(t, w, "r")
				out, err := wait(t, w, first, "r")
				require.NoError(t, err)
				require.Equal(t, []string{"hold"}, ran)
				require.Equal(t, len(strings.Fields(c.before)), len(strings.Split(out, ",")))
			})
		})
	}
}

func TestTheSameCodeIsNotResumedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		held := false
		first, second := listed(&ran, &held, "a", "hold"), listed(&ran, &held, "b", "hold")
		w.serve(t, first)
		start(t, w, first, "r", 0)
		pass(time.Second)
		w.reboot(t, with(second))
		_, err := wait(t, w, second, "r")
		require.ErrorIs(t, err, durable.ErrDefinitionChanged)
		w.unchanged(t, func() {
			require.ErrorIs(t, resume(w.eng, w.ctx(), "r"), durable.ErrDefinitionChanged)
		}, "r")
	})
}

// An error that the changed code returns before calls which are recorded is no
// outcome of this run.
func TestAnEarlyErrorOfChangedCodeIsNoFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		held := false
		first := listed(&ran, &held, "a", "b", "hold")
		w.serve(t, first)
		start(t, w, first, "r", 0)
		pass(time.Second)
		second := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if _, err := durable.Step(ctx, "a", func(context.Context) (string, error) { return "", nil }); err != nil {
				return "", err
			}
			return "", durable.Permanent(errors.New("config missing"))
		})
		w.reboot(t, with(second))
		_, err := wait(t, w, second, "r")
		require.ErrorIs(t, err, durable.ErrDefinitionChanged)
		require.Equal(t, store.Interrupted, w.row("r").Status)
	})
}

// A workflow that swallows the error is not run on over the difference.
func TestASwallowedChangeStillParks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		held := false
		first := listed(&ran, &held, "a", "b", "hold")
		w.serve(t, first)
		start(t, w, first, "r", 0)
		pass(time.Second)
		ran = nil
		second := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			for _, n := range []string{"x", "a", "b", "hold", "y"} {
				_, _ = durable.Step(ctx, n, func(context.Context) (string, error) { ran = append(ran, n); return "", nil })
			}
			return "done", nil
		})
		w.reboot(t, with(second))
		_, err := wait(t, w, second, "r")
		require.ErrorIs(t, err, durable.ErrDefinitionChanged)
		require.Empty(t, ran)
		require.Equal(t, store.Interrupted, w.row("r").Status)
	})
}

// A panic and a Goexit of changed code end nothing that is recorded either: the
// run fails recoverably and its history stays as it is.
func TestAPanicOfChangedCodeLeavesTheRunResumable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		held := false
		first := listed(&ran, &held, "a", "b", "hold")
		w.serve(t, first)
		start(t, w, first, "r", 0)
		pass(time.Second)
		second := durable.Define("w", func(context.Context, int) (string, error) { panic("new code") })
		w.reboot(t, with(second))
		_, err := wait(t, w, second, "r")
		require.ErrorContains(t, err, "new code")
		require.True(t, w.row("r").Status == store.Interrupted || w.row("r").Recoverable)
		w.crash()
		w.expire()
		w.boot(t, with(first))
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		_, err = wait(t, w, first, "r")
		require.NoError(t, err)
	})
}

func TestMoreAndFewerAttemptsThanRecordedAreNoChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		define := func(attempts int) *durable.Workflow[int, int] {
			return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: attempts, Initial: time.Minute, Multiplier: 1, Jitter: -1}, func(ctx context.Context) (int, error) {
					return never(ctx, durable.Attempt(ctx).Number)
				})
			})
		}
		w.serve(t, define(10))
		for _, id := range []string{"fewer", "more"} {
			start(t, w, define(10), id, 0)
		}
		pass(150 * time.Second) // three attempts have failed
		w.crash()
		w.expire()
		w.boot(t, with(define(2)))
		_, err := wait(t, w, define(2), "fewer")
		require.ErrorContains(t, err, "failure 3")
		require.Equal(t, store.Failed, w.row("fewer").Status)
	})
}

// The messages are for people at night: every column lines up.
func TestTheMessageOfAChangeLinesUp(t *testing.T) {
	err := &durable.DefinitionChangedError{
		RunID: "order-42", Workflow: "checkout", Ordinal: 3, Call: "fraud",
		Recorded: []string{"reserve", "charge", "ship", "mail"}, Source: "shop/checkout.go:31",
		RecordedBy: durable.Recorder{First: true, Build: "7"},
	}
	require.Equal(t, `Definition changed: order-42 (checkout) stopped at call 3, still resumable.
    recorded   code now
  1 reserve    reserve
  2 charge     charge
> 3 ship       fraud   shop/checkout.go:31
  4 mail       
fraud stands where ship was recorded. Make it legal:
  if durable.Patched(ctx, "fraud") { … as it is now } else { … as it was recorded: ship }
Or run this with the code it was started with, build 7.`, err.Error())
}
