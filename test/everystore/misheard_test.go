package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// misheard is what the store answers to one write of an act, besides the truth.
var misheard = []struct {
	name    string
	happens bool // the write is carried out, the first time
	refused int  // further tries at it that are answered "connection refused"
}{
	{"lost after it happened", true, 0},
	{"lost before it happened", false, 0},
	{"lost after it happened, and then refused", true, 3},
	{"lost before it happened, and then refused", false, 3},
}

// hardOfHearing is a process's way to the data on which the answer to one write is wrong.
type hardOfHearing struct {
	*memory.Store

	mu     sync.Mutex
	writes int
	at     int // the write, from 1; 0: none
	how    int
	met    bool
	which  string // the write, among its repetitions
	left   int
}

var errRefused = errors.New("connection refused")

// hear carries a write out as it is to be answered.
func (h *hardOfHearing) hear(which string, do func()) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes++
	switch {
	case h.writes == h.at:
		h.met, h.which, h.left = true, which, misheard[h.how].refused
		if misheard[h.how].happens {
			do()
		}
		return fmt.Errorf("the reply was lost: %w", store.ErrUnknown)
	case h.left > 0 && which == h.which:
		h.left--
		return errRefused
	}
	do()
	return nil
}

func (h *hardOfHearing) Commit(ctx context.Context, batch []store.Change) (errs []error) {
	which := fmt.Sprint(batch[0].RunID, len(batch[0].Events), len(batch[0].Send))
	if err := h.hear(which, func() { errs = h.Store.Commit(ctx, batch) }); err != nil {
		errs = make([]error, len(batch))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (h *hardOfHearing) Delete(ctx context.Context, d store.Deletion) (n int, err error) {
	if lost := h.hear(fmt.Sprint("delete ", d.RunIDs), func() { n, err = h.Store.Delete(ctx, d) }); lost != nil {
		return 0, lost
	}
	return n, err
}

// tryMisheard does an act of whose writes one is answered wrongly, and then again. It
// reports whether there was such a write.
func (act *wholeAct) tryMisheard(t *testing.T, at, how int, want map[string]string) bool {
	w := newActWorld(t, act)
	w.prepare()
	h := &hardOfHearing{Store: w.data.Handle()}
	w.boot(crashstore.Notifier{Store: crashstore.New(h)})
	defer func() { _ = w.Close() }()
	h.mu.Lock()
	h.at, h.how = h.writes+at, how
	h.mu.Unlock()
	first := act.do(w)
	w.settle()
	h.mu.Lock()
	met := h.met
	h.left = 0
	h.mu.Unlock()
	if !met {
		return false
	}
	when := fmt.Sprintf("write %d %s, the act said %v", at, misheard[how].name, first)
	w.check(when)
	again := act.do(w)
	w.settle()
	w.check(when + ", and it was done again")
	require.Equal(t, lines(want), lines(w.face()), "%s: the second call led elsewhere; it returned %v", when, again)
	return true
}

// Every act of wholeActs, with a wrong answer to each of its writes in turn: to those that
// change a row alone, as to those that append.
func TestAnActWhoseWriteIsMisheardIsWholeWhenItIsCalledAgain(t *testing.T) {
	trials := 0
	for i := range wholeActs {
		act := &wholeActs[i]
		t.Run(act.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, want := act.trial(t, 0, false, false, nil)
				for at, more := 1, true; more; at++ {
					require.Less(t, at, 60)
					for how := range misheard {
						if more = act.tryMisheard(t, at, how, want); !more {
							break
						}
						trials++
					}
				}
			})
		})
	}
	t.Logf("%d acts, %d wrong answers", len(wholeActs), trials)
}
