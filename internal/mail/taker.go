package mail

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Taker returns the key and the sample of the open wait that is going to take m
// once it is sent: the first one that wants m and that no earlier message is for.
// The sample is nil if there is no such wait, or if m is there already.
func Taker(m *store.Message, open []store.Event, h *store.History, p *history.Past) (key string, sample json.RawMessage) {
	var waits []*Wait
	samples := map[string]json.RawMessage{}
	for i := range open {
		d, err := history.Of[history.WaitBegun](&open[i])
		if err != nil {
			return "", nil
		}
		key := open[i].Key
		waits = append(waits, &Wait{Key: key, Kind: history.MessageKind(d.Kind), Name: d.Name, Answer: history.WaitKey(key, h.Run.Branch)})
		samples[key] = d.Sample
	}
	taker := func(m *store.Message) int {
		return slices.IndexFunc(waits, func(w *Wait) bool { return w.wants(m) })
	}
	for i := range h.Inbox {
		before := &h.Inbox[i]
		if m.ID != "" && before.ID == m.ID && before.Kind == m.Kind {
			return "", nil
		}
		if p.Consumed(before) {
			continue
		}
		if n := taker(before); n >= 0 {
			waits = slices.Delete(waits, n, n+1)
		}
	}
	if n := taker(m); n >= 0 {
		return waits[n].Key, samples[waits[n].Key]
	}
	return "", nil
}
