package heart_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/heart"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// beaten is a store that may do something else with a beat.
type beaten struct {
	store.Store
	does atomic.Pointer[beating] // the loop is woken by its timer, which orders nothing
}

type beating func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error)

func (b *beaten) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	if does := b.does.Load(); does != nil {
		return (*does)(b.Store, ctx, e)
	}
	return b.Store.Beat(ctx, e)
}

// A machine that was stopped does not know it: its clocks stood still, too. The store's went on, and others have
// taken the runs.
func TestAnExecutorWhoseMachineWasStoppedLooksAfterItsRuns(t *testing.T) {
	const lease = 30 * time.Second
	for name, c := range map[string]struct {
		stopped time.Duration
		beat    beating
		late    int64
	}{
		"the store says so": {48 * time.Hour, store.Store.Beat, 1},
		"the answer to the first beat was lost, and the store sent it again": {time.Minute, func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
			if _, err := next.Beat(ctx, e); err != nil {
				return store.Pulse{}, err
			}
			return next.Beat(ctx, e)
		}, 1},
		"the store has forgotten it": {48 * time.Hour, func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
			gone := e
			gone.Leaving = true
			if _, err := next.Beat(ctx, gone); err != nil {
				return store.Pulse{}, err
			}
			return next.Beat(ctx, e)
		}, 1},
		"it was not stopped for as long as a lease": {lease - 11*time.Second, store.Store.Beat, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ahead atomic.Int64 // how long the machine was stopped
				b := &beaten{
					Store: memory.OpenAt(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }),
				}
				var late, gaps atomic.Int64
				h := heart.New(heart.Options{
					Store: b, Log: slog.New(slog.DiscardHandler), Executor: store.Executor{ID: "e", Lease: lease},
					Late: func(context.Context) { late.Add(1) },
					Gap:  func(context.Context) error { gaps.Add(1); return nil },
					Tend: func(*store.Pulse) {},
				})
				ctx, cancel := context.WithCancel(t.Context())
				require.NoError(t, h.Register(ctx))
				h.Begin()
				defer h.Lease.Stop()
				go h.Loop(ctx)
				go h.TendLoop(ctx)
				time.Sleep(5*lease + time.Second) // between two beats
				synctest.Wait()
				require.Zero(t, late.Load())
				ahead.Store(int64(c.stopped))
				b.does.Store(&c.beat)
				time.Sleep(lease / 3)
				synctest.Wait()
				b.does.Store(nil)
				time.Sleep(5 * lease)
				cancel()
				synctest.Wait()
				require.Equal(t, c.late, late.Load())
				require.Equal(t, c.late, gaps.Load(), "whether its runs are still its own is looked at before the lease is renewed")
			})
		})
	}
}

// What a program wrote to the store waits without a word, and a beat may be the only one that can say why.
func TestABeatThatIsNotAnsweredIsLogged(t *testing.T) {
	for _, one := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b, lines := &beaten{Store: memory.Open()}, &strings.Builder{}
			h := heart.New(heart.Options{
				Store: b, Log: slog.New(slog.NewTextHandler(lines, nil)), Executor: store.Executor{ID: "e", Lease: 30 * time.Second},
				Late: func(context.Context) {}, Gap: func(context.Context) error { return nil }, Tend: func(*store.Pulse) {}, OneWriter: one,
			})
			ctx, cancel := context.WithCancel(t.Context())
			require.NoError(t, h.Register(ctx))
			over := make(chan struct{})
			go func() { h.Loop(ctx); close(over) }()
			b.does.Store(new(beating(func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
				time.Sleep(4 * time.Second)
				return next.Beat(ctx, e)
			})))
			time.Sleep(15 * time.Second)
			b.does.Store(new(beating(func(_ store.Store, ctx context.Context, _ store.Executor) (store.Pulse, error) {
				<-ctx.Done()
				return store.Pulse{}, ctx.Err()
			})))
			time.Sleep(time.Minute)
			cancel()
			<-over
			require.Equal(t, 1, strings.Count(lines.String(), "durable: the store does not answer a beat"), "of four seconds nothing is said")
			require.Equal(t, one, strings.Contains(lines.String(), "durable.InTx(tx)"))
		})
	}
}

