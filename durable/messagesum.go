package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// A message stands in an inbox beside the log, which says nothing of it until it is
// taken. So its data ends with a sum of all of it: the receiver, kind, name, id, time,
// data and payload. What an earlier version of this library has sent has none.

// sumField is how the data of a message ends that has a sum. It is the last field of
// the object itself: what ends inside of another one has two braces behind it.
const sumField = `"sum":"%08x"}`

// sumSize is the length of sumField.
const sumSize = len(`"sum":"01234567"}`)

// withSum returns the data of m with the sum of m, in the place of one it may have.
func withSum(m *store.Message) []byte {
	data, _, _ := cutSum(m.Data)
	head := []byte{'{'}
	if string(data) == "{}" {
		data = nil // an object that says nothing, with the sum or without
	}
	if len(data) > 0 {
		head = append(data[:len(data)-1:len(data)-1], ',')
	}
	return fmt.Appendf(head, sumField, sumOfMessage(m, m.To, data))
}

// cutSum takes the sum off the data of a message.
func cutSum(data []byte) (rest []byte, sum uint32, ok bool) {
	at := len(data) - sumSize
	if at < 1 || data[at-1] != '{' && data[at-1] != ',' {
		return data, 0, false
	}
	if n, err := fmt.Sscanf(string(data[at:]), sumField, &sum); n != 1 || err != nil || fmt.Sprintf(sumField, sum) != string(data[at:]) {
		return data, 0, false
	}
	if at == 1 {
		return nil, sum, true
	}
	rest = append([]byte(nil), data[:at]...)
	rest[at-1] = '}'
	return rest, sum, true
}

func sumOfMessage(m *store.Message, to string, data []byte) uint32 {
	return store.Seal(to+"\x00"+m.ID, 0, &store.Event{Type: store.Type(m.Kind), Key: m.Name, At: m.At, Data: data, Payload: m.Payload})
}

// checkMessage returns why a message in the inbox of run is not what was sent, as far
// as it says. One without a sum is of an earlier version, whose data has no field that
// is not known here: what else is in it was a sum once.
func checkMessage(run string, m *store.Message) error {
	if len(m.Data) == 0 {
		return nil
	}
	if data, sum, ok := cutSum(m.Data); ok {
		if sumOfMessage(m, run, data) != sum {
			return errors.New("its checksum does not fit: it was changed")
		}
		return nil
	}
	if !json.Valid(m.Data) {
		return errors.New("its data is not readable")
	}
	var data any = &messageData{}
	if m.Kind == store.KindChild {
		data = &childData{}
	}
	d := json.NewDecoder(bytes.NewReader(m.Data))
	d.DisallowUnknownFields()
	if err := d.Decode(data); err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	return nil
}

// checkMail returns an error for the first of these messages that is not what was
// sent and that the history has not taken.
func (r *run) checkMail(list []store.Message) error {
	for i := range list {
		if m := &list[i]; !r.past.consumed(m) {
			if err := checkMessage(r.id, m); err != nil {
				return &DamagedError{RunID: r.id, Err: fmt.Errorf("message %d (%s %s) in its inbox: %w", m.Seq, m.Kind, m.Name, err)}
			}
		}
	}
	return nil
}
