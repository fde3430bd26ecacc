package sim_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/test/sim"
)

// The worlds that have shown a fault of the product, as the simulator has printed them.

// The source of a MapSeq that had stopped at a failure was read to another place when its
// item, which had ended, was replayed for its compensations: the run was parked as changed.
func TestAMapSeqThatStoppedIsReplayedToItsEndInAnItemThatHasEnded(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{
			{Do: "map", Max: 2, Body: sim.Program{
				{Do: "mapseq", Max: 3, Handled: true, Body: sim.Program{
					{Do: "undo"}, {Do: "retry", Fails: 1, Max: 1},
				}},
			}},
		},
		Faults: []sim.Fault{
			{On: "item_completed", Nth: 2, Do: "kill before"},
		},
	})
}
