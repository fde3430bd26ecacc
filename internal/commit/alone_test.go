package commit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// Runs that have shared a commit come back one by one. The first of them must wait for the
// others, although nothing else is there when it comes.
func TestRunsThatShareACommitShareTheNextOne(t *testing.T) {
	const runs, writes = 64, 50
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		s.answer = func([]store.Change) (bool, error) { time.Sleep(time.Millisecond); return true, nil }
		o := newOffice(s)
		defer o.end()
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() {
				run := o.run(fmt.Sprint("run-", i))
				for n := range writes {
					require.NoError(t, o.Commit(context.Background(), run, write(fmt.Sprint(n), small)))
				}
			})
		}
		all.Wait()
		alone := 0
		for _, ids := range s.batches {
			if len(ids) == 1 {
				alone++
			}
		}
		require.Less(t, alone, writes/2, "of %d commits", len(s.batches)) // one for each round, if nobody waits
	})
}