// A machine that was suspended knows it by its wall clock alone. If that was set meanwhile, neither clock says for how
// long the store has taken no beat: no body begins before it has taken one again.
func TestOnceTheClocksHaveGoneApartTheLeaseHoldsAfterTheNextBeatOnly(t *testing.T) {
	const lease = 30 * time.Second
	for name, c := range map[string]struct {
		suspended, set time.Duration
		holds          bool
	}{
		"suspended for longer than a lease, and set back": {40 * time.Second, -2 * time.Hour, false},
		"suspended for longer than a lease":               {40 * time.Second, 0, false},
		"and set back by half of it":                      {40 * time.Second, -20 * time.Second, false},
		"set back by a second":                            {0, -time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var suspended, set atomic.Int64
				skew := func(time.Time) (monotonic, wall time.Duration) {
					return 0, time.Duration(suspended.Load() + set.Load())
				}
				h := heart.New(heart.Options{
					Store:    memory.OpenAt(func() time.Time { return time.Now().Add(time.Duration(suspended.Load())) }),
					Log:      slog.New(slog.DiscardHandler),
					Executor: store.Executor{ID: "e", Lease: lease},
					Late:     func(context.Context) {},
					Gap:      func(context.Context) error { return nil },
					Tend:     func(*store.Pulse) {},
				})
				ctx, cancel := context.WithCancel(storeclock.WithSkew(t.Context(), skew))
				require.NoError(t, h.Register(ctx))
				h.Begin()
				defer h.Lease.Stop()
				go h.Loop(ctx)
				go h.TendLoop(ctx)
				time.Sleep(time.Second)
				require.True(t, h.Lease.Holds(time.Now()))
				suspended.Store(int64(c.suspended))
				set.Store(int64(c.set))
				require.Equal(t, c.holds, h.Lease.Holds(time.Now()))
				require.True(t, h.AwaitLease(nil, nil), "a beat is enough")
				require.True(t, h.Lease.Holds(time.Now()))
				cancel()
				synctest.Wait()
			})
		})
	}
}

// beatingByASettableClock returns a heart whose lease has begun and that calls look in place of a look at the runs, the
// context for its loops, and what sets its wall clock.
func beatingByASettableClock(t *testing.T, ctx context.Context, lease time.Duration, look func()) (*heart.Heart, context.Context, func(ahead time.Duration)) {
	var set atomic.Int64
	h := heart.New(heart.Options{
		Store: memory.Open(), Log: slog.New(slog.DiscardHandler), Executor: store.Executor{ID: "e", Lease: lease},
		Late: func(context.Context) {},
		Gap:  func(context.Context) error { look(); return nil },
		Tend: func(*store.Pulse) {},
	})
	ctx = storeclock.WithSkew(ctx, func(time.Time) (monotonic, wall time.Duration) { return 0, time.Duration(set.Load()) })
	require.NoError(t, h.Register(ctx))
	h.Begin()
	return h, ctx, func(ahead time.Duration) { set.Store(int64(ahead)) }
}

// setForthAndBack sets the wall clock forward by two leases and back, and has the lease looked at each time.
func setForthAndBack(t *testing.T, h *heart.Heart, set func(time.Duration), lease time.Duration) {
	for _, ahead := range []time.Duration{2 * lease, 0} {
		set(ahead)
		require.False(t, h.Lease.Holds(time.Now()))
	}
}

// A wall clock that is set forward and back has looked, in between, as if the lease had run out: to others too, who may
// have taken runs. No body begins before the runs were looked at.
func TestALeaseThatDidNotHoldOnceHoldsOnlyAfterALookAtTheRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		var gaps atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		h, ctx, set := beatingByASettableClock(t, ctx, lease, func() { gaps.Add(1) })
		defer h.Lease.Stop()
		time.Sleep(time.Second)
		setForthAndBack(t, h, set, lease)
		go h.Loop(ctx)
		go h.TendLoop(ctx)
		require.True(t, h.AwaitLease(nil, nil))
		require.EqualValues(t, 1, gaps.Load())
		require.True(t, h.Lease.Holds(time.Now()))
		require.False(t, h.Lease.Term().Over(), "bodies under way are left alone")
		cancel()
		synctest.Wait()
	})
}

