package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/operate"
)

// The words that programs compare are the same on both sides, and people read sentences.
func TestReasonsToWaitHaveOneWordAndASentence(t *testing.T) {
	for word, reason := range map[string]operate.WaitReason{
		client.WaitPaused: operate.QueuePaused, client.WaitUnserved: operate.QueueUnserved, client.WaitQueueLimit: operate.QueueAtLimit,
		client.WaitPartitionLimit: operate.PartitionAtLimit, client.WaitRate: operate.QueueRate, client.WaitNext: operate.QueueFree,
	} {
		require.Equal(t, word, string(reason))
		require.Contains(t, strings.TrimSpace(reason.String()), " ", "%s is printed as a sentence", word)
	}
}
