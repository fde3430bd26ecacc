package waiting_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/waiting"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// shelf is a store that counts what is asked of it.
type shelf struct {
	*memory.Store
	mu    sync.Mutex
	loads int
	lists int
	hold  chan struct{} // a load waits for it before it returns; nil: it does not
	fail  error
}

func (s *shelf) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	s.mu.Lock()
	s.loads++
	hold, fail := s.hold, s.fail
	s.mu.Unlock()
	h, err := s.Store.Load(ctx, id, c)
	if hold != nil {
		<-hold
	}
	return h, errors.Join(err, fail)
}

func (s *shelf) List(ctx context.Context, f store.Filter) (store.Page, error) {
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	return s.Store.List(ctx, f)
}

// asked returns how many loads and lists there were since the last call.
func (s *shelf) asked() (loads, lists int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	loads, lists = s.loads, s.lists
	s.loads, s.lists = 0, 0
	return loads, lists
}

// put creates a run, or ends it.
func (s *shelf) put(t *testing.T, id string, status store.Status) {
	t.Helper()
	if _, err := s.Store.Load(t.Context(), id, store.Cursor{NoEvents: true}); err == nil {
		h, err := s.Store.Load(t.Context(), id, store.Cursor{NoEvents: true})
		require.NoError(t, err)
		e := store.Event{Seq: h.Run.Last.Seq + 1, Type: store.WorkflowCompleted, Payload: []byte(id)}
		e.Sum = store.Seal(id, h.Run.Last.Sum, &e)
		require.NoError(t, errors.Join(s.Commit(t.Context(), []store.Change{{
			RunID: id, Expect: store.Expect{Epoch: h.Run.Epoch}, Yield: true, Events: []store.Event{e}, Row: &store.RowPatch{Status: &status},
		}})...))
		return
	}
	e := store.Event{Seq: 1, Type: store.WorkflowCreated}
	e.Sum = store.Seal(id, 0, &e)
	row := &store.Run{ID: id, Workflow: "w", Status: status, Owner: "elsewhere", Epoch: 1, CreatedAt: 1}
	require.NoError(t, errors.Join(s.Commit(t.Context(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}}})...))
}

// inBubble runs a test with a virtual clock, and a Set whose goroutine has ended when it is over.
func inBubble(t *testing.T, test func(t *testing.T, s *shelf, set *waiting.Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{Store: memory.Open()}
		var all sync.WaitGroup
		set := waiting.New(waiting.Options{
			Store: plain{s}, Go: all.Go,
			Here: func(id string) bool { return id == "here" },
			Near: func(id string) bool { return id == "near" },
			Judge: func(row *store.Run, _ func() ([]store.Executor, error)) (v waiting.Verdict, told bool) {
				if row.Status.Terminal() {
					v.End = *row.Last
				}
				return v, row.Status.Terminal()
			},
			First: 50 * time.Millisecond, Last: 2 * time.Second, NearLast: time.Minute,
		})
		test(t, s, set)
		set.Stop()
		all.Wait()
	})
}

// plain has none of the optional abilities, so that loads are counted one by one.
type plain struct{ store.Store }

func told(t *testing.T, w *waiting.Waiter) *waiting.Verdict {
	t.Helper()
	synctest.Wait()
	select {
	case v := <-w.C:
		return &v
	default:
		return nil
	}
}

func TestAllWaitersOfARunShareItsLooks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, set *waiting.Set) {
		s.put(t, "r", store.Running)
		s.hold = make(chan struct{})
		waiters := make([]*waiting.Waiter, 1000)
		for i := range waiters {
			waiters[i] = set.Join("r")
			defer waiters[i].Leave()
		}
		synctest.Wait()
		close(s.hold)
		synctest.Wait()
		loads, _ := s.asked()
		require.LessOrEqual(t, loads, 2, "one for the first, and one for all who came while it was under way")
		time.Sleep(time.Minute)
		loads, lists := s.asked()
		require.LessOrEqual(t, loads+lists, 40, "one every two seconds, more often in the first ones")
		s.put(t, "r", store.Completed)
		set.Changed([]string{"r"})
		for _, w := range waiters {
			require.Equal(t, "r", string(told(t, w).End.Payload))
		}
		loads, lists = s.asked()
		require.Equal(t, 1, loads+lists)
	})
}

