package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAForkIsBornWithOtherResultsAndItsSourceKeepsItsOwn(t *testing.T) {
	calls := []string{"letter", "kid", "kid#2", "late", "letter#2", "after"}
	for name, c := range map[string]struct {
		edits   map[string]any
		at      string // the checkpoint; empty: none
		want    string
		skipped []string
	}{
		"an answer":            {map[string]any{"letter": "new"}, "letter", "new kid none none more", calls[:1]},
		"a child":              {map[string]any{"kid": "new"}, "kid#2", "one new none none more", calls[:3]},
		"a child that failed":  {map[string]any{"kid#2": json.RawMessage(`"new"`)}, "", "one kid new none more", calls[:3]},
		"a wait that ran out":  {map[string]any{"late": "new"}, "", "one kid none new more", calls[:4]},
		"two at once":          {map[string]any{"letter": "new", "letter#2": "newer"}, "", "new kid none none newer", calls[:5]},
		"two, and all is kept": {map[string]any{"letter": "new", "kid#2": "fine"}, "after", "new kid fine none two", calls},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				j, mended := &journal{}, false
				defs := told(j, &mended)
				o := with(defs...)
				o.Encrypt = durable.StaticKeys("k1", map[string][]byte{"k1": make([]byte, 32)})
				o.CompressAbove = 1
				w.boot(t, o)
				wf, err := hear(t, w, defs)
				require.ErrorContains(t, err, errNotYet.Error())
				mended = true
				events, row := w.events("r"), w.row("r")
				f := operate.ForkOptions{ID: "f", Edits: c.edits, Reason: "by hand", By: "ann"}
				if c.at != "" {
					f.At = seqOf(t, w, "r", c.at)
				}
				plan, err := operate.On(w.eng).PlanFork(w.ctx(), "r", f)
				require.NoError(t, err)
				require.Equal(t, slices.Sorted(maps.Keys(c.edits)), plan.Edited)
				require.Equal(t, c.skipped, plan.Skipped)
				require.Equal(t, calls[len(c.skipped):], append([]string{}, plan.Again...))
				require.Equal(t, "r", plan.RunID)
				_, err = w.eng.Get(w.ctx(), "f")
				require.ErrorIs(t, err, durable.ErrNotFound)

				id, err := operate.On(w.eng).Fork(w.ctx(), "r", f)
				require.NoError(t, err)
				require.Equal(t, "f", id)
				for range 2 { // the letters that its inbox lacks
					if err := w.eng.Signal(w.ctx(), "f", "letter", "more"); err != nil {
						require.ErrorIs(t, err, durable.ErrNotRunning)
					}
				}
				out, err := wait(t, w, wf, "f")
				require.NoError(t, err)
				require.Equal(t, c.want, out)
				require.Equal(t, events, w.events("r"))
				require.Equal(t, row, w.row("r"))
				for _, id := range []string{"r", "f"} {
					require.Empty(t, verify(t, w, id).Findings)
				}

				// Done again with the same words, it is done already.
				again, err := operate.On(w.eng).Fork(w.ctx(), "r", f)
				require.NoError(t, err)
				require.Equal(t, "f", again)
				for _, other := range []map[string]any{nil, {"letter": "other"}} {
					f.Edits = other
					_, err = operate.On(w.eng).Fork(w.ctx(), "r", f)
					require.ErrorIs(t, err, durable.ErrConflict)
				}
			})
		})
	}
}

