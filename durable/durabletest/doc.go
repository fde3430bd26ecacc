// Package durabletest tests workflows for what makes durable code wrong: that a
// workflow function, executed again from what was recorded, does something else
// than it did at first.
//
// Survives executes a workflow once in peace, and then again and again, ending
// its process before and after every write, and compares what comes of it. It
// replays the finished history too, here and in a process of its own, in which no
// package variable has a value from before.
//
//	func TestCheckoutSurvives(t *testing.T) {
//		s := newShop()
//		durabletest.Survives(t, durable.Define("checkout", s.Checkout), order,
//			durabletest.Reset(s.restock))
//	}
//
// Replays executes the code of today on a history that was exported elsewhere,
// such as that of a run in production, without running the body of any step. A
// directory of such files under testdata tells in CI which change would stop a run
// that is in flight.
//
// Everything is on a memory store. Where the test is a *testing.T, time is
// virtual (testing/synctest): a workflow that sleeps for a year takes
// milliseconds. See RealTime for what cannot be in such a bubble.
package durabletest
