package commit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestARenewedWriteIsANewOneOfTheSameEvents(t *testing.T) {
	events := make([]store.Event, 1)
	at := time.Now()
	w := &Write{Events: events, Clock: at, Row: &store.RowPatch{}, Alone: true, admitted: true, settled: true, at: 7, bytes: 8, reply: make(chan *leading), chosen: true}
	require.True(t, w.Renew())
	require.Equal(t, &Write{Events: events, Clock: at}, w)
	for _, w := range []*Write{{}, {settled: true, unsure: true}, {settled: true, err: ErrLost}} {
		had := *w
		require.False(t, w.Renew())
		require.Equal(t, had, *w)
	}
}