// A step that has failed for good is given a result, whatever has become of the run.
func TestAForkOfAnEndedRunGoesOnWithAResultItNeverHad(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			a, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) { j.add(ctx); return 1, nil })
			if err != nil {
				return 0, err
			}
			b, err := durable.Retry(ctx, "b", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) (int, error) {
				j.add(ctx)
				return 0, errStock
			})
			if err != nil {
				return 0, err
			}
			c, err := durable.Step(ctx, "c", func(ctx context.Context) (int, error) { j.add(ctx); return 100, nil })
			return a + b + c, err
		}, durable.Steps("a", "b", "c"))
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 0)
		require.ErrorContains(t, err, errStock.Error())
		f := operate.ForkOptions{ID: "f", Edits: map[string]any{"b": 20}}
		plan, err := operate.On(w.eng).PlanFork(w.ctx(), "r", f)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, plan.Skipped)
		require.Empty(t, plan.Again)
		require.Equal(t, "Resuming from step 3 of 3", plan.String())
		require.Contains(t, plan.Details(), "take another result of b")
		require.Equal(t, operate.ResumePoint{Key: "c", Attempt: 1, After: "b"}, plan.Next)
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", f)
		require.NoError(t, err)
		out, err := wait(t, w, wf, "f")
		require.NoError(t, err)
		require.Equal(t, 121, out)

		// And of the fork, which has completed, another one.
		_, err = operate.On(w.eng).Fork(w.ctx(), "f", operate.ForkOptions{ID: "g", Edits: map[string]any{"a": 2, "b": 30}, At: seqOf(t, w, "f", "c")})
		require.NoError(t, err)
		out, err = wait(t, w, wf, "g")
		require.NoError(t, err)
		require.Equal(t, 132, out)
		require.Equal(t, []int{1, 1, 1, 1}, j.counts("a/1", "b/1", "b/2", "c/1"))
		require.Equal(t, store.Failed, w.row("r").Status)
		for _, id := range []string{"f", "g"} {
			require.Empty(t, verify(t, w, id).Findings)
		}
	})
}

// What was not made of an edited item, or branch, is copied.
func TestAForkWithEditedItemsKeepsTheirSiblings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, false
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			got, err := durable.Map(ctx, "items", []int{1, 2, 3}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, n int) (int, error) {
				small, err := durable.Step(ctx, "resize", func(ctx context.Context) (int, error) { j.add(ctx); return n, nil })
				if err != nil {
					return 0, err
				}
				return durable.Step(ctx, "upload", func(ctx context.Context) (int, error) { j.add(ctx); return 10 * small, nil })
			})
			if err == nil && !mended {
				err = errNotYet
			}
			return fmt.Sprint(got), err
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 0)
		require.ErrorContains(t, err, errNotYet.Error())
		mended = true
		for id, c := range map[string]struct {
			edits map[string]any
			want  string
			again []string
		}{
			"inner": {map[string]any{"items[1]/resize": 7}, "[10 70 30]", []string{"items[1]/upload", "items[1]"}},
			"item":  {map[string]any{"items[0]": 5}, "[5 20 30]", nil},
			"both":  {map[string]any{"items[0]": 5, "items[2]/resize": 7}, "[5 20 70]", []string{"items[2]/upload", "items[2]"}},
			"last":  {map[string]any{"items[1]/resize": 7, "items[1]/upload": 8}, "[10 8 30]", []string{"items[1]"}},
		} {
			before := j.times()
			f := operate.ForkOptions{ID: id, Edits: c.edits}
			plan, err := operate.On(w.eng).PlanFork(w.ctx(), "r", f)
			require.NoError(t, err)
			require.ElementsMatch(t, c.again, plan.Again, id)
			_, err = operate.On(w.eng).Fork(w.ctx(), "r", f)
			require.NoError(t, err)
			out, err := wait(t, w, wf, id)
			require.NoError(t, err)
			require.Equal(t, c.want, out, id)
			var ran []string
			for entry, n := range j.times() {
				if before[entry] != n {
					ran = append(ran, keyOf(entry))
				}
			}
			bodies := slices.DeleteFunc(slices.Clone(c.again), func(key string) bool { return strings.HasSuffix(key, "]") })
			require.ElementsMatch(t, bodies, ran, id)
			require.Empty(t, verify(t, w, id).Findings)
		}
	})
}

