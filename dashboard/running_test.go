package dashboard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
)

// Nothing of a plain step is on record before it is over: the process that executes
// it says what it does, and of another's nothing is guessed.
func TestARunningRunSaysWhatRuns(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.shop.hang = make(chan struct{})
	s.start("r")
	require.Eventually(t, func() bool {
		key, ok := s.eng.Executing("r")
		return ok && key == "hang"
	}, time.Minute, time.Millisecond)
	require.Contains(t, s.browse("/runs/r").body, `Running <b class="mono">hang</b>`)
	close(s.shop.hang)
	s.until("r", "waiting")
}

// A bulk resume says of each run why it had failed, and counts those whose failure is
// final apart.
func TestABulkResumeShowsErrorsAndFinalFailures(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("again")
	rest(t, s.st, 1) // final
	page := s.browse("/bulk?act=resume&q=status:failed").body
	require.Contains(t, page, "bank says no: card 4111-secret")
	require.Contains(t, page, "lost at the Harbour")
}
