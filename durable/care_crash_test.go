package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// cleanedAway makes ended and idle runs, some of them families, in more batches than one,
// has a process clean them away that is killed at a write, and then another one. It
// returns how many writes there were.
func cleanedAway(t *testing.T, at int, after, idle bool) (writes int) {
	ctx := context.Background()
	data := memory.Open()
	defer func() { require.NoError(t, data.Close()) }()
	child := durable.Define("child", func(ctx context.Context, n int) (int, error) {
		if n%2 == 0 {
			return durable.Await[int](ctx, "never")
		}
		return n, nil
	})
	parent := durable.Define("parent", func(ctx context.Context, n int) (int, error) {
		k, err := child.Start(ctx, durable.AutoID, n, durable.Abandon())
		if err != nil || n%2 == 0 {
			return n, err
		}
		return k.Wait(ctx)
	})
	open := func(st store.Store) *durable.Engine {
		eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{parent, child}, Logger: slog.New(slog.DiscardHandler), Grace: -1})
		require.NoError(t, err)
		return eng
	}
	eng := open(data.Handle())
	for i := range 120 {
		_, err := parent.Start(durable.NewContext(ctx, eng), fmt.Sprint(i), i)
		require.NoError(t, err)
	}
	time.Sleep(time.Minute)
	require.NoError(t, eng.Close())

	o := operate.CleanOptions{All: true, Idle: idle}
	m := crashstore.New(data.Handle())
	m.DieAt(at, after)
	eng = open(m)
	did, err := operate.On(eng).Clean(ctx, o)
	require.Equal(t, m.IsDead(), err != nil)
	writes = m.Writes()
	_ = eng.Close()
	if m.IsDead() {
		time.Sleep(2 * durable.DefaultLease)
	}

	eng = open(data.Handle())
	defer func() { require.NoError(t, eng.Close()) }()
	for v, err := range operate.On(eng).VerifyAll(ctx, store.Filter{}) {
		require.NoError(t, err)
		require.Empty(t, v.Findings, "%s is whole, or is not there", v.RunID)
	}
	if m.IsDead() {
		did, err = operate.On(eng).Clean(ctx, o)
		require.NoError(t, err)
	}
	page, err := eng.List(ctx, store.Filter{Limit: 1000})
	require.NoError(t, err)
	left := 60 // children that wait
	if idle {
		left = 0
	}
	require.Len(t, page.Runs, left, "killed at write %d, after=%v", at, after)
	if at == 0 {
		require.Equal(t, 240-left, did.Runs)
	}
	return writes
}

func TestACleanupKilledAtAnyWriteLeavesWholeRunsAndASecondOneFinishes(t *testing.T) {
	for _, idle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			writes := cleanedAway(t, 0, false, idle)
			require.Greater(t, writes, 2)
			for at := 1; at <= writes; at++ {
				for _, after := range []bool{false, true} {
					cleanedAway(t, at, after, idle)
				}
			}
			t.Logf("idle=%v: %d writes", idle, writes)
		})
	}
}

// Every single byte of what a run has recorded is looked after: whichever is another
// one, the run is known to be damaged, and nothing is made of it. What a resume does
// then is TestEveryKindOfDamageToAnEventIsFoundNeverBelievedAndRepaired.
func TestEveryByteOfAHistoryThatIsAnotherOneIsFoundAndNothingIsMadeOfIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hold{}
		wf := crashed(t, w, h)
		events := w.events("r")
		s := w.rotting(t, rot{run: "r"}, with(wf))
		tried := 0
		damage := func(seq int64, what string, change func(e *store.Event)) {
			s.rot.event = at(seq, change)
			v := verify(t, w, "r")
			require.True(t, v.Corrupt(), "%s of event %d: %v", what, seq, v.Findings)
			require.Equal(t, seq, v.Findings[0].Seq, "%s: %v", what, v.Findings)
			_, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})
			require.Error(t, err, "%s of event %d", what, seq)
			_, err = operate.On(w.eng).Edit(w.ctx(), "r", "step", "x", operate.EditOptions{DryRun: true})
			require.Error(t, err, "%s of event %d", what, seq)
			tried++
		}
		for _, ev := range events {
			for i := range ev.Payload {
				damage(ev.Seq, fmt.Sprintf("payload byte %d", i), func(e *store.Event) { e.Payload[i] ^= 1 << (i % 8) })
			}
			for i := range ev.Data {
				damage(ev.Seq, fmt.Sprintf("data byte %d", i), func(e *store.Event) { e.Data[i] ^= 1 << (i % 8) })
			}
			for i := range len(ev.Key) {
				damage(ev.Seq, fmt.Sprintf("key byte %d", i), func(e *store.Event) {
					key := []byte(e.Key)
					key[i] ^= 1 << (i % 8)
					e.Key = string(key)
				})
			}
			for i := range 32 {
				damage(ev.Seq, fmt.Sprintf("sum bit %d", i), func(e *store.Event) { e.Sum ^= 1 << i })
			}
			for i := range 64 {
				damage(ev.Seq, fmt.Sprintf("time bit %d", i), func(e *store.Event) { e.At ^= 1 << i })
			}
		}
		require.Greater(t, tried, 500)
		t.Logf("%d damages", tried)
		s.rot.event = nil
		require.Empty(t, verify(t, w, "r").Findings, "it was the damage that was found")
	})
}

// When a run must end is what its history says: a row that says otherwise is damaged,
// and nothing is ended because of it.
func TestADeadlineThatOnlyTheRowHasIsNotBelieved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := crashed(t, w, &hold{})
		w.rotting(t, rot{run: "r", row: func(r *store.Run) { r.DeadlineAt = 1 << 20 }}, with(wf))
		require.Contains(t, verify(t, w, "r").Findings[0].Text, "its deadline is")
		_, err := w.eng.Recover(context.Background())
		require.NoError(t, err)
		out, err := finish(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "012", out)
	})
}
