package stuck_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// What a person is told to do about a stuck run, for each code that says why it is stuck.
func TestTheAdviceFollowsFromTheCode(t *testing.T) {
	const verify = `see what operate.On(engine).Verify(ctx, "order-1") finds, then operate.On(engine).Repair`
	const quarantined = `find out how those processes ended (their own last lines, the system's log for a lack of memory or a kill from outside); if it was this run, mend the step; then operate.On(engine).Resume(ctx, "order-1")`
	const missing = `import or restore the child, then operate.On(engine).Resume(ctx, "order-1"); or go back to before the call that started it with operate.On(engine).Jump(ctx, "order-1", ...), so that another one is started`
	for code, next := range map[string]string{
		store.CodeNotRegistered:     `run a program that serves workflow order version v2 (durable.Define with durable.Version("v2"); several versions may be registered at once)`,
		stuck.CodeDefinitionChanged: `run the code that recorded it, which the reason names, or mend the difference, then operate.On(engine).Resume(ctx, "order-1")`,
		stuck.CodeDamaged:           verify,
		stuck.CodePaused:            `Engine.Unpause(ctx, "order-1")`,
		stuck.CodeUndecodable:       `run a program that can read it (Options.Types, Encrypt and Codec; the type in the code), then operate.On(engine).Resume(ctx, "order-1")`,
		stuck.CodeChildMissing:      missing,
		stuck.CodeUnrecorded:        `mend what the reason names: durable.Recover of another build (Options.Build) then continues it, and operate.On(engine).Resume(ctx, "order-1") makes the call again at once`,
		stuck.CodeQuarantined:       quarantined,
		stuck.CodeUnrecoverable:     `look at its events (Engine.History(ctx, "order-1")) and decide from where it goes on`,
		stuck.CodeOrphaned:          `find the cause, then operate.On(engine).Resume(ctx, "order-1")`,
		history.CodeImporting:       `import the same file again, which finishes it; or delete the run`,
		"a code of a later version": `find the cause, then operate.On(engine).Resume(ctx, "order-1")`,
	} {
		row := &store.Run{ID: "order-1", Workflow: "order", Version: "v2", Status: store.Interrupted}
		require.Equal(t, stuck.Run{RunID: "order-1", Workflow: "order", Version: "v2", Code: code, Reason: "why", Next: next},
			stuck.Of(row, code, "why"), code)
	}
}

func TestTheAdviceFollowsFromTheRow(t *testing.T) {
	unversioned := stuck.Of(&store.Run{ID: "r", Workflow: "w"}, store.CodeNotRegistered, "")
	require.Equal(t, "run a program that serves workflow w", unversioned.Next)

	rowAlone := stuck.Of(&store.Run{ID: "r"}, stuck.CodeDamaged, history.ErrNoHistory.Error())
	require.Equal(t, "delete what is left of it, and import a copy if there is one", rowAlone.Next)

	// A waiting run is told the outcome of a child that is imported; any other is resumed.
	waits := stuck.AdviceMissing(&store.Run{ID: "r", Status: store.Waiting})
	require.Contains(t, waits, "import or restore the child, and resume that one if it has not ended; or")
	require.NotContains(t, waits, "Resume")
}

// The row of a paused run says why it stopped where it had begun; its own code, which
// is another reason to be stuck, does not count as one for the pause.
func TestAPausedRunSaysWhyItWasPaused(t *testing.T) {
	for _, c := range []struct {
		row    store.Run
		reason string
	}{
		{store.Run{Status: store.Interrupted, Reason: "paused by ops: the bank is down"}, "paused by ops: the bank is down"},
		{store.Run{Status: store.Interrupted}, "paused"},
		{store.Run{Status: store.Interrupted, Code: stuck.CodeUndecodable, Reason: "cannot be read"}, "paused"},
		{store.Run{Status: store.Waiting, Reason: "until Monday"}, "paused"},
	} {
		s := stuck.Paused(&c.row)
		require.Equal(t, stuck.CodePaused, s.Code)
		require.Equal(t, c.reason, s.Reason)
	}
}

func TestARunThatNobodyExecutesIsOrphaned(t *testing.T) {
	s := stuck.Orphaned(&store.Run{ID: "r", Status: store.Running})
	require.Equal(t, stuck.CodeOrphaned, s.Code)
	require.Equal(t, "its process is gone, and no other has taken it over", s.Reason)
}

func TestARunThatWillNotHearOfItsChildSaysWhetherThereIsOne(t *testing.T) {
	row := &store.Run{ID: "r", Status: store.Waiting}
	require.Equal(t, stuck.Run{RunID: "r", Code: stuck.CodeChildMissing, Reason: "why", Next: "do"}, stuck.Unheard(row, true, "why", "do"))
	require.Equal(t, stuck.Run{RunID: "r", Code: stuck.CodeStranded, Reason: "why", Next: "do"}, stuck.Unheard(row, false, "why", "do"))
}
