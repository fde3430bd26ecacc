package conformance_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The test of a backend of one's own. It is called TestConformance in its
// package; here it stands as an example, so that it is compiled.
func ExampleRun() {
	_ = func(t *testing.T) {
		conformance.Run(t, conformance.Harness{
			New: func(t testing.TB) conformance.Data {
				data := memory.Open() // a database of its own for each case
				return conformance.Data{
					// Each call is another handle, as of another process.
					Open: func() (store.Store, error) { return data.Handle(), nil },
				}
			},
			Has: []conformance.Capability{conformance.Notifier, conformance.Meter, conformance.Clocked, conformance.Schedules, conformance.Queues, conformance.Loader},
		})
	}
}
