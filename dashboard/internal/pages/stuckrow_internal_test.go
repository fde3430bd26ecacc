package pages

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
)

func TestAStuckRunWithoutCodeSaysWhatItNeedsAndNotWhatIsThere(t *testing.T) {
	li := &Lists{Shell: &Shell{Env: &web.Env{}}}
	row := li.stuckRow(&durable.Stuck{RunID: "r", Workflow: "billing", Version: "v2", Code: durable.CodeNotRegistered, Reason: "workflow billing is not registered here; registered: a, b"})
	require.Equal(t, "needs billing v2; no live process serves it", row.Reason)
	require.Equal(t, "Start a program that has it.", row.Next)
	row = li.stuckRow(&durable.Stuck{RunID: "r", Workflow: "billing", Code: durable.CodePaused, Reason: "by ada", Next: "unpause it"})
	require.Equal(t, "by ada", row.Reason)
	require.Equal(t, "unpause it", row.Next)
}
