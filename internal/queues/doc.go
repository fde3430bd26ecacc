// Package queues is what an engine does about queues beside claiming: it declares them
// (declare.go), counts the places that its own runs hold (rooms.go), and knows when to look
// for runs that become due or that a rate lets in (alarm.go).
//
// The limits over all executors are not its business: the store keeps them in the transaction of
// a claim (S33).
package queues
