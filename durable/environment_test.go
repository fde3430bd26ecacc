package durable_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func environment(t *testing.T, w *world, id string) (*durable.Environment, []string) {
	t.Helper()
	i, err := w.eng.Get(context.Background(), id)
	require.NoError(t, err)
	return i.Environment, i.Differences
}

func TestTheEnvironmentIsRecordedAndComparedOnResume(t *testing.T) {
	t.Setenv("HF_REGION", "eu")
	t.Setenv("HF_BANK_KEY", "hunter2")
	t.Setenv("HF_GONE", "x")
	before := os.Args
	t.Cleanup(func() { os.Args = before })
	os.Args = []string{"/opt/shop", "-verbose", "-token", "hunter2", "--password=hunter2", "serve"}
	dir, err := os.Getwd()
	require.NoError(t, err)
	inWorld(t, func(t *testing.T, w *world) {
		wf := fourSteps(&hold{})
		o := with(wf)
		o.Capture = durable.Capture{Args: true, Env: []string{"HF_REGION", "HF_BANK_KEY", "HF_GONE", "HF_UNSET"}}
		w.boot(t, o)
		start(t, w, wf, "r", 1)
		synctest.Wait()
		recorded, changed := environment(t, w, "r")
		require.Equal(t, &durable.Environment{
			Dir: dir, Program: "shop", Args: []string{"-verbose", "-token", "[redacted]", "--password=[redacted]", "serve"},
			Env: map[string]string{"HF_REGION": "eu", "HF_BANK_KEY": "[redacted]", "HF_GONE": "x"},
		}, recorded)
		require.Empty(t, changed)
		require.NotContains(t, string(w.events("r")[0].Data), "hunter2")
		w.crash()
		w.expire()

		t.Setenv("HF_REGION", "us")
		t.Setenv("HF_BANK_KEY", "other")
		require.NoError(t, os.Unsetenv("HF_GONE"))
		t.Chdir(t.TempDir())
		now, err := os.Getwd()
		require.NoError(t, err)
		os.Args = []string{"/opt/shop2", "serve"}
		w.boot(t, o)
		_, err = finish(t, w, wf, "r")
		require.NoError(t, err, "it is told, and not refused")
		_, changed = environment(t, w, "r")
		require.Equal(t, []string{
			"the working directory was " + dir + " and is " + now,
			"the program was shop and is shop2",
			`the command line was ["-verbose" "-token" "[redacted]" "--password=[redacted]" "serve"] and is ["serve"]`,
			"HF_GONE was set and is not",
			`HF_REGION was "eu" and is "us"`,
		}, changed)
		require.Len(t, w.log.find("WARN durable: the run is resumed in another environment"), 1)
	})
}

func TestByDefaultNoArgumentAndNoVariableIsRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := traveller()
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		recorded, _ := environment(t, w, "r")
		require.NotEmpty(t, recorded.Dir, "the second generation says it, too")
		require.NotEmpty(t, recorded.Program)
		require.Empty(t, recorded.Args)
		require.Empty(t, recorded.Env)
		o := with(wf)
		o.Capture.Off = true
		w.open(t, o)
		start(t, w, wf, "off", 0)
		synctest.Wait()
		recorded, changed := environment(t, w, "off")
		require.Nil(t, recorded)
		require.Empty(t, changed)
	})
}

func TestResumableRunsAreFoundAndTheLastInterruptedOneIsKnown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, bad := fourSteps(&hold{}), quick("bad")
		w.boot(t, with(wf, bad))
		_, err := operate.On(w.eng).LastInterrupted(context.Background())
		require.ErrorIs(t, err, durable.ErrNotFound)
		start(t, w, wf, "first", 1)
		pass(day)
		start(t, w, wf, "second", 1)
		_, _ = run(t, w, bad, "permanent", -1)
		_, err = run(t, w, bad, "done", 1)
		require.NoError(t, err)
		synctest.Wait()
		w.crash()
		w.expire()
		w.open(t, durable.Options{})
		var ids []string
		for row, err := range operate.On(w.eng).ListResumable(context.Background()) {
			require.NoError(t, err)
			ids = append(ids, row.ID)
		}
		require.ElementsMatch(t, []string{"first", "second", "permanent"}, ids)
		last, err := operate.On(w.eng).LastInterrupted(context.Background())
		require.NoError(t, err)
		require.Equal(t, "second", last.ID)
		require.Equal(t, store.Running, last.Status)
	})
}
