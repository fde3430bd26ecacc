package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// A message is in an inbox beside the log, which says nothing of it until it is taken. So
// its data ends with a sum of the whole message: receiver, kind, name, id, time, data and
// payload. A message that an earlier version of this library has sent has none.

// sumField is the end of the data of a message that has a sum. It is the last field of
// the object itself: a field at the end of an inner object is followed by two braces.
const sumField = `"sum":"%08x"}`

// sumSize is the length of sumField.
const sumSize = len(`"sum":"01234567"}`)

// WithSum returns the data of m with the sum of m, which replaces one that it may have.
func WithSum(m *store.Message) []byte {
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

// cutSum separates the sum from the data of a message.
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

// CheckMessage returns why a message in the inbox of run is not what was sent, as far
// as it shows that. A message without a sum is from an earlier version, all of whose
// fields are known here: any other field was once a sum.
func CheckMessage(run string, m *store.Message) error {
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
	var data any = &MessageData{}
	if m.Kind == store.KindChild {
		data = &ChildData{}
	}
	d := json.NewDecoder(bytes.NewReader(m.Data))
	d.DisallowUnknownFields()
	if err := d.Decode(data); err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	return nil
}

// ChildOf returns the run id of the child whose outcome m tells, and its life, 0 if the id
// of m does not name it.
func ChildOf(m *store.Message) (id string, life store.Time) {
	at := strings.LastIndexByte(m.ID, '@')
	if at < 0 {
		return m.ID, 0
	}
	told := lifeToldBy(m)
	if told == 0 || lifeID(m.ID[:at], told) != m.ID {
		return m.ID, 0 // the @ belongs to the child's own id
	}
	return m.ID[:at], told
}

func lifeID(child string, life store.Time) string { return fmt.Sprintf("%s@%d", child, life) }

// DerivedChild reports whether the id of the child that e has started was derived,
// so that another branch of the parent derives another one. The event says if it was
// chosen. Older events do not: there only the very id that would have been derived counts
// as derived, whatever other ids begin with.
func DerivedChild(parent string, e *store.Event, d *ChildBegun) bool {
	return d.Evaded || !d.Chosen && d.Child == DerivedChildID(parent, e.Key, e.Branch)
}

// DerivedChildID makes the id of a child from the parent's id and the call's key,
// with the branch once there is more than one.
func DerivedChildID(parent, key string, branch int32) string {
	id := parent + "/" + key
	if branch != 0 {
		id += fmt.Sprintf("~b%d", branch)
	}
	return id
}

// IsOutcomeOf reports whether m tells the outcome of the child with this row, and not that
// of an earlier run with its id.
func IsOutcomeOf(m *store.Message, row *store.Run) bool {
	id, life := ChildOf(m)
	if m.Kind != store.KindChild || id != row.ID {
		return false
	}
	if life == 0 { // the id does not name it
		life = lifeToldBy(m)
	}
	// Without a life there are two clocks to compare, of the process that started the child
	// and of that where it ended.
	return life == row.CreatedAt || life == 0 && m.At >= row.CreatedAt
}

// lifeToldBy returns the life of the child whose outcome m tells; 0: an earlier version has sent it.
func lifeToldBy(m *store.Message) store.Time {
	var d struct {
		Life store.Time `json:"life"`
	}
	if json.Unmarshal(m.Data, &d) != nil {
		return 0
	}
	return d.Life
}

// DerivedFor reports whether id is derived for a child that this call of this parent starts, on
// any branch.
func DerivedFor(id, parent, key string) bool {
	_, derived := derivedOn(id, parent, key)
	return derived
}

// derivedOn is DerivedFor, and returns the branch.
func derivedOn(id, parent, key string) (branch int32, derived bool) {
	on, ok := strings.CutPrefix(id, DerivedChildID(parent, key, 0))
	on, _, _ = strings.Cut(on, EvadedMark)
	if !ok || on == "" {
		return 0, ok
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(on, "~b"), 10, 32)
	return int32(n), err == nil && on == fmt.Sprintf("~b%d", n)
}

// EvadedMark precedes the suffix by which the id of an evaded child differs from the
// derived one. No name contains it, because its first character is percent-encoded there.
const EvadedMark = "~x"

// MessageData is the Data of a message.
type MessageData struct {
	Trace  string `json:"trace,omitempty"` // signal, request: context of the sender's span
	Reason string `json:"reason,omitempty"`
	Jump   bool   `json:"jump,omitempty"` // pause: asked for by a Jump, which lifts it
}

// DataOfMessage returns what the data of a message says, except for one that tells the
// outcome of a child.
func DataOfMessage(m *store.Message) (d MessageData, err error) {
	if len(m.Data) > 0 {
		err = json.Unmarshal(m.Data, &d)
	}
	return d, err
}

// ChildData is the Data of the message by which a child reports its outcome.
type ChildData struct {
	Status      store.Status `json:"status"`
	Workflow    string       `json:"workflow"`
	Reason      string       `json:"reason,omitempty"`
	Recoverable bool         `json:"recoverable,omitempty"`
	Error       *Error       `json:"error,omitempty"`
	Trace       string       `json:"trace,omitempty"` // context of its last segment
	Life        store.Time   `json:"life,omitempty"`  // creation of the child; 0: an earlier version has sent it
}

// NameLife returns the id of the message by which the child with this row reports its
// outcome, and notes the child's life in d. The id names it, too, unless it is used once.
func (d *ChildData) NameLife(row *store.Run) (id string) {
	d.Life = row.CreatedAt
	key, _, later := strings.Cut(row.ParentKey, "~")
	// A workflow may choose ids that begin like a derived one, and use them again. In a later
	// generation a derived id names the branch.
	if branch, derived := derivedOn(row.ID, row.Parent, key); derived && (branch != 0 || !later) {
		return row.ID
	}
	return lifeID(row.ID, d.Life)
}
