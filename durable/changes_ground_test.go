package durable_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A ground is what the processes of a trial stand on: data that outlives them,
// and the time in which they live.
type ground struct {
	// look is the way of one who looks at the data from outside.
	look store.Store
	// enter opens the data for one process; leave is called when it is over.
	enter func(t require.TestingT) (st store.Store, leave func())
	// bury makes a process that was killed count as gone.
	bury func(t require.TestingT)
	// lease of a process; 0: the default. patience is how long a run may take to come to something.
	lease, patience time.Duration
	// close ends a trial, whatever it has left on the ground.
	close func(t require.TestingT)
}

// expired lets the lease of a process run out, where time costs nothing.
func expired(require.TestingT) { time.Sleep(2 * durable.DefaultLease) }

// onMemory is the ground of data in memory, in a bubble of virtual time.
func onMemory(data *memory.Store) *ground {
	return &ground{
		look:     data,
		enter:    func(require.TestingT) (store.Store, func()) { return data.Handle(), func() {} },
		bury:     expired,
		patience: 30 * 24 * time.Hour,
		close:    func(t require.TestingT) { require.NoError(t, data.Close()) },
	}
}
