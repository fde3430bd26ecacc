package stuck

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// A program starts runs on made-up queues, and looks go by meanwhile.
func TestOfManyQueuesThatComeOneAfterTheOtherNoMoreAreNamedThanOfManyAtOnce(t *testing.T) {
	for step := range 30 {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		before := Unserved{}
		for n := step + 1; ; n = min(n+step+1, 30) {
			now := Unserved{}
			for i := range n {
				now[store.RunKind{Workflow: "mail", Queue: fmt.Sprint("tenant ", i)}] = &unserved{runs: 1}
			}
			now.Log(log, "x", before)
			if before = now; n == 30 {
				break
			}
		}
		require.Equal(t, maxQueues, strings.Count(out.String(), "from their queue"), "%d at a time", step+1)
		require.Equal(t, 1, strings.Count(out.String(), "from more queues"), "%d at a time", step+1)
	}
}
