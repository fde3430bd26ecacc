package durable_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A message that nobody has taken stands in no event: its own sum tells that it is not
// what was sent, and the run stops before it acts on it.
func TestAMessageThatIsNotWhatWasSentIsFoundAndNotBelieved(t *testing.T) {
	damages := map[string]func(m *store.Message){
		"kind":    func(m *store.Message) { m.Kind = store.KindCancel },
		"name":    func(m *store.Message) { m.Name = "go" },
		"id":      func(m *store.Message) { m.ID += "x" },
		"at":      func(m *store.Message) { m.At++ },
		"data":    func(m *store.Message) { m.Data = append([]byte{'x'}, m.Data...) },
		"payload": func(m *store.Message) { m.Payload = bytes.Replace(m.Payload, []byte("yes"), []byte("yEs"), 1) },
	}
	// Every bit of the data, its sum and the name of that among it.
	sum := len(`{"sum":"01234567"}`)
	for i := range sum {
		for bit := range 8 {
			damages[fmt.Sprintf("bit %d of byte %d before the end of the data", bit, i)] = func(m *store.Message) { m.Data[len(m.Data)-1-i] ^= 1 << bit }
		}
	}
	for name, damage := range damages {
		inWorld(t, func(t *testing.T, w *world) {
			p := newRowProgram()
			rowStates()["on a signal"](t, w, p)
			w.boot(t, durable.Options{})
			require.NoError(t, durable.Signal(w.ctx(), "r", "elsewhere", "yes"))
			w.crash()
			w.expire()
			ran := p.bodies.Load()
			w.rotting(t, rot{run: "r", inbox: func(list []store.Message) []store.Message {
				list = slices.Clone(list)
				for i := range list {
					list[i].Data, list[i].Payload = slices.Clone(list[i].Data), slices.Clone(list[i].Payload)
					damage(&list[i])
				}
				return list
			}}, with(p.defs...))
			v := verify(t, w, "r")
			require.True(t, v.Corrupt(), "%s: %v", name, v.Findings)
			_, err := w.eng.Recover(w.ctx())
			require.NoError(t, err)
			pass(time.Hour)
			synctest.Wait()
			require.Equal(t, ran, p.bodies.Load(), name)
			require.Equal(t, durable.CodeDamaged, w.row("r").Code, "%s: %s", name, w.log)
		})
	}
}
