package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

var errNotYet = errors.New("not yet")

// failingProgram is a program that fails at its end as long as *mended is false.
func failingProgram(j *journal, program []op, mended *bool) *durable.Workflow[int, string] {
	return durable.Define("program", func(ctx context.Context, _ int) (string, error) {
		out, err := perform(ctx, j, program)
		if err == nil && !*mended {
			err = errNotYet
		}
		return out, err
	})
}

// seenRun is what a test sees of a run's history.
type seenRun struct {
	stable []store.Event
	all    []store.Event
}

// lookBack reads the current history of a run and the points to go back to.
func lookBack(t require.TestingT, eng *durable.Engine, id string) (s seenRun) {
	for ev, err := range eng.History(context.Background(), id) {
		require.NoError(t, err)
		s.all = append(s.all, ev)
		if ev.Type.Stable() || ev.Seq == 1 {
			s.stable = append(s.stable, ev)
		}
	}
	return s
}

// inOneProcess runs act on a run "r" of a program that has failed at its end.
func inOneProcess(t require.TestingT, program []op, act func(eng *durable.Engine, ctx context.Context, j *journal, mended *bool)) {
	j, mended := &journal{}, false
	data := memory.Open()
	wf := failingProgram(j, program, &mended)
	eng, err := durable.Open(context.Background(), data.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), Grace: -1})
	require.NoError(t, err)
	defer func() { _ = data.Close() }()
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(context.Background(), eng)
	_, err = durable.Recover(ctx)
	require.NoError(t, err)
	_, err = wf.Run(ctx, "r", 7)
	require.ErrorContains(t, err, errNotYet.Error())
	act(eng, ctx, j, &mended)
}

// outcomeOf waits for a run's result, in virtual time.
func outcomeOf(t require.TestingT, ctx context.Context, id string) string {
	ctx, stop := context.WithTimeout(ctx, 60*24*time.Hour)
	defer stop()
	h, err := durable.Ref[int, string]("program").Handle(ctx, id)
	require.NoError(t, err)
	out, err := h.Wait(ctx)
	return fmt.Sprintf("%s, %v", out, err)
}

// Wherever a history is cut, the run comes to what it had come to, and what the
// plan calls skipped is not done again.
func TestAnyCutOfAnyProgramEqualsThePlainOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		program := rapid.SliceOfN(ops, 1, 10).Draw(rt, "program")
		picks := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 3).Draw(rt, "cuts")
		jump := rapid.Bool().Draw(rt, "jump")
		if failure := bubble(t, func(t require.TestingT) {
			inOneProcess(t, program, func(eng *durable.Engine, ctx context.Context, j *journal, mended *bool) {
				for i, pick := range picks {
					*mended = i == len(picks)-1
					points := lookBack(t, eng, "r").stable
					at := points[pick%len(points)]
					before := j.times()
					dry, err := operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{FromCheckpoint: at.Seq, DryRun: true})
					require.NoError(t, err)
					var plan operate.Plan
					if jump {
						plan, err = operate.On(eng).Jump(ctx, "r", at.Seq, operate.JumpOptions{})
					} else {
						plan, err = operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{FromCheckpoint: at.Seq})
					}
					require.NoError(t, err)
					if jump { // which does not look where the code ends
						dry.Ends, dry.Unchecked, dry.Warnings, plan.Warnings = "", "", nil, nil
					}
					require.Equal(t, dry, plan)
					got := outcomeOf(t, ctx, "r")
					if *mended {
						require.Equal(t, interpret(program)+", <nil>", got, "cut behind %d %s %s", at.Seq, at.Type, at.Key)
					} else {
						require.Contains(t, got, errNotYet.Error())
					}
					skipped := map[string]bool{}
					for _, key := range plan.Skipped {
						skipped[key] = true
					}
					for entry, n := range j.times() {
						if skipped[keyOf(entry)] {
							require.Equal(t, before[entry], n, "%s was to be skipped, cut behind %d %s %s in %q", entry, at.Seq, at.Type, at.Key, plan.Scope)
						}
					}
				}
			})
		}); failure != "" {
			rt.Fatal(failure)
		}
	})
}

// A fork of anything, taken anywhere, comes to the same, and leaves the source as
// it was.
func TestAnyForkOfAnyProgramEqualsThePlainOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		program := rapid.SliceOfN(ops, 1, 10).Draw(rt, "program")
		cut, pick, again := rapid.IntRange(0, 1000).Draw(rt, "cut"), rapid.IntRange(0, 1000).Draw(rt, "at"), rapid.IntRange(0, 1000).Draw(rt, "again at")
		if failure := bubble(t, func(t require.TestingT) {
			inOneProcess(t, program, func(eng *durable.Engine, ctx context.Context, j *journal, mended *bool) {
				points := lookBack(t, eng, "r").stable
				_, err := operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{FromCheckpoint: points[cut%len(points)].Seq})
				require.NoError(t, err)
				require.Contains(t, outcomeOf(t, ctx, "r"), errNotYet.Error())
				source := lookBack(t, eng, "r").all
				id, err := operate.On(eng).Fork(ctx, "r", operate.ForkOptions{ID: "f", At: source[pick%len(source)].Seq})
				require.NoError(t, err)
				require.Contains(t, outcomeOf(t, ctx, id), errNotYet.Error())
				*mended = true
				first := lookBack(t, eng, "f").all
				_, err = operate.On(eng).Fork(ctx, "f", operate.ForkOptions{ID: "g", At: first[again%len(first)].Seq})
				require.NoError(t, err)
				require.Equal(t, interpret(program)+", <nil>", outcomeOf(t, ctx, "g"))
				require.Equal(t, source, lookBack(t, eng, "r").all)
				require.Equal(t, first, lookBack(t, eng, "f").all)
			})
		}); failure != "" {
			rt.Fatal(failure)
		}
	})
}

// keyOf returns the key of the step in an entry of a journal, "key/attempt
// idempotency key".
func keyOf(entry string) string {
	entry, _, _ = strings.Cut(entry, " ")
	return entry[:strings.LastIndexByte(entry, '/')]
}
