package sim_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/test/sim"
)

// The second build is rolled out while runs are before, in and after what it changes, is taken
// back, and is rolled out again: no run is misread, and each ends by a code that fits it.
func TestARunGoesOneWayOnlyWhateverIsDeployed(t *testing.T) {
	long := sim.Program{{Do: sim.Step, For: 10 * time.Second, Handled: true}}
	for _, release := range []sim.Release{sim.ByPatch, sim.ByVersion, sim.Plainly} {
		for _, then := range []sim.Program{long, nil} {
			if release == sim.Plainly && then == nil {
				continue // what was inserted leaves no trace of the way without it
			}
			for _, first := range []time.Duration{time.Second, 12 * time.Second, 35 * time.Second} {
				sim.Run(t, sim.World{
					Engines: 2, Runs: 2, Release: release,
					Program: sim.Program{
						{Do: sim.Step, For: 5 * time.Second},
						{Do: sim.Change, Body: sim.Program{{Do: sim.Retry, Fails: 1, Max: 2, For: 5 * time.Second}}, Then: then},
						{Do: sim.Child, Max: 1, Body: sim.Program{{Do: sim.Sleep, For: 20 * time.Second}, {Do: sim.Step}}},
						{Do: sim.Step, For: 20 * time.Second},
					},
					Acts: []sim.Act{
						{Do: sim.Deploy, After: first}, {Do: sim.Deploy, After: first + 15*time.Second}, {Do: sim.KillProcess, After: first + 17*time.Second},
						{Do: sim.Deploy, After: first + 30*time.Second}, {Do: sim.Deploy, After: first + 45*time.Second},
					},
				})
			}
		}
	}
}