func TestAForkWithAnEditThatCannotBeIsRefusedAndNothingIsMade(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, false
		defs := told(j, &mended)
		nap := durable.Define("nap", func(ctx context.Context, _ int) (int, error) {
			k, err := defs[0].(*durable.Workflow[int, string]).Start(ctx, durable.AutoID, 1)
			if err != nil {
				return 0, err
			}
			if err := durable.Do(ctx, "beside", func(ctx context.Context) error { return nil }); err != nil {
				return 0, err
			}
			if _, err := k.Wait(ctx); err != nil {
				return 0, err
			}
			return 0, durable.Sleep(ctx, time.Second)
		})
		w.boot(t, with(append(defs, nap)...))
		_, err := hear(t, w, defs)
		require.Error(t, err)
		_, err = run(t, w, nap, "nap", 0)
		require.NoError(t, err)
		letter := seqOf(t, w, "r", "letter")
		runs := func() int {
			n := 0
			page, err := w.eng.List(w.ctx(), store.Filter{})
			require.NoError(t, err)
			n += len(page.Runs)
			return n
		}
		there, events := runs(), w.events("r")
		for name, c := range map[string]struct {
			of     string
			at     int64
			edits  map[string]any
			reason string // of the *EditError; empty: an *EncodeError
		}{
			"no such call":           {"r", 0, map[string]any{"nothing": 1}, "nothing is recorded under that name"},
			"no such item":           {"r", 0, map[string]any{"items[3]": 1}, "no such item"},
			"behind the checkpoint":  {"r", letter, map[string]any{"kid": "new"}, fmt.Sprintf("recorded up to event %d", letter)},
			"another type":           {"r", 0, map[string]any{"letter": 7}, "the value is of type int"},
			"one of two":             {"r", 0, map[string]any{"letter": "new", "kid": 7}, "the value is of type int"},
			"a sleep":                {"nap", 0, map[string]any{"sleep": 1}, "it is a sleep"},
			"a child without an end": {"nap", seqOf(t, w, "nap", "beside"), map[string]any{"beside": nil}, "done anew"},
			"another kind of JSON":   {"r", 0, map[string]any{"letter": json.RawMessage(`7`)}, ""},
			"no JSON":                {"r", 0, map[string]any{"letter": json.RawMessage(`{`)}, ""},
			"no value":               {"r", 0, map[string]any{"letter": make(chan int)}, ""},
		} {
			o := operate.ForkOptions{ID: "f", At: c.at, Edits: c.edits}
			_, planned := operate.On(w.eng).PlanFork(w.ctx(), c.of, o)
			_, err := operate.On(w.eng).Fork(w.ctx(), c.of, o)
			require.Equal(t, planned, err, name)
			if c.reason == "" {
				var unfit *durable.EncodeError
				require.ErrorAs(t, err, &unfit, name)
				require.Equal(t, "letter", unfit.Key)
			} else {
				var refused *operate.EditError
				require.ErrorAs(t, err, &refused, name)
				require.Contains(t, refused.Reason, c.reason, name)
			}
			require.Equal(t, there, runs(), name)
			require.Equal(t, events, w.events("r"), name)
		}

		// By force it is done, and found when it is read.
		id, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", Edits: map[string]any{"letter": 7}, Force: true})
		require.NoError(t, err)
		w.eventually(id, store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, w.row(id).Code)
	})
}

