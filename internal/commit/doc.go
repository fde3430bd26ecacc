// Package commit makes what runs do durable: each call submits a Write, writes of many runs
// share one commit of the store, and each call returns once its own write is durable.
//
//   - write.go: what one durable call wants recorded
//   - log.go: the end of a run's log, which assigns the places in it; head.go: where it ends
//   - stash.go: events that ride along with the next write
//   - flight.go: the change of a run that is being committed
//   - committer.go: group commit, by leader and followers
//   - lane.go: keeps large changes out of the way of small ones; its leaders, from batch to batch
//   - relief.go: a second leader beside one whose batch the store does not answer
//   - settle.go: the handling of the answers to a batch
//   - answer.go: what an answer of the store means for a change
//   - act.go: the change of a run that is not executed; resend.go: sends the changes that belong
//     to no execution
//   - pace.go: how long the last commits took
package commit
