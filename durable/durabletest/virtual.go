package durabletest

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// VirtualTime calls f in a bubble (testing/synctest) with an engine on a memory store, on which
// Recover was called. Time passes whenever all goroutines wait: a year of sleeps, timeouts and
// pauses between attempts takes about a second. Everything that f and the workflows use must be
// made within f, and must end with it; the engine is closed after f.
//
// The engine has these options, but for Lease and Grace: with a lease of seconds, an engine's
// heartbeats would fill the year. Without a Logger nothing is logged.
func VirtualTime(t *testing.T, o durable.Options, f func(t *testing.T, eng *durable.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		o.Lease, o.Grace = longLease, -1
		if o.Logger == nil {
			o.Logger = slog.New(slog.DiscardHandler)
		}
		eng, err := durable.Open(t.Context(), memory.Open(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := eng.Close(); err != nil {
				t.Error(err)
			}
		}()
		if _, err := eng.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		f(t, eng)
	})
}
