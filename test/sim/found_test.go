package sim_test

import (
	"testing"
	"time"

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

// The beginning of a body was recorded, its answer was lost, and another process took the
// run. When the store answered again, and the lease held, the body began: beside the one of
// the new owner, or after it.
func TestABodyWhoseBeginningIsAnsweredAfterTheRunWasTakenDoesNotBegin(t *testing.T) {
	for range 5 {
		sim.Run(t, sim.World{
			Engines: 2, Runs: 3,
			Program: sim.Program{
				{Do: "step"},
			},
			Faults: []sim.Fault{
				{On: "row", Nth: 3, Do: "lost, then refused", For: 45 * time.Second},
				{On: "step_completed", Nth: 1, Do: "lost, then refused", For: 45 * time.Second},
			},
		})
	}
}

// The cancel of a run came while its completion was on its way to the store. The cancel won,
// and what the run had registered was not undone.
func TestARunThatIsCancelledAsItCompletesIsUndone(t *testing.T) {
	sim.Run(t, sim.World{
		Engines: 2, Unload: -1,
		Program: sim.Program{
			{Do: "long", For: 20 * time.Second}, {Do: "undo"}, {Do: "long", For: 20 * time.Second},
		},
		Acts: []sim.Act{
			{Do: "cancel", After: 40 * time.Second, Run: 1},
		},
	})
}

// One branch of two has won, and the function returns while the other one is being replayed:
// the child that it had started was not cancelled.
func TestAChildOfABranchThatIsBeingReplayedEndsWithItsParent(t *testing.T) {
	sim.Run(t, sim.World{
		Unload: 1,
		Program: sim.Program{
			{Do: "first", Body: sim.Program{
				{Do: "sleep", For: 15 * time.Second},
				{Do: "child", Max: 1, Body: sim.Program{
					{Do: "await"},
				}},
			}},
		},
	})
}

// The fold of a MapSeq failed. After a crash the items behind that were not replayed, and
// what they had registered was not undone.
func TestItemsBehindAFoldThatFailsAreUndone(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{
			{Do: "mapseq", Fails: 1, Max: 2, Body: sim.Program{
				{Do: "sleep", For: 3 * time.Minute}, {Do: "undo"}, {Do: "retry", Max: 1, For: 5 * time.Second},
			}},
		},
		Faults: []sim.Fault{
			{On: "timer_set", Nth: 2, Do: "kill before"},
		},
	})
}

// A run completed, and the answer was lost. The body of a branch that had lost the race saved its
// progress behind that, and was told that another executor had taken the run.
func TestABodyThatIsLeftBehindIsNotToldThatItsRunWasTaken(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{
			{Do: "first", Body: sim.Program{
				{Do: "progress", Max: 1, For: 100 * time.Millisecond}, {Do: "step"},
			}},
		},
		Faults: []sim.Fault{
			{On: "row", Nth: 1, Do: "lost before"},
		},
	})
}

// Close while a child's start is unanswered said that the code of the child ignores its context.
func TestCloseDoesNotBlameTheCodeOfAChildWhoseStartIsUnanswered(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{
			{Do: "child", Max: 1},
		},
		Faults: []sim.Fault{
			{On: "child_started", Nth: 1, Do: "slow after", For: 90 * time.Second},
		},
		Acts: []sim.Act{
			{Do: "close", After: 5 * time.Second},
		},
	})
}

// A Map was refused because the keys of its items would be too long, and another call took its
// place. When the branch was replayed, the Map was compared with that call: the run was parked
// as changed.
func TestAMapThatWasRefusedForItsKeysIsRefusedAgainWhenItIsReplayed(t *testing.T) {
	p := sim.Program{
		{Do: "map", Max: 1, Handled: true, Body: sim.Program{{Do: "step"}}}, {Do: "step"}, {Do: "sleep", For: 3 * time.Minute},
	}
	for range 5 {
		p = sim.Program{{Do: "go", Body: sim.Program{{Do: "block", Body: p}}}}
	}
	sim.Run(t, sim.World{Unload: 1, Names: 681, Program: p})
}

