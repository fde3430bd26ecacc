// Package sim simulates whole worlds and judges what becomes of them: a few engines on
// one store in a bubble of virtual time, a program made of durable calls, faults of the
// store, and operators who act at bad moments. A world is data, so that it can be
// generated from a seed, mutated, shrunk, and printed as a Go test.
//
//	world.go      what a world is, and Run
//	program.go    what a workflow does, as a tree
//	perform.go    does it with durable calls; body.go is what their bodies do
//	drain.go      takes many signals, and asks how much work each of them was
//	generate.go   makes worlds from seeds, and mutates those that showed something new
//	interpret.go  what a program may come to, knowing nothing of durability
//	process.go    an engine that is opened, killed, closed and opened again
//	store.go      the way of one process to the store; fault.go is what goes wrong there
//	transact.go   the transactions of that store; effect.go is what is written in them, and its book
//	queue.go      what roots wait in; schedule.go starts runs beside them; both say what must hold
//	pace.go       has calls take time, and goroutines make way for others: which order a moment has
//	clock.go      the clock of the store, which drifts and jumps
//	localclock.go the clocks of each process, which drift, are set, and stand still; what must not depend on them
//	operator.go   what people do to runs
//	begin.go      how root runs are started; carry.go copies, verifies and mends them while they go on
//	moved.go      starts runs from files that come from another store
//	ask.go        requests and their answers, what runs publish, and effects that Reconcile asks for
//	approve.go    runs that ask people for approvals, and people who answer them
//	debounce.go   starts that become one run, and what must hold of them
//	deploy.go     a second build of the program, rolled forth and back; which runs fit which
//	ledger.go     what bodies did and calls returned; told.go what people were told
//	peace.go      what must hold when nobody gives the runs anything
//	check.go      what must hold at the end
//	run.go        the life of a world: begun, disturbed, left in peace, judged
//	watch.go      counts calls and events, and has faults and acts happen at them; a row is never torn from its events
//	coverage.go   which (event, fault, next event) were seen, and which are sought
//	watchdog.go   ends a world that does not end
//	replay.go     a world as one word, to be played again
//	shrink.go     the least world that still fails; print.go is its Go test
//
// # What is reproducible
//
// A world that is printed is the one to keep: with it stands its code, which -world plays
// again. A seed alone makes the same world only with the same first seed, because what was
// seen before steers what is made next. All choices of a world (which call of the
// store meets a fault, what an operator does after which event) are counted at the
// store, not timed. The virtual clock is exact. How long calls take, and where goroutines
// make way for others, is drawn from numbers of the world. What is left to chance is the
// order in which goroutines run that are ready at the same virtual moment, and the ids of
// executors. Tests of this package run with one P, which leaves little of that; a world
// that fails therefore fails again nearly always, and the shrinker tries each smaller
// world several times.
package sim
