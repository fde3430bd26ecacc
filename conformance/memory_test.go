package conformance_test

import (
	"flag"
	"strings"
	"sync"
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
		Has: []conformance.Capability{conformance.Notifier, conformance.Meter, conformance.Clocked, conformance.Schedules, conformance.Queues, conformance.Loader},
	}
}

func TestMemory(t *testing.T) {
	r := conformance.Run(t, inMemory())
	require.Len(t, r.Present, 6)
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

// The report counts the same cases, whether or not they overlap.
func TestCasesMayRunSideBySide(t *testing.T) {
	sideBySide := flag.Lookup("test.parallel").Value.(flag.Getter).Get().(int) > 1
	h := inMemory()
	make, first, met := h.New, "", false
	var mu sync.Mutex
	second := sync.NewCond(&mu)
	// The first case that makes data waits for another one to do so.
	h.New = func(t testing.TB) conformance.Data {
		if strings.Count(t.Name(), "/") == 2 {
			mu.Lock()
			switch first {
			case t.Name():
			case "":
				first = t.Name()
				for sideBySide && !met {
					second.Wait()
				}
			default:
				met = true
				second.Broadcast()
			}
			mu.Unlock()
		}
		return make(t)
	}
	h.Parallel = true
	r := conformance.Run(t, h)
	checked := 0
	for _, s := range r.Sections {
		checked += s.Passed + s.NotChecked
		require.Zero(t, s.Failed+s.NotRun, s.Name)
	}
	require.Len(t, conformance.Cases(), checked)
}