// slowLines is a log handler that takes ten seconds for a line.
type slowLines struct {
	slog.Handler
	begun, written atomic.Int64
}

func (s *slowLines) Enabled(context.Context, slog.Level) bool { return true }

func (s *slowLines) Handle(context.Context, slog.Record) error {
	s.begun.Add(1)
	time.Sleep(10 * time.Second)
	s.written.Add(1)
	return nil
}

// After Close a program may close what its log goes to.
func TestNothingIsLoggedOnceTheHeartHasStopped(t *testing.T) {
	for name, c := range map[string]struct {
		beat time.Duration // how long the store takes for it, whatever becomes of its context
		stop time.Duration // from when the beat was sent
		line bool
	}{
		"the store does not answer":           {time.Minute, time.Second, false},
		"a line about the beat is under way":  {6 * time.Second, 7 * time.Second, true},
		"a line about the lease is under way": {2 * time.Minute, 28 * time.Second, true}, // the lease was renewed just before
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, lines := &beaten{Store: memory.Open()}, &slowLines{}
				h := heart.New(heart.Options{
					Store: b, Log: slog.New(lines), Executor: store.Executor{ID: "e", Lease: 30 * time.Second},
					Late: func(context.Context) {}, Gap: func(context.Context) error { return nil }, Tend: func(*store.Pulse) {},
				})
				ctx, cancel := context.WithCancel(t.Context())
				require.NoError(t, h.Register(ctx))
				h.Begin()
				b.does.Store(new(beating(func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
					time.Sleep(c.beat)
					return next.Beat(ctx, e)
				})))
				h.BeatSoon()
				over := make(chan struct{})
				go func() { h.Loop(ctx); close(over) }()
				time.Sleep(c.stop)
				cancel()
				if c.beat < c.stop {
					<-over // as Close waits for it, for as long as it has patience
				}
				h.Lease.Stop()
				begun := lines.begun.Load()
				require.Equal(t, c.line, begun > 0)
				require.Equal(t, begun, lines.written.Load())
				time.Sleep(10 * time.Minute)
				require.Equal(t, begun, lines.begun.Load())
			})
		})
	}
}

// A look at the runs that began before the lease was found not to hold says nothing of what happened after it.
func TestALookAtTheRunsCountsForWhatWasBeforeItOnly(t *testing.T) {
	for _, meanwhile := range []string{"nothing", "the clock is set", "the store does not know it"} {
		synctest.Test(t, func(t *testing.T) {
			const lease = 30 * time.Second
			var gaps atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			h, ctx, set := beatingByASettableClock(t, ctx, lease, func() {
				gaps.Add(1)
				time.Sleep(time.Second)
			})
			defer h.Lease.Stop()
			go h.Loop(ctx)
			go h.TendLoop(ctx)
			time.Sleep(time.Second)
			setForthAndBack(t, h, set, lease)
			held := make(chan struct{})
			go func() { h.AwaitLease(nil, nil); close(held) }()
			time.Sleep(time.Second / 2)
			synctest.Wait()
			require.EqualValues(t, 1, gaps.Load(), "the look has begun")
			switch meanwhile {
			case "nothing":
				require.False(t, h.Lease.Holds(time.Now()), "whoever asks meanwhile costs no other look")
			case "the clock is set":
				setForthAndBack(t, h, set, lease)
			default:
				h.Lease.Doubt()
			}
			<-held
			require.Equal(t, meanwhile != "nothing", gaps.Load() == 2, meanwhile)
			require.True(t, h.Lease.Holds(time.Now()))
			cancel()
			synctest.Wait()
		})
	}
}