// The body of a step was saving its progress when the store stopped answering. Close said that
// the code of the step ignores its context.
func TestCloseDoesNotBlameABodyWhoseProgressIsUnanswered(t *testing.T) {
	sim.Run(t, sim.World{
		Runs: 2,
		Program: sim.Program{
			{Do: "mapseq", Max: 1, Body: sim.Program{
				{Do: "progress", Max: 1},
			}},
		},
		Faults: []sim.Fault{
			{On: "step_started", Nth: 1, Do: "slow after", For: 90 * time.Second},
		},
		Acts: []sim.Act{
			{On: "item_completed", Nth: 1, Do: "close"},
		},
	})
}

// A parent asks whether the child that it has started is its own, and the store does not answer.
func TestCloseDoesNotBlameAParentWhoseReadIsUnanswered(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{{Do: "child", Max: 1, ID: "*/kid"}},
		Faults:  []sim.Fault{{On: "load", Nth: 1, Do: "stuck", For: 28 * time.Second}},
		Acts:    []sim.Act{{Do: "close", After: 3 * time.Second}},
	})
}

// The store said that it was damaged, once, when something was to be recorded. That was taken for
// its decision about the change: a step, a child or the run itself failed for good.
func TestWhatADamagedStoreDoesNotTakeIsNoFailureOfTheRun(t *testing.T) {
	damaged := func(on string, p ...sim.Node) {
		sim.Run(t, sim.World{Program: p, Faults: []sim.Fault{{On: on, Nth: 1, Do: sim.Damaged}}})
	}
	step := sim.Node{Do: sim.Step}
	damaged("step_completed", step)
	damaged("workflow_completed", step)
	damaged("child_started", sim.Node{Do: sim.Child, Max: 1, Body: sim.Program{step}})
	damaged("workflow_continued", step, sim.Node{Do: sim.Renew, Max: 2})
	damaged("item_completed", sim.Node{Do: sim.Map, Max: 1, Body: sim.Program{step}})
}

// A run was about to fail when a pause came, and then a cancel, which won. Why it was cancelled
// was not read any more.
func TestACancelAfterAPauseKeepsItsReasonAsTheRunFails(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{{Do: "fail"}},
		Faults:  []sim.Fault{{On: "workflow_failed", Nth: 1, Do: "slow before", For: 5 * time.Second}},
		Acts:    []sim.Act{{Do: "pause", After: 3 * time.Second}, {Do: "cancel", After: 4 * time.Second}},
	})
}

// A fork did not copy the marker of a change, and was parked as changed.
func TestAForkOfARunThatHasGoneTheNewWayGoesOn(t *testing.T) {
	sim.Run(t, sim.World{
		Release: sim.ByPatch,
		Program: sim.Program{
			{Do: "step", For: 5 * time.Second}, {Do: "change", Body: sim.Program{{Do: "long"}}, Then: sim.Program{{Do: "long"}}}, {Do: "step", For: 5 * time.Second},
		},
		Acts: []sim.Act{{Do: "deploy"}, {Do: "fork", After: 9 * time.Second}},
	})
}

// A process was closed while the beginning of two branches was being recorded. The branch whose
// step it stopped was counted out: the row said that the run waits, and nobody came to the step.
func TestABranchThatACloseHasStoppedIsGoneOnWith(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{
			{Do: "go", Body: sim.Program{{Do: "step", For: time.Second}, {Do: "await"}}},
		},
		Faults: []sim.Fault{{On: "step_started", Nth: 1, Do: "refused"}},
		Acts:   []sim.Act{{On: "fault", Nth: 1, Do: "close"}},
	})
}

// The same, of a call of the function itself, which then went on to wait for the branch.
func TestACallThatACloseHasStoppedIsGoneOnWith(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{
			{Do: "go", Body: sim.Program{{Do: "await"}}, Then: sim.Program{{Do: "progress", Fails: 2, How: "block", Max: 2}}},
		},
		Acts: []sim.Act{{Do: "close", After: 5 * time.Second}},
	})
}

// A run led the batch of another one, which the store did not answer, when its own write had been refused.
// Close said that its code ignores its context.
func TestARunThatWaitsForTheAnswerToAnothersChangeIsNotBlamed(t *testing.T) {
	for order := range uint64(20) {
		sim.Run(t, sim.World{
			Engines: 1, Runs: 3, Yield: 4032647831165947285 + order,
			Begin: sim.Beginning{Bulk: true},
			Queue: &sim.Queue{Max: 2, Line: []sim.Spot{{Priority: 1}, {Partition: "c"}, {Partition: "a", Priority: 1, Delay: 10 * time.Second}, {Priority: 1, Delay: 40 * time.Second}}},
			Program: sim.Program{
				{Do: "mapseq", Max: 3, Body: sim.Program{{Do: "step"}, {Do: "long", For: 5 * time.Second}}},
			},
			Faults: []sim.Fault{
				{On: "step_completed", Nth: 2, Do: "slow before", For: 90 * time.Second},
				{On: "step_completed", Nth: 1, Do: "refused"},
			},
			Acts: []sim.Act{{Do: "close", After: time.Second}},
		})
	}
}

