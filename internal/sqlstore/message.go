package sqlstore

import "github.com/holdfast-dev/holdfast/store"

// MessageRow is a row of the inbox table as a reader selects it.
type MessageRow struct {
	Seq     int64  `db:"seq"`
	Kind    string `db:"kind"`
	Name    string `db:"name"`
	ID      string `db:"id"`
	At      int64  `db:"at"`
	Data    []byte `db:"data"`
	Payload []byte `db:"payload"`
}

// Message returns the record of a message to run.
func (r *MessageRow) Message(run string) store.Message {
	return store.Message{
		To: run, Kind: store.Kind(r.Kind), Name: r.Name, ID: r.ID, Seq: r.Seq, At: store.Time(r.At), Data: r.Data, Payload: r.Payload,
	}
}
