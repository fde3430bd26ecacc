package commit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/store"
)

// A script is what one goroutine of a run writes, one after the other.
type script struct {
	run   int
	steps []act
}

// act is one write, or a Hold.
type act struct {
	pause    time.Duration // before it
	bytes    int
	bad      bool // the store refuses it
	alone    bool
	failFast bool
	patience time.Duration // of a write that fails fast
	hold     int           // 1: held and released; 2: with a write of its own
}

// mood is how the store takes a batch.
type mood struct {
	takes   time.Duration
	carried bool
	err     error
}

var errDown = errors.New("the store is down")

var (
	scripts = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) script {
		return script{rapid.IntRange(0, 24).Draw(t, "run"), rapid.SliceOfN(acts, 1, 6).Draw(t, "steps")}
	}), 1, 60)
	acts = rapid.Custom(func(t *rapid.T) act {
		one := func(of int, what string) bool { return rapid.IntRange(1, of).Draw(t, what) == 1 }
		a := act{
			pause: rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 3 * time.Millisecond}).Draw(t, "pause"),
			bytes: rapid.SampledFrom([]int{small, small, small, 70 << 10, large, 400 << 10}).Draw(t, "bytes"),
			bad:   one(20, "bad"), alone: one(10, "alone"),
		}
		if a.failFast = one(8, "fails fast"); a.failFast {
			a.patience = rapid.SampledFrom([]time.Duration{0, time.Millisecond, 5 * time.Second}).Draw(t, "patience")
		}
		if one(10, "hold") {
			a.hold, a.bad = rapid.IntRange(1, 2).Draw(t, "kind of hold"), false
		}
		return a
	})
	moods = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) mood {
		switch takes := time.Duration(rapid.IntRange(0, 3).Draw(t, "takes")) * time.Millisecond; rapid.IntRange(0, 30).Draw(t, "mood") {
		case 1:
			return mood{takes, false, errDown}
		case 2:
			return mood{takes, false, store.ErrUnknown}
		case 3:
			return mood{takes, true, store.ErrUnknown}
		case 4:
			return mood{3500 * time.Millisecond, true, nil}
		default:
			return mood{takes, true, nil}
		}
	}), 1, 50)
)

// lateWaits is how long the store waits, again and again, before it has a batch formed; none: it is
// given its batches.
var lateWaits = rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 3 * time.Millisecond, 1500 * time.Millisecond}), 0, 5)

// TestEveryWriteIsCommittedOnceAndInOrder: what was acknowledged is in the log, once, in the order in
// which each goroutine wrote it; what was refused is not; the one that is refused takes nothing else
// with it; a run has one change in flight; and everybody gets an answer, also at the end.
func TestEveryWriteIsCommittedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		all := scripts.Draw(rt, "scripts")
		answers := moods.Draw(rt, "moods")
		parallel := rapid.IntRange(1, 4).Draw(rt, "parallel")
		waits := lateWaits.Draw(rt, "waits")
		var over time.Duration
		if rapid.IntRange(1, 4).Draw(rt, "ends early") == 1 {
			over = time.Duration(rapid.IntRange(1, 20).Draw(rt, "when")) * time.Millisecond
		}
		// In a bubble of its own: a hang is a deadlock there, which ends the test.
		synctest.Test(t, func(t *testing.T) { commitAll(t, all, answers, parallel, waits, over) })
	})
}

// said is the answer to a write.
type said struct {
	script   int
	key      string
	act      act
	err      error
	admitted bool
}

func commitAll(t *testing.T, all []script, answers []mood, parallel int, waits []time.Duration, over time.Duration) {
	s := newLogs(parallel)
	var mu sync.Mutex
	n := 0
	s.answer = func([]store.Change) (bool, error) {
		mu.Lock()
		a := mood{carried: true}
		if n < len(answers) {
			a = answers[n]
		}
		n++
		mu.Unlock()
		time.Sleep(a.takes)
		return a.carried, a.err
	}
	var st store.Store = s
	if len(waits) > 0 {
		i := 0
		st = &late{logs: s, wait: func() {
			mu.Lock()
			d := waits[i%len(waits)]
			i++
			mu.Unlock()
			time.Sleep(d)
		}}
	}
	o := newOffice(st)
	runs := map[int]*commit.Log{}
	for _, one := range all {
		if runs[one.run] == nil {
			runs[one.run] = o.run(fmt.Sprint(one.run))
		}
	}
	var heard []said
	var writers sync.WaitGroup
	for i, one := range all {
		writers.Go(func() {
			for j, a := range one.steps {
				time.Sleep(a.pause)
				w := write(fmt.Sprintf("%d/%d", i, j), a.bytes)
				w.Alone, w.FailFast = a.alone, a.failFast
				if a.bad {
					w.Events[0].Type = bad
				}
				err := a.carryOut(o, s, runs[one.run], w)
				mu.Lock()
				heard = append(heard, said{i, w.Events[0].Key, a, err, w.Admitted()})
				mu.Unlock()
			}
		})
	}
	if over != 0 {
		time.Sleep(over)
		o.stop(errors.New("over"))
		o.Abandon()
	}
	writers.Wait()
	time.Sleep(time.Minute) // what nobody waits for is committed, too
	o.end()

	require.NoError(t, s.broken)
	for i, one := range all {
		keys := s.keys(fmt.Sprint(one.run))
		var order []string
		for _, h := range heard {
			if h.script != i {
				continue
			}
			count := 0
			for _, k := range keys {
				if k == h.key {
					count++
				}
			}
			switch {
			case h.err == nil && h.act.hold == 1:
				require.Zero(t, count, "%s: nothing was to be written", h.key)
			case h.err == nil:
				require.Equal(t, 1, count, "%s was acknowledged", h.key)
				require.False(t, h.act.bad)
				order = append(order, h.key)
			case h.act.bad && errors.Is(h.err, errRefused):
				require.Zero(t, count, "%s was refused", h.key)
			default:
				require.LessOrEqual(t, count, 1, "%s: %v", h.key, h.err)
				require.True(t, over != 0 || h.act.failFast || h.act.hold != 0, "%s: nothing is wrong with it: %v", h.key, h.err)
				if !errors.Is(h.err, store.ErrUnknown) && !h.act.failFast {
					require.Zero(t, count, "%s: %v", h.key, h.err)
				}
			}
		}
		keys = slices.DeleteFunc(keys, func(k string) bool { return !slices.Contains(order, k) })
		require.True(t, slices.Equal(order, keys), "%v were acknowledged in this order, and the log has %v", order, keys)
	}
}

// carryOut makes one write, by itself or in a Hold.
func (a act) carryOut(o *office, s *logs, run *commit.Log, w *commit.Write) error {
	ctx := context.Background()
	if a.hold != 0 {
		h, err := o.Hold(ctx, run)
		if err != nil {
			return err
		}
		time.Sleep(a.pause)
		if a.hold == 1 {
			h.Release()
			return nil
		}
		return h.Commit(w, store.Event{Type: store.StepStarted}, func(c store.Change) error {
			return s.Commit(ctx, []store.Change{c})[0]
		})
	}
	if a.failFast {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.patience)
		defer cancel()
	}
	return o.Commit(ctx, run, w)
}
