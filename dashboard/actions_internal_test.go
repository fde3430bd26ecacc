package dashboard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// The rooms ask about actions by the names that Authorize knows them by.
func TestTheRoomsNameTheActionsAsAuthorizeDoes(t *testing.T) {
	inside := []string{
		web.ActionList, web.ActionRead, web.ActionPayload,
		web.ActionStart, web.ActionResume, web.ActionCancel, web.ActionPause, web.ActionUnpause, web.ActionSignal, web.ActionAnswer, web.ActionFork, web.ActionJump, web.ActionEdit, web.ActionQueue, web.ActionSchedule,
	}
	require.Len(t, inside, len(Actions()))
	for i, a := range Actions() {
		require.Equal(t, string(a), inside[i])
	}
}
