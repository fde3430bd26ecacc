package durable_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// called is a workflow that makes these calls, and is held in the one named so.
func called(held string, calls func(ctx context.Context, call func(names ...string) error) error) *durable.Workflow[int, string] {
	var h hold
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		return "done", calls(ctx, func(names ...string) error {
			for _, name := range names {
				body := func(context.Context) error { return nil }
				if name == held {
					body = h.body
				}
				if err := durable.Do(ctx, name, body); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func plainly(names ...string) func(context.Context, func(...string) error) error {
	return func(_ context.Context, call func(...string) error) error { return call(names...) }
}

var printedPatch = regexp.MustCompile(`if (!?)durable\.Patched\(ctx, "([^"]+)"\)`)

// What the reason of a run says to do is done, to the letter, and every run completes:
// after a roll forth, and after one forth and back.
func TestTheAdviceOfAChangedDefinitionHealsWhenFollowed(t *testing.T) {
	const runs = 20
	const byTheSecond = "the code that recorded it: version 1, build 2, of executor second"
	for name, c := range map[string]struct {
		lives [][]string // calls of the builds that execute the runs, one after the other
		fits  int        // of these, the one that the reason names; from 1
		says  string
	}{
		"forth, a call inserted":                  {lives: [][]string{{"a", "c", "held 1", "d"}, {"a", "b", "c", "held 1", "d"}}, fits: 1, says: "the code it was started with, version 1, build 1."},
		"forth, a call removed":                   {lives: [][]string{{"a", "b", "c", "held 1"}, {"a", "c", "held 1"}}, fits: 1, says: "the code it was started with, version 1, build 1."},
		"forth, the last removed":                 {lives: [][]string{{"a", "b", "c", "held 1"}, {"a"}}, fits: 1, says: "the code it was started with, version 1, build 1."},
		"forth and back, a call inserted":         {lives: [][]string{{"a", "held 1", "c"}, {"a", "held 1", "b", "held 2", "c"}, {"a", "held 1", "c"}}, fits: 2, says: byTheSecond},
		"forth and back, with calls behind":       {lives: [][]string{{"a", "held 1", "c"}, {"a", "held 1", "b", "c", "held 2"}, {"a", "held 1", "c"}}, fits: 2, says: byTheSecond},
		"forth and back, a call renamed":          {lives: [][]string{{"a", "held 1", "c", "d"}, {"a", "held 1", "b", "held 2", "d"}, {"a", "held 1", "c", "d"}}, fits: 2, says: byTheSecond},
		"forth and back, a call added at the end": {lives: [][]string{{"a", "held 1"}, {"a", "held 1", "b", "held 2"}, {"a", "held 1"}}, fits: 2, says: byTheSecond},
	} {
		for _, follow := range []string{"the code that is named", "the line that is printed"} {
			t.Run(name+", by "+follow, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					options := func(build int, def durable.Definition) durable.Options {
						o := with(def)
						o.Build, o.Name = fmt.Sprint(build), []string{"", "first", "second", "third", "fourth"}[build]
						return o
					}
					ids := make([]string, runs)
					for i := range ids {
						ids[i] = fmt.Sprintf("r-%d", i)
					}
					for i, calls := range c.lives {
						def := called(fmt.Sprintf("held %d", i+1), plainly(calls...))
						if i > 0 {
							w.reboot(t, options(i+1, def))
							synctest.Wait()
							continue
						}
						w.boot(t, options(1, def))
						for _, id := range ids {
							start(t, w, def, id, 0)
						}
						synctest.Wait()
					}
					var reason string
					for _, id := range ids {
						row := w.row(id)
						require.Equal(t, store.Interrupted, row.Status, id)
						require.Equal(t, durable.CodeDefinitionChanged, row.Code)
						require.Contains(t, row.Reason, c.says)
						reason = row.Reason
					}

					now, recorded := c.lives[len(c.lives)-1], c.lives[c.fits-1]
					next := called("", plainly(recorded...))
					if follow == "the line that is printed" {
						line := printedPatch.FindStringSubmatch(reason)
						require.NotNil(t, line, reason)
						next = called("", func(ctx context.Context, call func(...string) error) error {
							same := 0
							for same < min(len(now), len(recorded)) && now[same] == recorded[same] {
								same++
							}
							if err := call(now[:same]...); err != nil {
								return err
							}
							if durable.Patched(ctx, line[2]) {
								return call(now[same:]...)
							}
							return call(recorded[same:]...)
						})
					}
					byHand := options(4, next)
					byHand.OnBoot = durable.LeaveOnBoot // or Recover would do it
					w.reboot(t, byHand)
					changed := store.Filter{Workflows: []string{"w"}, Codes: []string{durable.CodeDefinitionChanged}}
					for _, dry := range []bool{true, false} {
						resumed := map[string]bool{}
						for plan, err := range operate.On(w.eng).ResumeAll(w.ctx(), changed, operate.ResumeOptions{DryRun: dry}) {
							require.NoError(t, err)
							resumed[plan.RunID] = true
						}
						require.Len(t, resumed, runs, "a dry run resumes none, so that all are there again")
					}
					for _, id := range ids {
						out, err := wait(t, w, next, id)
						require.NoError(t, err)
						require.Equal(t, "done", out)
					}
				})
			})
		}
	}
}
