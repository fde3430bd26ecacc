package history_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// longLog is the log of a run that has completed as many steps.
func longLog(steps int) []store.Event {
	events := []store.Event{
		{Type: store.WorkflowCreated, Data: []byte(`{"workflow":"bench","version":"1"}`), Payload: []byte("hf1 json int@1 - - dbea4e35\n1")},
		{Type: store.WorkflowStarted, Data: []byte(`{"executor":"e"}`)},
	}
	for i := range steps {
		events = append(events, store.Event{
			Type: store.StepCompleted, Key: fmt.Sprintf("step#%d", i+1), Attempt: 1, Ordinal: int32(i + 1), Steps: int32(i + 1),
			Payload: fmt.Appendf(nil, "hf1 json int@1 - - dbea4e35\n%d", i),
		})
	}
	var sum uint32
	for i := range events {
		e := &events[i]
		e.Seq, e.Epoch, e.At = int64(i)+1, 1, store.Time(1_800_000_000_000_000+i)
		e.Sum = store.Seal("bench", sum, e)
		sum = e.Sum
	}
	return events
}

func BenchmarkRead(b *testing.B) {
	const steps = 5000
	events := longLog(steps)
	b.ReportAllocs()
	for b.Loop() {
		_, err := history.PastOf("bench", events)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/event")
}