func TestRunsWhoseTimeHasComeShareALook(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, set *waiting.Set) {
		waiters := make([]*waiting.Waiter, 400)
		for i := range waiters {
			id := fmt.Sprint(i)
			s.put(t, id, store.Running)
			time.Sleep(3 * time.Millisecond) // none is due when another is
			waiters[i] = set.Join(id)
			defer waiters[i].Leave()
		}
		time.Sleep(10 * time.Second)
		s.asked()
		time.Sleep(time.Minute)
		loads, lists := s.asked()
		require.LessOrEqual(t, lists, 60)
		require.LessOrEqual(t, loads, 3*len(waiters), "each sometimes, since it may have been deleted")
		s.put(t, "7", store.Completed)
		time.Sleep(2 * time.Second) // without a notice
		require.Equal(t, "7", string(told(t, waiters[7]).End.Payload))
		require.Nil(t, told(t, waiters[8]))
	})
}

// A waiter may come because it knows more than an older look can have seen.
func TestAWaiterIsToldWhatWasLookedUpAfterItCame(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, set *waiting.Set) {
		s.put(t, "r", store.Running)
		s.put(t, "r", store.Completed)
		s.hold = make(chan struct{})
		first := set.Join("r")
		defer first.Leave()
		synctest.Wait() // it has been read, and nobody is told yet
		_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}})
		require.NoError(t, err)
		second := set.Join("r")
		defer second.Leave()
		s.hold <- struct{}{}
		require.Equal(t, "r", string(told(t, first).End.Payload))
		require.Nil(t, told(t, second))
		s.hold <- struct{}{}
		require.ErrorIs(t, told(t, second).Unread, store.ErrNotFound)
	})
}

func TestWaitersHearOfRunsThatComeHereAreDeletedOrCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, set *waiting.Set) {
		here, none := set.Join("here"), set.Join("none")
		defer here.Leave()
		defer none.Leave()
		require.True(t, told(t, here).Here)
		require.ErrorIs(t, told(t, none).Unread, store.ErrNotFound)

		s.put(t, "r", store.Running)
		w := set.Join("r")
		defer w.Leave()
		time.Sleep(time.Second)
		s.put(t, "r", store.Completed)
		_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		v := told(t, w)
		require.NotNil(t, v, "a deletion is noticed without a notice")
		require.ErrorIs(t, v.Unread, store.ErrNotFound)

		s.put(t, "damaged", store.Running)
		s.fail = errors.New("on fire")
		w = set.Join("damaged")
		defer w.Leave()
		require.ErrorIs(t, told(t, w).Unread, s.fail)
	})
}

func TestWhatIsNearIsLookedAtSeldom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, set *waiting.Set) {
		s.put(t, "near", store.Waiting)
		w := set.Join("near")
		defer w.Leave()
		synctest.Wait()
		s.asked()
		time.Sleep(10 * time.Minute)
		loads, lists := s.asked()
		require.LessOrEqual(t, loads+lists, 21)
		require.NotZero(t, loads+lists)
	})
}

func TestNothingIsLookedAtForThoseWhoHaveLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, set *waiting.Set) {
		s.put(t, "r", store.Running)
		one, other := set.Join("r"), set.Join("r")
		one.Leave()
		time.Sleep(time.Second)
		other.Leave()
		other.Leave()
		synctest.Wait()
		s.asked()
		time.Sleep(time.Minute)
		set.Changed(nil)
		synctest.Wait()
		loads, lists := s.asked()
		require.Zero(t, loads+lists)
		again := set.Join("r")
		defer again.Leave()
		synctest.Wait()
		loads, _ = s.asked()
		require.Equal(t, 1, loads)
	})
}
