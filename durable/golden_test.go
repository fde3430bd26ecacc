package durable_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// updating reports whether missing golden files are to be written; those that
// are there never change. The flag is defined beside the other golden tests.
func updating() bool { return flag.Lookup("update-golden").Value.String() == "true" }

const goldenDir = "../store/testdata/v1/"

// The keys that golden payloads are encrypted with.
func goldenKeys() durable.Keys { return keysOf("k1", "k2", "k3") }

// goldenEnvelope is a payload as it was kept once, and what it stands for.
type goldenEnvelope struct {
	Name     string          `json:"name"`
	Run      string          `json:"run"`
	Type     store.Type      `json:"type"`
	Key      string          `json:"key"`
	Branch   int32           `json:"branch"`
	Attempt  int32           `json:"attempt"`
	Envelope []byte          `json:"envelope"`
	Recorded string          `json:"recorded"` // "order@2"
	KeptWith string          `json:"kept_with"`
	Value    json.RawMessage `json:"value"`
}

// keeping says how a payload is kept: "json zstd -".
func keeping(p operate.Payload) string {
	return p.Codec + " " + cmp.Or(p.Compression, "-") + " " + cmp.Or(p.KeyID, "-")
}

func TestEnvelopesOfEarlierVersionsAreRead(t *testing.T) {
	b, err := os.ReadFile(goldenDir + "envelopes.jsonl")
	if errors.Is(err, fs.ErrNotExist) && updating() {
		b = writeGoldenEnvelopes(t)
	} else {
		require.NoError(t, err)
	}
	inWorld(t, func(t *testing.T, w *world) {
		o := typed(4)
		o.Codec, o.Encrypt = hexCodec{}, goldenKeys()
		w.open(t, o)
		kinds := map[string]int{}
		for line := range bytes.Lines(b) {
			var g goldenEnvelope
			require.NoError(t, json.Unmarshal(line, &g))
			ev := store.Event{Type: g.Type, Key: g.Key, Branch: g.Branch, Attempt: g.Attempt, Payload: g.Envelope}
			p, err := operate.On(w.eng).Payload(g.Run, ev)
			require.NoError(t, err, g.Name)
			require.Equal(t, g.Recorded, fmt.Sprintf("%s@%d", p.Type, p.Version), g.Name)
			require.Equal(t, g.KeptWith, keeping(p), g.Name)
			var v any
			require.NoError(t, operate.On(w.eng).Decode(g.Run, ev, &v), g.Name)
			got, err := json.Marshal(v)
			require.NoError(t, err)
			require.JSONEq(t, string(g.Value), string(got), g.Name)
			if strings.HasPrefix(g.Recorded, "order@") {
				var o orderV4
				require.NoError(t, operate.On(w.eng).Decode(g.Run, ev, &o), g.Name)
				require.Equal(t, v4Of(0), o, g.Name)
			}
			kinds[g.KeptWith]++
		}
		require.Len(t, kinds, 10, "each codec, in clear, compressed, encrypted, both: %v", kinds)
	})
}

// writeGoldenEnvelopes has the engine keep values in every way it can.
func writeGoldenEnvelopes(t *testing.T) []byte {
	var b bytes.Buffer
	add := func(t *testing.T, w *world, name string) {
		for _, ev := range w.events("r") {
			p, err := operate.On(w.eng).Payload("r", ev)
			require.NoError(t, err)
			if p.Codec == "" {
				continue
			}
			var v any
			require.NoError(t, operate.On(w.eng).Decode("r", ev, &v))
			value, err := json.Marshal(v)
			require.NoError(t, err)
			g := goldenEnvelope{
				Name: name, Run: "r", Type: ev.Type, Key: ev.Key, Branch: ev.Branch, Attempt: ev.Attempt, Envelope: ev.Payload,
				Recorded: fmt.Sprintf("%s@%d", p.Type, p.Version), KeptWith: keeping(p), Value: value,
			}
			line, err := json.Marshal(g)
			require.NoError(t, err)
			b.Write(append(line, '\n'))
		}
	}
	long := strings.Repeat("long ", 50)
	for name, o := range map[string]durable.Options{
		"plain": {}, "compressed": {CompressAbove: 1}, "encrypted": {Encrypt: keysOf("k2"), CompressAbove: -1}, "both": {Encrypt: keysOf("k3"), CompressAbove: 1},
	} {
		for _, codec := range []durable.Codec{durable.JSON(), hexCodec{}} {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, in orderV2) (string, error) {
					if _, err := durable.Step(ctx, "int", func(context.Context) (int, error) { return 7, nil }); err != nil {
						return "", err
					}
					return long, nil
				})
				o.Codec, o.Workflows, o.Types = codec, []durable.Definition{wf}, []durable.TypeDef{release[2]}
				w.boot(t, o)
				_, err := run(t, w, wf, "r", v2Of(0))
				require.NoError(t, err)
				add(t, w, name)
			})
		}
	}
	require.NoError(t, os.WriteFile(goldenDir+"envelopes.jsonl", b.Bytes(), 0o644))
	return b.Bytes()
}

