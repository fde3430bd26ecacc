// Package desk is how package operate reaches into the engine of package durable: what
// an operator's act is made of, and the one interface behind which the engine stands.
// Nothing else imports it (a test), so that what users of the engine see stays small.
//
//	engine.go   what the engine does for those who operate on its runs
//	act.go      what is done to a run that nobody executes
//	answer.go   what the store's answers to an act mean
package desk
