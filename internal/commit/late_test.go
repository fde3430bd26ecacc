package commit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/commit"
)

func TestWhatComesWhileTheStoreWaitsForOtherWritersGoesWithTheBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		o := newOffice(&late{logs: s, wait: func() { time.Sleep(50 * time.Millisecond) }})
		defer o.end()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				require.NoError(t, o.Commit(t.Context(), o.run(fmt.Sprint(i)), write("a", small)))
			})
		}
		all.Wait()
		require.Len(t, s.batches, 1)
		require.Len(t, s.batches[0], 10)
	})
}

// The engine gives up while the store waits: everybody has an answer, and nothing is written
// afterwards.
func TestNothingIsFormedOnceTheEngineHasGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		wait := make(chan struct{})
		o := newOffice(&late{logs: s, wait: func() { <-wait }})
		leads, follows := o.run("leads"), o.run("follows")
		var all sync.WaitGroup
		all.Go(func() { require.Error(t, o.Commit(t.Context(), leads, write("a", small))) })
		synctest.Wait()
		err := make(chan error)
		go func() { err <- o.Commit(context.Background(), follows, write("a", small)) }()
		synctest.Wait()
		o.stop(errors.New("over"))
		o.Abandon()
		require.ErrorIs(t, <-err, commit.ErrUnavailable, "it does not wait for the store")
		close(wait)
		all.Wait()
		o.Wait()
		require.Empty(t, s.batches)
	})
}
