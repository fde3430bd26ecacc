package store

// Kind says what a message is about.
type Kind string

// The kinds of messages. To a store they are alike, but for KindCancel, which
// also sets Run.CancelAsked (S15).
const (
	KindSignal  Kind = "signal"
	KindCancel  Kind = "cancel"
	KindPause   Kind = "pause"
	KindChild   Kind = "child"   // the outcome of a child run
	KindRequest Kind = "request" // a signal that is answered
)

// Message is an entry of a run's inbox. It stays as long as the run does; it is
// pending as long as no event of the current lineage consumed it, which the
// engine knows and the store does not.
type Message struct {
	To      string
	Kind    Kind
	Name    string
	ID      string // required: a second message of that kind with this id is dropped (S14)
	Seq     int64  // per receiver from 1, +1 each, in commit order; given by the store
	At      Time
	Data    []byte // JSON object or nil
	Payload []byte // envelope or nil

	// IfLive: when the receiver does not exist or has ended, the message is
	// dropped instead of failing the Change. Not stored.
	IfLive bool
}
