package sim_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/test/sim"
)

// Whatever the clocks of a machine say, waits end, pauses are over and leases hold by the store's.
func TestTheClocksOfAMachineChangeNothing(t *testing.T) {
	// The wall clock is set while a run waits.
	sim.Run(t, sim.World{
		Clocks:  []sim.Clock{{Ahead: 3 * time.Minute, Drift: 400}},
		Program: sim.Program{{Do: sim.Await, For: time.Minute}, {Do: sim.Retry, Fails: 1, Max: 2}, {Do: sim.Sleep, For: 70 * time.Second}},
		Acts: []sim.Act{
			{Do: sim.SetWall, After: 12 * time.Second, By: 2 * time.Hour},
			{Do: sim.SetWall, On: "attempt_failed", Nth: 1, After: 500 * time.Millisecond, By: time.Hour},
			{Do: sim.SetWall, On: "timer_set", Nth: 1, After: time.Second, By: -4 * time.Hour},
		},
	})
	// It is set back while the store cannot be reached, and bodies begin that need no write.
	body := sim.Node{Do: sim.Relaxed, For: 20 * time.Second}
	sim.Run(t, sim.World{
		Engines: 2, Program: sim.Program{body, body, body, body},
		Faults: []sim.Fault{{On: "beat", Nth: 3, Do: sim.Restart, For: 90 * time.Second}},
		Acts:   []sim.Act{{Do: sim.SetWall, After: 3 * time.Second, By: -2 * time.Hour}, {Do: sim.SetWall, After: 3 * time.Second, By: -2 * time.Hour, Run: 1}},
	})
	// The monotonic clock stands still while the machine is suspended.
	sim.Run(t, sim.World{
		Program: sim.Program{{Do: sim.Relaxed, For: 40 * time.Second}, {Do: sim.Step}},
		Acts:    []sim.Act{{Do: sim.Suspend, By: 3 * time.Minute}},
	})
}
