package conformance_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// inMemory is the harness of the memory store, with a clock that is moved.
func inMemory() conformance.Harness {
	return conformance.Harness{
		New: func(testing.TB) conformance.Data {
			var skew atomic.Int64
			s := memory.OpenAt(func() time.Time { return time.Now().Add(time.Duration(skew.Load())) })
			return conformance.Data{
				Open:    func() (store.Store, error) { return s.Handle(), nil },
				Advance: func(d time.Duration) { skew.Add(int64(d)) },
			}
		},
		Has: []conformance.Capability{conformance.Notifier, conformance.Meter, conformance.Clocked, conformance.Schedules, conformance.Queues},
	}
}

func TestMemory(t *testing.T) {
	r := conformance.Run(t, inMemory())
	require.Len(t, r.Present, 5)
	require.Len(t, r.Absent, 6)
}

// The suite also runs where time cannot be moved.
func TestMemoryInRealTime(t *testing.T) {
	h := inMemory()
	make := h.New
	h.New = func(t testing.TB) conformance.Data {
		d := make(t)
		d.Advance = nil
		return d
	}
	for _, c := range conformance.Cases() {
		if c.Section == "claim" || c.Section == "executor" || c.Section == "queue" && c.Missing(t, h) == "" {
			t.Run(c.Title(), func(t *testing.T) { c.Check(t, h) })
		}
	}
}
