package store

// Kind says what a message is about.
type Kind string

// The kinds of messages. A store treats them all the same, except KindCancel,
// which also sets Run.CancelAsked (S15).
const (
	KindSignal  Kind = "signal"
	KindCancel  Kind = "cancel"
	KindPause   Kind = "pause"
	KindChild   Kind = "child"   // the outcome of a child run
	KindRequest Kind = "request" // a signal that is answered
)

// Message is an entry of a run's inbox. It is kept as long as the run is. It is
// pending until an event of the current lineage consumes it; the engine knows
// that, the store does not.
type Message struct {
	To      string
	Kind    Kind
	Name    string
	ID      string // required; the store drops a second message of the same kind and id (S14)
	Seq     int64  // per receiver from 1, +1 each, in commit order; assigned by the store
	At      Time
	Data    []byte // JSON object or nil
	Payload []byte // envelope or nil

	// IfLive: when the receiver does not exist or has ended, the message is
	// dropped instead of failing the Change. Not stored.
	IfLive bool
}
