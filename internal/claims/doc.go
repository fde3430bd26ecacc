// Package claims decides which runs an executor takes from the store, and what becomes of
// the runs of executors that are gone.
//
// A run belongs to one executor at a time. A claim makes it this executor's: one transaction
// of the store raises the epoch of the run, makes the executor its owner and appends an event
// that says which executor has it. From then on the store refuses writes under an earlier
// epoch, so an owner that was thought dead but is alive can do no harm. These rules hold:
//
//   - The store never hands out a run that a live executor owns, nor one that is parked or has
//     ended, nor one whose workflow and version this executor does not serve. A paused run is
//     handed out only once a cancel was requested for it.
//   - An executor claims only while its own lease holds.
//   - The claim loop takes what is due and free: pending runs, runs that were interrupted
//     without a reason that holds them, and waiting runs whose time has come or that have
//     mail. It does so only once Recover was called; before that it takes only the runs
//     that a bulk start here has asked for.
//   - A run whose owner died while executing it is not for the loop. Recovery decides
//     about it first (fateOf): it is continued, tried alone as a suspect, failed, left,
//     quarantined or parked.
//   - At most MaxRuns claimed runs are executed at a time, not counting children, whose
//     parents may hold the places they would wait for, one suspect, and runs that
//     somebody adopts or resumes by name. A run that
//     recovery cannot continue for lack of places stays in the store as it is. Its id is
//     in a queue, which the loop empties before it takes anything else.
//   - A run gets a place in its queue within the limits that the store keeps, also from a claim by
//     id, and within Queue.MaxPerProcess: the runs of a queue that this executor has are counted,
//     waiting and unloaded ones too. The loop takes the runs of queues in the store's order; one
//     that was interrupted gets in line again. Only a person's Resume or Adopt asks for a run
//     before its turn. A queue that is full holds up no other.
//   - An executor executes what it owns. A lost answer of the store can break this, so
//     the two are compared from time to time.
//
// Nothing here is the truth about a run except what is in the store: a process that dies with
// queues and suspects leaves runs that the next recovery finds, here or elsewhere.
//
//   - options.go: what the room needs of the engine
//   - claim.go: the loop and each single claim; queue.go: places and lists of runs
//   - continue.go: runs that recovery continues; hear.go: what a notice of the store asks for; expect.go: runs that were just started here
//   - owned.go: runs that are owned here and not executed
//   - judge.go: what becomes of a run whose executor is gone; orphan.go: going through them;
//     trials.go: those that may have ended their executors; act.go: what is written about them
//   - repair.go: a run whose row contradicts its events; repairboot.go: whether one that recovery
//     has met is such a run
//   - recover.go: all passes of a recovery; report.go: what they say; tend.go: what follows a
//     heartbeat
//   - parked.go: runs that other code has parked, tried with the code that is here
//   - adopt.go: one run instead of all
//   - unserved.go: runs whose code no live executor has
package claims
