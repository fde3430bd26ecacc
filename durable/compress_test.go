package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// noise is text that does not compress.
func noise(n int) string {
	rng := rand.NewPCG(1, 2)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint64())
	}
	return string(b)
}

// rawCodec keeps text as it is: what JSON makes of noise always compresses.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Encode(v any) ([]byte, error) {
	if s, ok := v.(string); ok {
		return []byte(s), nil
	}
	return durable.JSON().Encode(v)
}

func (rawCodec) Decode(data []byte, v any) error {
	if s, ok := v.(*string); ok {
		*s = string(data)
		return nil
	}
	return durable.JSON().Decode(data, v)
}

func TestLargeValuesAreCompressedAndSmallOnesStayReadable(t *testing.T) {
	const large, small = 200_000, durable.DefaultCompressAbove
	for name, c := range map[string]struct {
		above int
		want  map[string]string
	}{
		"by default": {0, map[string]string{"text": "zstd", "small": "", "short": "", "noise": ""}},
		"above 10":   {10, map[string]string{"text": "zstd", "small": "zstd", "short": "", "noise": ""}},
		"never":      {-1, map[string]string{"text": "", "small": "", "short": "", "noise": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				values := map[string]string{"text": strings.Repeat("x", large), "small": strings.Repeat("y", small), "short": "short", "noise": noise(large)}
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					for _, name := range []string{"text", "small", "short", "noise"} {
						if v, err := durable.Step(ctx, name, func(context.Context) (string, error) { return values[name], nil }); err != nil || v != values[name] {
							return "", fmt.Errorf("%s: %w", name, err)
						}
					}
					return durable.Await[string](ctx, "s")
				})
				o := with(wf)
				o.CompressAbove, o.Codec = c.above, rawCodec{}
				w.boot(t, o)
				start(t, w, wf, "r", 0)
				synctest.Wait()
				kept := keptWith(t, w, "r")
				for name, want := range c.want {
					require.Equal(t, want, kept["step_completed "+name], name)
				}
				for _, ev := range w.events("r") {
					if kept["step_completed "+ev.Key] == "zstd" {
						require.Less(t, len(ev.Payload), 200)
					}
				}
				require.NoError(t, w.eng.Signal(w.ctx(), "r", "s", values["text"]))
				// Who does not compress reads it all the same.
				o.CompressAbove = -1
				w.reboot(t, o)
				got, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, values["text"], got)
			})
		})
	}
}

// A payload of a few bytes that would become gigabytes is refused before it
// takes the memory.
func TestAPayloadThatWouldBurstIsRefused(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	part := enc.EncodeAll(make([]byte, 8<<20), nil)
	var streamed bytes.Buffer // without its size in the header
	sw, err := zstd.NewWriter(&streamed, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	for range 64 {
		_, err = sw.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, sw.Close())
	for name, data := range map[string][]byte{
		"one frame":   enc.EncodeAll(make([]byte, 64<<20), nil),
		"many frames": bytes.Repeat(part, 100),
		"a stream":    streamed.Bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.open(t, durable.Options{})
				env := envelope.Envelope{Codec: "json", Type: "string", TypeVersion: 1, Compression: "zstd", Payload: data}
				ev := store.Event{Seq: 2, Type: store.StepCompleted, Key: "value", Payload: envelope.Seal(env.Header(), data)}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := operate.On(w.eng).Payload("r", ev)
				runtime.ReadMemStats(&after)
				require.ErrorIs(t, err, store.ErrTooLarge)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
			})
		})
	}
}

func TestACompressionOfTheFutureParksTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := threeSteps(&h)
		w.boot(t, with(wf))
		start(t, w, wf, "r", "in")
		synctest.Wait()
		w.crash()
		w.expire()
		rebuild(t, w, "r", true, func(e *store.Event) {
			if e.Key == "value" {
				e.Payload = reheader(e.Payload, " - - ", " brotli9 - ")
			}
		})
		w.boot(t, with(wf))
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, row.Code)
		require.Contains(t, row.Reason, `compressed with "brotli9", which this program does not know`)
	})
}

// The limit is that of the encoded value, whatever becomes of it afterwards, and
// what is refused has changed nothing.
func TestAValueThatIsTooLargeIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	const limit = 4096
	fits, over := strings.Repeat("z", limit-2), strings.Repeat("z", limit-1)
	for name, o := range map[string]durable.Options{
		"in clear": {}, "compressed": {CompressAbove: 10}, "encrypted": {Encrypt: keysOf("k1")},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, in string) (string, error) {
					v, err := durable.Step(ctx, "value", func(context.Context) (string, error) { return in, nil })
					if err != nil {
						return "", err
					}
					if _, err = durable.Step(ctx, "double", func(context.Context) (string, error) { return v + v, nil }); err == nil {
						return "", nil
					}
					return "", err
				})
				o.Workflows = []durable.Definition{wf}
				o.MaxPayload = limit
				w.boot(t, o)
				_, err := wf.Start(w.ctx(), "r", over)
				var size *durable.PayloadSizeError
				require.ErrorAs(t, err, &size)
				require.Equal(t, durable.PayloadSizeError{Size: limit + 1, Limit: limit}, *size)
				require.ErrorIs(t, err, store.ErrTooLarge)
				_, err = w.eng.Get(w.ctx(), "r")
				require.ErrorIs(t, err, durable.ErrNotFound)

				_, err = run(t, w, wf, "r", fits)
				size = nil
				require.ErrorAs(t, err, &size, "as recorded")
				require.Equal(t, durable.PayloadSizeError{Size: 2*limit - 2, Limit: limit}, *size)
				require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed value", "step_failed double 1", "workflow_failed"}, w.story("r"))

				start(t, w, durable.Ref[string, string]("nobody's"), "s", "")
				err = w.eng.Signal(w.ctx(), "s", "name", over)
				require.ErrorIs(t, err, store.ErrTooLarge)
				require.Zero(t, w.row("s").Inbox)
			})
		})
	}
}

// The largest value there may be fits into the store, also when encryption makes
// it larger.
func TestTheLargestValueFitsIntoTheStoreWhateverIsMadeOfIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(_ context.Context, in string) (int, error) { return len(in), nil })
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, Encrypt: keysOf(strings.Repeat("k", 64)), Codec: rawCodec{}})
		_, err := wf.Start(w.ctx(), "r", noise(store.DefaultLimits().Payload))
		var size *durable.PayloadSizeError
		require.ErrorAs(t, err, &size)
		n, err := run(t, w, wf, "r", noise(size.Limit))
		require.NoError(t, err)
		require.Equal(t, size.Limit, n)
	})
}

func TestALimitThatCannotBeKeptIsRefusedByOpen(t *testing.T) {
	for _, limit := range []int{-1, 1, durable.MinMaxPayload - 1, store.DefaultLimits().Payload + 1} {
		_, err := durable.Open(context.Background(), memory.Open(), durable.Options{MaxPayload: limit})
		require.ErrorIs(t, err, durable.ErrInvalid, "%d", limit)
		require.ErrorContains(t, err, "Options.MaxPayload")
	}
}