// A fork in which results are edited into what they are comes to what the run comes
// to, and what it keeps is what Edit would keep.
func TestAnyForkWithEditsOfAnyProgramEqualsThePlainOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		program := rapid.SliceOfN(ops, 1, 10).Draw(rt, "program")
		picks := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 3).Draw(rt, "edits")
		back, cut := rapid.IntRange(0, 1000).Draw(rt, "back"), rapid.IntRange(-300, 1000).Draw(rt, "at")
		if failure := bubble(t, func(t require.TestingT) {
			inOneProcess(t, program, func(eng *durable.Engine, ctx context.Context, j *journal, mended *bool) {
				points := lookBack(t, eng, "r").stable
				_, err := operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{FromCheckpoint: points[back%len(points)].Seq})
				require.NoError(t, err)
				require.Contains(t, outcomeOf(t, ctx, "r"), errNotYet.Error())
				source := lookBack(t, eng, "r").all
				*mended = true
				o := operate.ForkOptions{ID: "f", Edits: map[string]any{}}
				if cut >= 0 {
					o.At = source[cut%len(source)].Seq
				}
				var done []store.Event
				for _, ev := range source {
					step := ev.Type == store.StepCompleted && ev.Attempt > 0
					if (step || ev.Type == store.ItemCompleted) && (o.At == 0 || ev.Seq <= o.At) {
						done = append(done, ev)
					}
				}
				if len(done) == 0 {
					return
				}
				for _, pick := range picks {
					ev := done[pick%len(done)]
					p, err := operate.On(eng).Payload("r", ev)
					require.NoError(t, err)
					o.Edits[ev.Key] = nil // it has no result
					if len(p.Data) > 0 {
						o.Edits[ev.Key] = json.RawMessage(p.Data)
					}
				}
				plan, err := operate.On(eng).PlanFork(ctx, "r", o)
				if refused := (*operate.EditError)(nil); errors.As(err, &refused) && o.At != 0 {
					return // it was taken back behind that point
				}
				require.NoError(t, err)
				if len(o.Edits) == 1 && o.At == 0 {
					for key, value := range o.Edits {
						edit, err := operate.On(eng).Edit(ctx, "r", key, value, operate.EditOptions{DryRun: true})
						require.NoError(t, err)
						steps := slices.DeleteFunc(slices.Clone(plan.Again), func(k string) bool { return !slices.Contains(edit.Again, k) })
						require.ElementsMatch(t, edit.Again, steps, key)
						for _, k := range edit.Skipped {
							require.Contains(t, plan.Skipped, k)
						}
						require.Equal(t, edit.Edited, plan.Edited)
					}
				}
				before := j.times()
				id, err := operate.On(eng).Fork(ctx, "r", o)
				require.NoError(t, err)
				require.Equal(t, interpret(program)+", <nil>", outcomeOf(t, ctx, id))
				require.Equal(t, source, lookBack(t, eng, "r").all)
				for entry := range j.times() {
					if before[entry] == 0 {
						require.NotContains(t, plan.Skipped, keyOf(entry), "it was to be copied")
					}
				}
				v, err := operate.On(eng).Verify(ctx, id)
				require.NoError(t, err)
				require.Empty(t, v.Findings)
			})
		}); failure != "" {
			rt.Fatal(failure)
		}
	})
}

// What was edited, by whom and why, is in the first event of the fork, and the value
// itself is where all values are.
func TestTheHistoryOfAForkSaysWhatWasEditedInIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, true
		defs := told(j, &mended)
		w.boot(t, with(defs...))
		_, err := hear(t, w, defs)
		require.NoError(t, err)
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", Edits: map[string]any{"letter": "new"}, By: "ann", Reason: strings.Repeat("why ", 50_000)})
		require.NoError(t, err)
		events := w.events("f")
		var said struct {
			Fork struct {
				From   string            `json:"from"`
				Edits  map[string]string `json:"edits"`
				By     string            `json:"by"`
				Reason string            `json:"reason"`
			} `json:"fork"`
		}
		require.NoError(t, json.Unmarshal(events[0].Data, &said))
		require.Equal(t, "r", said.Fork.From)
		require.Equal(t, "ann", said.Fork.By)
		require.Contains(t, said.Fork.Reason, "why why")
		require.Less(t, len(said.Fork.Reason), 100_000)
		require.Contains(t, said.Fork.Edits, "letter")
		require.Len(t, said.Fork.Edits, 1)
		for _, ev := range events {
			if ev.Type == store.SignalReceived && ev.Key == "letter" {
				p, err := operate.On(w.eng).Payload("f", ev)
				require.NoError(t, err)
				require.JSONEq(t, `"new"`, string(p.Data))
			}
		}
	})
}