// goldenLine is a line of a golden history: its run, an event, or a message.
type goldenLine struct {
	Run     *goldenRun     `json:"run,omitempty"`
	Event   *store.Event   `json:"event,omitempty"`
	Message *store.Message `json:"message,omitempty"`
}

type goldenRun struct {
	ID        string `json:"id"`
	Workflow  string `json:"workflow"`
	Version   string `json:"version"`
	InputHash string `json:"input_hash"`
}

// A run that an earlier version began is ended by this one: it finds every value,
// does nothing again that was done, and recognises its start. The program is
// everywhere, with a value in each place there is; it must not change.
func TestRunsOfEarlierVersionsGoOn(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, w *world){
		"history-plain.jsonl": func(t *testing.T, w *world) { killed(t, w, new(hold), typed(0), v1Of) },
		"history-sealed.jsonl": func(t *testing.T, w *world) {
			o := typed(2)
			o.Encrypt, o.CompressAbove = goldenKeys(), 30
			killed(t, w, new(hold), o, v2Of)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(goldenDir + name); errors.Is(err, fs.ErrNotExist) && updating() {
				inWorld(t, func(t *testing.T, w *world) { begin(t, w); writeGoldenHistory(t, w, name) })
			}
			inWorld(t, func(t *testing.T, w *world) {
				readGoldenHistory(t, w, name)
				recorded := len(w.events("r"))
				x := newEverywhere(&hold{open: true}, v4Of)
				o := typed(4, x.defs()...)
				o.Encrypt = goldenKeys()
				w.boot(t, o)
				again, err := x.wf.Start(w.ctx(), "r", v4Of(inInput))
				require.NoError(t, err)
				_, err = again.Wait(w.ctx())
				require.NoError(t, err)
				for place, v := range x.values(t, w) {
					require.Equal(t, v4Of(place), v, places[place])
				}
				// What was done is not done again.
				require.Equal(t, []string{"run_resumed", "step_completed seek", "signal_received late", "workflow_completed"}, w.story("r")[recorded:])
			})
		})
	}
}

func writeGoldenHistory(t *testing.T, w *world, name string) {
	t.Helper()
	h, err := w.data.Load(context.Background(), "r", store.Cursor{})
	require.NoError(t, err)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	require.NoError(t, enc.Encode(goldenLine{Run: &goldenRun{ID: "r", Workflow: h.Run.Workflow, Version: h.Run.Version, InputHash: hex.EncodeToString(h.Run.InputHash[:])}}))
	for ev, err := range h.Events {
		require.NoError(t, err)
		require.NoError(t, enc.Encode(goldenLine{Event: &ev}))
	}
	for i := range h.Inbox {
		require.NoError(t, enc.Encode(goldenLine{Message: &h.Inbox[i]}))
	}
	require.NoError(t, os.WriteFile(goldenDir+name, b.Bytes(), 0o644))
}

// readGoldenHistory puts a run into the store as it was recorded, interrupted.
func readGoldenHistory(t *testing.T, w *world, name string) {
	t.Helper()
	f, err := os.Open(goldenDir + name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	row := store.Run{Status: store.Interrupted}
	create := store.Change{Expect: store.Expect{Absent: true}, Create: &row}
	var mail []store.Message
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		var g goldenLine
		require.NoError(t, d.Decode(&g))
		switch {
		case g.Run != nil:
			row.ID, row.Workflow, row.Version, row.InitialVersion = g.Run.ID, g.Run.Workflow, g.Run.Version, g.Run.Version
			hash, err := hex.DecodeString(g.Run.InputHash)
			require.NoError(t, err)
			copy(row.InputHash[:], hash)
		case g.Event != nil:
			create.Events = append(create.Events, *g.Event)
		case g.Message != nil:
			mail = append(mail, *g.Message)
		}
	}
	require.NoError(t, lines.Err())
	create.RunID, row.Epoch, row.CreatedAt = row.ID, create.Events[0].Epoch+1000, create.Events[0].At
	require.NoError(t, w.data.Commit(context.Background(), []store.Change{create})[0])
	require.NoError(t, w.data.Commit(context.Background(), []store.Change{{Send: mail}})[0])
	// The recorded times are of a day on which the world has not begun yet.
	time.Sleep(time.Until(create.Events[len(create.Events)-1].At.Time()))
}
