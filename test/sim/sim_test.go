package sim_test

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/test/sim"
	"github.com/holdfast-dev/holdfast/test/tried"
)

func TestOneOfEach(t *testing.T) {
	sim.Run(t, sim.World{Engines: 2, Program: sim.Program{
		{Do: sim.Step, For: 100 * time.Millisecond},
		{Do: sim.Retry, Fails: 2, Max: 3},
		{Do: sim.Once}, {Do: sim.Transact, Fails: 1, Max: 2, How: sim.ByTell, Body: sim.Program{{Do: sim.Step}}}, {Do: sim.Relaxed}, {Do: sim.Long}, {Do: sim.Progress, Fails: 1, Max: 3}, {Do: sim.Draw}, {Do: sim.Publish}, {Do: sim.Tag},
		{Do: sim.Sleep, For: 20 * time.Second},
		{Do: sim.Await, For: time.Minute},
		{Do: sim.Await},
		{Do: sim.Undo},
		{Do: sim.Go, Body: sim.Program{{Do: sim.Step}, {Do: sim.Sleep, For: time.Second}}},
		{Do: sim.Group, Body: sim.Program{{Do: sim.Step}, {Do: sim.Sleep, For: time.Second}}},
		{Do: sim.First, Body: sim.Program{{Do: sim.Step}, {Do: sim.Sleep, For: time.Second}}},
		{Do: sim.Map, Max: 3, Body: sim.Program{{Do: sim.Step}, {Do: sim.Sleep, For: time.Second}}},
		{Do: sim.MapSeq, Max: 3, Body: sim.Program{{Do: sim.Step}, {Do: sim.Sleep, For: time.Second}}},
		{Do: sim.Child, Max: 2, Body: sim.Program{{Do: sim.Step}, {Do: sim.Sleep, For: time.Second}}},
		{Do: sim.Cleanup, Handled: true, Body: sim.Program{{Do: sim.Step, Fails: 1}}, Then: sim.Program{{Do: sim.Step}}},
		{Do: sim.Step, Fails: 1, How: sim.ByPanic},
	}, Faults: []sim.Fault{{On: "step_completed", Nth: 3, Do: sim.LostAfter}, {On: "step_completed", Nth: 5, Do: sim.KillAfter}},
	})
}

// A transaction is held up by what the run writes beside it, and made again: its outcome is never
// recorded without its effect.
func TestTheOutcomeOfAStepWhoseTransactionIsHeldUpGoesWithItsEffect(t *testing.T) {
	for _, oneWriter := range []bool{false, true} {
		sim.Run(t, sim.World{
			OneWriter: oneWriter,
			Program:   sim.Program{{Do: sim.MapSeq, Max: 2, Body: sim.Program{{Do: sim.Transact, Max: 1}}}},
			Faults:    []sim.Fault{{On: "transact", Nth: 1, Do: sim.SlowBefore, For: 90 * time.Second}},
		})
	}
}

var (
	seeds = flag.Int("seeds", 0, "how many worlds to play; 0: 1,500, with DURABLE_SOAK 50,000, and more until they have had 5,000,000 events")
	first = flag.Uint64("first", 1, "the first seed")
	stop  = flag.Int("stop", 1, "after how many failures to stop")
	large = flag.Int("large", 0, "how many of a hundred programs are large ones; with DURABLE_SOAK 2")
	again = flag.String("world", "", "play this one world instead, which is the code that a failure has printed")
	until = flag.Duration("within", 0, "after how long to stop; 0: never")
)

// TestMain has one P: what happens at one moment then happens in nearly the same order
// each time. Worlds are small and leave much garbage behind.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// Whatever a program does, whatever the store answers meanwhile, whatever people do to its
// runs: what was acknowledged holds, and every run ends as the program says.
func TestWorlds(t *testing.T) {
	if *again != "" {
		w, err := sim.Decode(*again)
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Watch(0, w)()
		sim.Run(t, w)
		return
	}
	h := sim.NewHunt()
	h.Large = *large
	began := time.Now()
	failures, n, events := 0, *seeds, 0
	if n == 0 {
		n = 1500
		if os.Getenv("DURABLE_SOAK") != "" {
			n, events, h.Large = 50_000, 5_000_000, 2
		}
	}
	for seed := *first; seed < *first+uint64(n) || h.Events < events; seed++ {
		if *until > 0 && time.Since(began) > *until {
			break
		}
		w := h.Next(seed)
		done := sim.Watch(seed, w)
		r := sim.Play(t, w)
		done()
		h.Took(w, r)
		if r.Failure == "" {
			continue
		}
		failures++
		small, why := sim.Shrink(w, r, func(w sim.World) sim.Result {
			defer sim.Watch(seed, w)()
			return sim.Play(t, w)
		}, 20*time.Second)
		t.Errorf("seed %d: %s\n%s\nagain, as it was made: -world %s\nagain, shrunk: -world %s", seed, r.Failure, small.Test(why), w.Code(), small.Code())
		if failures >= *stop {
			break
		}
	}
	t.Logf("%s\nin %s", h, time.Since(began).Round(time.Millisecond))
	tried.Say(t, "sim", "%s", h.Proof())
}
