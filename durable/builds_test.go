package durable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// rolling has each of these builds in turn record one step of a run, but the last one,
// whose code differs at the last step. It returns whose code that one is told to fit.
func rolling(t *testing.T, builds ...string) (by durable.Recorder) {
	inWorld(t, func(t *testing.T, w *world) {
		last := len(builds) - 1
		define := func(changed bool) durable.Definition {
			return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				for i := range builds {
					if _, err := durable.Await[int](ctx, "go"); err != nil {
						return 0, err
					}
					name := fmt.Sprint("step ", i)
					if changed && i == last-1 {
						name = "other"
					}
					if _, err := durable.Step(ctx, name, one); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
		}
		for i, build := range builds {
			w.boot(t, durable.Options{Workflows: []durable.Definition{define(i == last)}, Build: build})
			if i == 0 {
				_, err := durable.Ref[int, int]("w").Start(w.ctx(), "r", 0)
				require.NoError(t, err)
			}
			require.NoError(t, w.eng.Signal(w.ctx(), "r", "go", i))
			pass(time.Minute)
			if i < last {
				require.Contains(t, w.story("r"), fmt.Sprint("step_completed step ", i))
				w.crash()
				w.expire()
			}
		}
		require.Equal(t, durable.CodeDefinitionChanged, w.row("r").Code)
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{DryRun: true})
		var changed *durable.DefinitionChangedError
		require.ErrorAs(t, err, &changed)
		by = changed.RecordedBy
	})
	return by
}

// A name that is too long to be kept stays different from every other one.
func TestTwoBuildsWithLongNamesAreNotTakenForOne(t *testing.T) {
	long := strings.Repeat("registry/shop:", 8)
	by := rolling(t, long+"1", long+"2", "3")
	require.False(t, by.First, "%s", by)
	require.LessOrEqual(t, len(by.Build), 64)
	require.True(t, strings.HasPrefix(by.Build, "registry/shop:"))
	require.True(t, rolling(t, long+"1", long+"1", "3").First)
}

// Two programs that were built from changed files of one revision may differ.
func TestTwoBuildsOfChangedFilesAreNotTakenForOne(t *testing.T) {
	require.False(t, rolling(t, "4f1c+dirty", "4f1c+dirty", "3").First)
	require.True(t, rolling(t, "4f1c", "4f1c", "3").First)
	require.True(t, rolling(t, "4f1c+dirty", "3").First)
}

// Rolled forth and back, the code is that which the run was started with.
func TestWhoseCodeFitsIsToldByTheBuild(t *testing.T) {
	by := rolling(t, "1", "2", "1", "3")
	require.True(t, by.First)
	require.Equal(t, "1", by.Build)
	by = rolling(t, "1", "2", "3")
	require.False(t, by.First)
	require.Equal(t, "2", by.Build)
}

// A body that asks time.Now decides otherwise when it is replayed. In the process that recorded the
// calls, and in another one of the same build, the code cannot be told to have changed.
func TestAReplayByTheSameCodeNamesWhatIsNotRecordedAsTheCause(t *testing.T) {
	const says = "its code decides by something that is not recorded, such as time.Now"
	for _, how := range []string{"in the same process", "by the same build", "by another build"} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				began := time.Now()
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					name := "early"
					if time.Since(began) > time.Minute {
						name = "late"
					}
					if err := durable.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
						return 0, err
					}
					return 0, durable.Sleep(ctx, time.Hour) // it is unloaded
				})
				o := with(wf)
				if how != "in the same process" {
					o.Build = "1"
				}
				w.boot(t, o)
				start(t, w, wf, "r", 0)
				pass(time.Minute)
				switch how {
				case "by the same build":
					w.reboot(t, o)
				case "by another build":
					o.Build = "2"
					w.reboot(t, o)
				}
				pass(2 * time.Hour)
				reason := w.eventually("r", store.Interrupted).Reason
				require.Contains(t, reason, "late stands where early was recorded")
				require.Contains(t, reason, "Make it legal", "and the other cause")
				if how == "by another build" {
					require.NotContains(t, reason, says)
				} else {
					require.Contains(t, reason, says)
				}
			})
		})
	}
}
