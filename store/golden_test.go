package store_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

var updateGolden = flag.Bool("update-golden", false, "add what is missing to the golden files; what they hold is never changed")

// A goldenEvent is an event as some version has recorded it.
type goldenEvent struct {
	Run    string      `json:"run"`
	Before uint32      `json:"before"` // sum of the event before it
	Event  store.Event `json:"event"`
}

const goldenEvents = "testdata/v1/events.jsonl"

// Events of every type, as they were sealed once, bear the same sum for ever:
// another one would make every history that was recorded a damaged one.
func TestEventsOfEarlierVersionsAreSound(t *testing.T) {
	covered := map[store.Type]bool{}
	b, err := os.ReadFile(goldenEvents)
	if !*updateGolden {
		require.NoError(t, err)
	}
	for line := range bytes.Lines(b) {
		var g goldenEvent
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields() // a column that was renamed would be empty
		require.NoError(t, d.Decode(&g))
		require.Equal(t, g.Event.Sum, store.Seal(g.Run, g.Before, &g.Event), "%s", line)
		require.True(t, g.Event.Type.Known(), g.Event.Type)
		covered[g.Event.Type] = true
	}
	for i, typ := range store.Types() {
		if covered[typ] {
			continue
		}
		require.True(t, *updateGolden, "%s is in no golden file: go test ./store -run %s -update-golden", typ, t.Name())
		g := goldenEvent{Run: "order-42 ü", Before: uint32(i) * 0x01010101, Event: store.Event{
			Seq: int64(i + 1), Epoch: 7, Branch: 3, Type: typ, Key: "items[17]/resize#2", Attempt: 2, Ordinal: 5,
			At: 1_700_000_000_123_456, Took: 1500 * time.Microsecond, Active: time.Hour, Steps: 41,
			Data: []byte(`{"reason":"because"}`), Payload: []byte("hf1 json int@1 - - 7e24bc01\n7"),
		}}
		g.Event.Sum = store.Seal(g.Run, g.Before, &g.Event)
		line, err := json.Marshal(g)
		require.NoError(t, err)
		b = append(append(b, line...), '\n')
	}
	if *updateGolden {
		require.NoError(t, os.MkdirAll("testdata/v1", 0o755))
		require.NoError(t, os.WriteFile(goldenEvents, b, 0o644))
	}
}
