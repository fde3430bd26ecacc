// Package commit makes what runs do durable: each call hands in a Write, writes of many
// runs share a commit of the store, and each call returns once its own is durable.
//
//   - write.go: what one durable call wants recorded
//   - log.go: the end of a run's log, which gives out the places in it; head.go: where it ends
//   - stash.go: events that ride along with the next write
//   - flight.go: the change of a run that is being committed
//   - committer.go: group commit, by leader and followers
//   - relief.go: another leader beside one that the store does not answer
//   - settle.go: what becomes of the answers to a batch
//   - answer.go: what an answer of the store says of a change; resend.go: changes that no
//     execution makes
//   - pace.go: how long the last commits took
package commit