// A jump took back the outcome of a branch, and Now showed the time of that outcome in it: the step
// whose input it is was another one, and the run was parked as changed.
func TestABranchWhoseOutcomeAJumpTakesBackShowsTheSameNow(t *testing.T) {
	sim.Run(t, sim.World{
		Engines: 2, Runs: 3,
		Program: sim.Program{
			{Do: "long"},
			{Do: "go", Body: sim.Program{
				{Do: "sleep", For: 70 * time.Second},
				{Do: "group", Body: sim.Program{{Do: "draw", For: 100 * time.Millisecond}}},
			}},
		},
		Faults: []sim.Fault{
			{On: "step_started", Nth: 3, Do: "lost, then refused", For: 1500 * time.Millisecond},
			{On: "after act", Nth: 3, Do: "kill after"},
		},
		Acts: []sim.Act{
			{On: "workflow_completed", Nth: 1, Do: "jump", After: 3 * time.Second, Run: 1, Back: 2},
			{On: "workflow_completed", Nth: 2, Do: "pause"},
		},
	})
}

// A run was created while an engine that had been cut off for longer than its lease looked at what
// others had taken. It counted as deleted, and its owner went on with it only when it looked for
// what it owns.
func TestARunThatIsCreatedWhileALeaseIsInDoubtIsExecuted(t *testing.T) {
	sim.Run(t, sim.World{
		Engines: 2, Runs: 3, Pace: 8324196740834372855,
		Program: sim.Program{
			{Do: "map", Max: 2, Body: sim.Program{{Do: "step", Max: 1}}}, {Do: "step", For: 20 * time.Second},
		},
		Faults: []sim.Fault{
			{On: "step_started", Nth: 1, Do: "restart", For: 45 * time.Second},
			{On: "after act", Nth: 2, Do: "kill after"},
		},
		Acts: []sim.Act{{Do: "close", After: 100 * time.Millisecond}},
	})
}

// A transaction was rolled back by the database while its run was being paused. The function got the
// words of the database as the outcome of the step.
func TestAFunctionIsNotToldThatATransactionWasRolledBackAsItsRunIsPaused(t *testing.T) {
	for _, do := range []sim.Harm{sim.Conflict, sim.Cut} {
		sim.Run(t, sim.World{
			Program: sim.Program{{Do: "transact", Max: 1, For: 40 * time.Second}},
			Faults:  []sim.Fault{{On: "transact", Nth: 1, Do: do, For: 100 * time.Millisecond}},
			Acts:    []sim.Act{{Do: "pause"}},
		})
	}
}

// The store has one writer. What had been stashed was written before a transaction was begun, without
// the row, which said for as long as the transaction was open that the run waits.
func TestTheRowOfARunAgreesWithItsLogWhileATransactionIsOpen(t *testing.T) {
	sim.Run(t, sim.World{
		OneWriter: true,
		Program:   sim.Program{{Do: "tag"}, {Do: "sleep"}, {Do: "transact", For: time.Second}},
		Acts:      []sim.Act{{On: "attributes_set", Nth: 1, Do: "verify", After: 500 * time.Millisecond}},
	})
}

// The store did not answer the beginning of a transaction. Close said that the code of the step ignores
// its context, which had not begun.
func TestCloseDoesNotBlameABodyWhoseTransactionDoesNotBegin(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{{Do: "transact", Max: 1}},
		Faults:  []sim.Fault{{On: "begin", Nth: 1, Do: "stuck", For: 90 * time.Second}},
		Acts:    []sim.Act{{Do: "close", After: 15 * time.Second}},
	})
}

// An answer was acknowledged, and its executor had no connection until the time limit had passed. The
// wait timed out.
func TestAnAnswerThatCameInTimeCountsThoughTheStoreWasAway(t *testing.T) {
	for order := range 40 {
		sim.Run(t, sim.World{
			Engines: 2, Yield: uint64(order),
			Program: sim.Program{{Do: "approve", For: 15 * time.Second}},
			Faults:  []sim.Fault{{On: "after act", Nth: 1 + order%4, Do: "restart", For: 90 * time.Second}},
			Acts:    []sim.Act{{On: "wait_requested", Nth: 1, Do: "answer unasked", After: 14 * time.Second, Run: 1}},
		})
	}
}

