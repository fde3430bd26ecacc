package durable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestAProgramCanShowAndDecodeWhatAHistoryHolds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		x := newEverywhere(&hold{open: true}, v2Of)
		o := typed(2, x.defs()...)
		o.Encrypt, o.CompressAbove = keysOf("k1"), 20
		w.boot(t, o)
		x.begin(t, w)
		x.values(t, w)
		shown := map[string]string{}
		for ev, err := range w.eng.History(w.ctx(), "r") {
			require.NoError(t, err)
			p, err := operate.On(w.eng).Payload("r", ev)
			require.NoError(t, err)
			shown[strings.TrimSpace(string(ev.Type)+" "+ev.Key)] = p.String()
			var order orderV2
			switch err := operate.On(w.eng).Decode("r", ev, &order); {
			case len(ev.Payload) == 0:
				require.NoError(t, err)
				require.Zero(t, order)
				require.Zero(t, p)
			case p.Type == "order":
				require.NoError(t, err)
				require.Equal(t, "Ada", order.First)
				require.Equal(t, operate.Payload{Type: "order", Version: 2, Codec: "json", Compression: p.Compression, KeyID: "k1", Data: p.Data}, p)
			default:
				var und *durable.UndecodableError
				require.ErrorAs(t, err, &und, "a slice is no order")
				require.Equal(t, ev.Key, und.Key)
			}
		}
		require.Equal(t, `{"First":"Ada","Last":"L2"}`, shown["step_completed value"])
		require.Equal(t, `[{"First":"Ada","Last":"L4"},{"First":"Ada","Last":"L4"}]`, shown["step_completed slice"])
		require.Empty(t, shown["workflow_started"])

		ev := w.events("r")[0]
		require.ErrorIs(t, operate.On(w.eng).Decode("r", ev, orderV2{}), durable.ErrInvalid)
		require.ErrorIs(t, operate.On(w.eng).Decode("r", ev, nil), durable.ErrInvalid)
		require.ErrorIs(t, operate.On(w.eng).Decode("r", ev, (*orderV2)(nil)), durable.ErrInvalid)
		w.open(t, durable.Options{})
		_, err := operate.On(w.eng).Payload("r", ev)
		require.ErrorIs(t, err, durable.ErrNoKey)
	})
}

func TestAPayloadIsShownAsWhatItIs(t *testing.T) {
	for want, p := range map[string]operate.Payload{
		"":                  {},
		`{"a":1}`:           {Codec: "mine", Data: []byte("{\n  \"a\": 1\n}\n")},
		"plain text":        {Codec: "mine", Data: []byte("plain text")},
		"(4 bytes of mine)": {Codec: "mine", Data: []byte("a\x1b[0")},
		"(2 bytes of mine)": {Codec: "mine", Data: []byte{0xff, 0xfe}},
	} {
		require.Equal(t, want, p.String())
	}
}

// Whatever stands in the store, a reader gets a value or an error.
func FuzzPayload(f *testing.F) {
	seal := func(compression, key, payload string) []byte {
		e := envelope.Envelope{Codec: "json", Type: "order", TypeVersion: 1, Compression: compression, KeyID: key, Payload: []byte(payload)}
		return envelope.Seal(e.Header(), e.Payload)
	}
	ctx := context.Background()
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Encrypt: keysOf("k1"), Types: []durable.TypeDef{release[4]}, Logger: quiet, Lease: time.Hour})
	require.NoError(f, err)
	f.Cleanup(func() { _ = eng.Close() })
	f.Add([]byte("hf1 json order@2 - - 00000000\n{}"))
	f.Add(seal("", "", `{"Name":"Ada Lovelace"}`))
	f.Add(seal("zstd", "", "\x28\xb5\x2f\xfd\x04\x00\x29\x00\x00{}{}{"))
	f.Add(seal("", "k1", strings.Repeat("x", 40)))
	f.Add(seal("zstd", "k1", ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Also what has a sound checksum must do no harm.
		sound := b
		if head, payload, ok := strings.Cut(string(b), "\n"); ok && len(head) > 8 {
			sound = envelope.Seal(head[:len(head)-8], []byte(payload))
		}
		for _, env := range [][]byte{b, sound} {
			ev := store.Event{Type: store.StepCompleted, Key: "k", Payload: env}
			p, err := operate.On(eng).Payload("r", ev)
			if err == nil && len(p.Data) > store.DefaultLimits().Payload {
				t.Fatalf("%d bytes", len(p.Data))
			}
			_ = p.String()
			var o orderV4
			_ = operate.On(eng).Decode("r", ev, &o)
			var list []*orderV4
			_ = operate.On(eng).Decode("r", ev, &list)
			var m map[string]orderV4
			_ = operate.On(eng).Decode("r", ev, &m)
		}
	})
}
