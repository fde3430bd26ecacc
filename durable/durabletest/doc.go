// Package durabletest tests programs that use package durable.
//
// Replace puts fakes in the place of step bodies, by name. VirtualTime lets a year pass in a
// second. HistoryOf says what a run did, and compares it with what it should do. Faults gives a
// store a bad night.
//
// Survives, Simulate and Replays look for the typical bug of durable code: that a workflow
// function, executed again from what was recorded, does something different from the first time.
//
// Survives executes a workflow once undisturbed, and then again and again, ending
// its process before and after every write, and compares the results. It also
// replays the finished history, here and in a separate process, in which no
// package variable has a value from before.
//
//	func TestCheckoutSurvives(t *testing.T) {
//		s := newShop()
//		durabletest.Survives(t, durable.Define("checkout", s.Checkout), order,
//			durabletest.Reset(s.restock))
//	}
//
// Simulate does the same with several workflows, and besides lets each attempt of each step
// fail, before and after its body: what a retry doubles shows then, and what a failure leaves
// behind.
//
// Replays executes the current code on a history that was exported elsewhere, such as
// that of a run in production, without running the body of any step. With a directory
// of such files under testdata, CI shows which change would stop a run in flight.
//
// These three run everything on a memory store. If the test is a *testing.T, time is virtual
// (testing/synctest): a workflow that sleeps for a year takes milliseconds. See
// RealTime for what cannot run in such a bubble.
package durabletest