// The store took its time with what comes before the body of a transactional step: the beginning of its
// transaction, or what was to be written before. The lease ran out, or another process had the run.
func TestABodyThatHasWaitedForItsTransactionBeginsWithTheLeaseOnly(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{{Do: "transact", Max: 1}},
		Faults: []sim.Fault{
			{On: "begin", Nth: 1, Do: "stuck", For: 45 * time.Second},
			{On: "beat", Nth: 2, Do: "stuck", For: 90 * time.Second},
		},
	})
	sim.Run(t, sim.World{
		Engines: 3, Runs: 3, Unload: -1, Grace: 2 * time.Minute, Yield: 10696302560866094421,
		Begin:    sim.Beginning{Bulk: true, Mail: true},
		Schedule: &sim.Schedule{Overlap: 1, Missed: -1, Every: time.Minute},
		Program: sim.Program{
			{Do: "first", Body: sim.Program{{Do: "step"}}},
			{Do: "map", Max: 1, Body: sim.Program{{Do: "transact", Max: 1}}},
		},
		Faults: []sim.Fault{{On: "first_won", Nth: 2, Do: "lost, then refused", For: 45 * time.Second}},
	})
}

// Each of two transactions of a run has its row, while the beginning of the other one, which was on probation, waits for it.
func TestTwoTransactionsOnProbationDoNotHoldEachOtherUpForEver(t *testing.T) {
	sim.Run(t, sim.World{
		Program: sim.Program{
			{Do: sim.Await, Max: 1, For: 3 * time.Minute},
			{Do: sim.MapSeq, Max: 2, Body: sim.Program{{Do: sim.Transact, How: sim.ByTell, Max: 1, For: time.Second}}},
		},
		Faults: []sim.Fault{{On: sim.AfterAct, Nth: 1, Do: sim.KillBefore}},
		Acts:   []sim.Act{{On: "wait_timed_out", Nth: 1, Do: sim.CancelRun}},
	})
}

// While the outcome of a transactional step waits for what its run has in flight, that may wait for the run's row,
// which a signal in the transaction has locked. The next transaction locked it again, a hundred times in a row.
func TestATransactionThatWasHeldUpLetsTheOtherWritesOfItsRunPassFirst(t *testing.T) {
	for range 3 {
		sim.Run(t, sim.World{
			Engines: 3, Runs: 20, Unload: time.Minute, Grace: 10 * time.Second, Pace: 1093967596721517995,
			Begin: sim.Beginning{Bulk: true, Mail: true},
			Program: sim.Program{
				{Do: "cleanup", Handled: true, Then: sim.Program{{Do: "cleanup", Then: sim.Program{{Do: "await"}}}}},
				{Do: "map", Max: 3, Handled: true, Body: sim.Program{
					{Do: "map", Max: 2, Handled: true, Body: sim.Program{
						{Do: "block", Handled: true, Body: sim.Program{
							{Do: "step", Fails: 1, How: "panic", For: 20 * time.Second, Handled: true}, {Do: "until", For: 15 * time.Second, Handled: true}, {Do: "publish", Handled: true}, {Do: "step", Fails: 1, Handled: true}, {Do: "tag", Handled: true}, {Do: "publish", Handled: true},
							{Do: "retry", How: "block", Max: 2, Handled: true}, {Do: "sleep", Handled: true}, {Do: "nested", Max: 3, Handled: true}, {Do: "sync", Handled: true}, {Do: "retry", Fails: 2, Max: 3, For: 100 * time.Millisecond, Handled: true}, {Do: "transact", How: "tell", Max: 3, For: 1 * time.Second, Handled: true},
							{Do: "step", Handled: true}, {Do: "seek", Max: 3, Handled: true},
						}},
						{Do: "map", Max: 4, Handled: true, Body: sim.Program{
							{Do: "once", For: 1 * time.Second, Handled: true}, {Do: "transact", Fails: 2, Max: 4, Handled: true}, {Do: "until", For: 3 * time.Minute, Handled: true},
						}},
					}},
				}},
			},
		})
	}
}
