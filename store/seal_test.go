package store_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/store"
)

func sealed() store.Event {
	return store.Event{
		Seq: 7, Epoch: 1, Branch: 2, Type: store.StepCompleted, Key: "charge", Attempt: 3, Ordinal: 4, At: 5, Took: 6 * time.Microsecond,
		Active: 8 * time.Second, Steps: 9, Data: []byte(`{"a":1}`), Payload: []byte("payload"),
	}
}

// The sum is in stored data, so it must never come out differently. The value
// was worked out apart from Seal, byte by byte, by the layout Seal documents.
func TestSealIsStable(t *testing.T) {
	e := sealed()
	require.Equal(t, "500d0691", fmt.Sprintf("%08x", store.Seal("order-42", 0xdeadbeef, &e)))
}

func TestSealCoversEveryFieldButTheEpochAndItself(t *testing.T) {
	base := sealed()
	sum := store.Seal("r", 1, &base)
	for name, edit := range map[string]func(*store.Event){
		"Seq": func(e *store.Event) { e.Seq++ }, "Branch": func(e *store.Event) { e.Branch++ }, "Type": func(e *store.Event) { e.Type += "x" },
		"Key": func(e *store.Event) { e.Key += "x" }, "Attempt": func(e *store.Event) { e.Attempt++ }, "Ordinal": func(e *store.Event) { e.Ordinal++ },
		"At": func(e *store.Event) { e.At++ }, "Took": func(e *store.Event) { e.Took += time.Microsecond }, "Active": func(e *store.Event) { e.Active += time.Microsecond },
		"Steps": func(e *store.Event) { e.Steps++ }, "Data": func(e *store.Event) { e.Data = []byte(`{"a":2}`) }, "Payload": func(e *store.Event) { e.Payload = []byte("payloae") },
		"no Data": func(e *store.Event) { e.Data = nil }, "no Payload": func(e *store.Event) { e.Payload = nil },
		"Data to Payload": func(e *store.Event) { e.Data, e.Payload = e.Data[:6], append([]byte("}"), e.Payload...) },
		"Type to Key":     func(e *store.Event) { e.Type, e.Key = e.Type[:3], string(e.Type[3:])+e.Key },
	} {
		e := sealed()
		edit(&e)
		require.NotEqual(t, sum, store.Seal("r", 1, &e), "%s", name)
	}
	require.NotEqual(t, sum, store.Seal("s", 1, &base), "the run")
	require.NotEqual(t, sum, store.Seal("r", 2, &base), "the sum before")
	for name, edit := range map[string]func(*store.Event){
		"Epoch": func(e *store.Event) { e.Epoch++ }, "Sum": func(e *store.Event) { e.Sum++ },
		"less than a microsecond": func(e *store.Event) { e.Took += 999 * time.Nanosecond },
		"bytes of its own":        func(e *store.Event) { e.Data = bytes.Clone(e.Data) },
	} {
		e := sealed()
		edit(&e)
		require.Equal(t, sum, store.Seal("r", 1, &e), "%s", name)
	}
}

// A backend may read empty bytes back as nil, or the other way round.
func TestSealTakesEmptyForNil(t *testing.T) {
	a, b := sealed(), sealed()
	a.Data, a.Payload, b.Data, b.Payload = nil, []byte{}, []byte{}, nil
	require.Equal(t, store.Seal("r", 1, &a), store.Seal("r", 1, &b))
}

func TestSealFindsAnyDamagedByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := store.Event{Seq: 2, Type: store.StepCompleted, Payload: rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(t, "payload")}
		sum := store.Seal("r", 1, &e)
		i := rapid.IntRange(0, len(e.Payload)-1).Draw(t, "at")
		e.Payload[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if store.Seal("r", 1, &e) == sum {
			t.Fatalf("byte %d of %d is not covered", i, len(e.Payload))
		}
	})
}

func TestSealMayBeCalledAtOnce(t *testing.T) {
	e := sealed()
	want := store.Seal("r", 1, &e)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if got := store.Seal("r", 1, &e); got != want {
					t.Errorf("got %08x, want %08x", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkSeal(b *testing.B) {
	e := sealed()
	b.ReportAllocs()
	for b.Loop() {
		store.Seal("order-42", 1, &e)
	}
}
