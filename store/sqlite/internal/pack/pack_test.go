//go:build cgo

package pack_test

import (
	"bytes"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/pack"
)

// packed has SQLite pack events, in a database of this encoding.
func packed(t *testing.T, encoding string, events []store.Event) (b []byte) {
	t.Helper()
	require.NoError(t, pack.Register())
	db, err := sql.Open("sqlite3", ":memory:")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("PRAGMA encoding = '" + encoding + "'; CREATE TABLE e (n INTEGER PRIMARY KEY, key TEXT, data TEXT, payload BLOB)")
	require.NoError(t, err)
	for i, e := range events {
		data := sql.NullString{String: string(e.Data), Valid: e.Data != nil}
		_, err = db.Exec("INSERT INTO e VALUES (?, ?, ?, ?)", i, e.Key, data, e.Payload)
		require.NoError(t, err)
	}
	require.NoError(t, db.QueryRow(`SELECT holdfast_pack(n + 1, -1, 2147483647, -2147483648, 5, 1800000000000000, 7, 8, 9, 4294967295,
		'step_completed', key, data, payload) FROM e`).Scan(&b))
	return b
}

func written() []store.Event {
	events := []store.Event{
		{Key: "a"}, {Key: "", Data: []byte{}, Payload: []byte{}}, {Key: "né/\x00🦊", Data: []byte(`{"a":"é"}`), Payload: []byte("\x00\xff")},
		{Key: strings.Repeat("k", 1024), Payload: bytes.Repeat([]byte{7}, 255)}, {Payload: bytes.Repeat([]byte{8}, 256)}, {Payload: bytes.Repeat([]byte{9}, 100_000)},
	}
	for i := range events {
		e := &events[i]
		e.Seq, e.Epoch, e.Branch, e.Attempt, e.Ordinal, e.At = int64(i)+1, -1, 1<<31-1, -1<<31, 5, 1_800_000_000_000_000
		e.Took, e.Active, e.Steps, e.Sum, e.Type = 7*time.Microsecond, 8*time.Microsecond, 9, 1<<32-1, store.StepCompleted
	}
	return events
}

func TestWhatIsPackedIsWhatWasWritten(t *testing.T) {
	for _, encoding := range []string{"UTF-8", "UTF-16le", "UTF-16be"} {
		want := written()
		if encoding != "UTF-8" { // where SQLite ends a text at NUL
			want[2].Key = "né/🦊"
		}
		got, err := pack.Events(packed(t, encoding, want), 0, nil)
		require.NoError(t, err)
		require.Equal(t, want, got, encoding)
	}
}

func TestNothingPackedIsNoEvent(t *testing.T) {
	got, err := pack.Events(packed(t, "UTF-8", nil), 0, nil)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestEventsEndAtAGap(t *testing.T) {
	b := packed(t, "UTF-8", written()[:3])
	got, err := pack.Events(append(b, b...), 0, nil)
	require.NoError(t, err)
	require.Len(t, got, 3)
	got, err = pack.Events(b, 1, nil)
	require.NoError(t, err)
	require.Empty(t, got, "the first of them is not the second")
}

// An event that is kept keeps no other one from being changed.
func TestAppendingToAnEventLeavesItsNeighbours(t *testing.T) {
	want := []store.Event{{Payload: []byte("one")}, {Payload: []byte("two")}}
	got, err := pack.Events(packed(t, "UTF-8", want), 0, nil)
	require.NoError(t, err)
	_ = append(got[0].Payload, "!!!"...)
	require.Equal(t, "two", string(got[1].Payload))
}

func TestWhatWasCutOffIsRefused(t *testing.T) {
	b := packed(t, "UTF-8", written()[:4])
	whole := 0
	for n := range len(b) {
		if _, err := pack.Events(b[:n:n], 0, nil); err == nil {
			whole++
		}
	}
	require.Equal(t, 4, whole, "only what ends between two events, or is empty, is of the form")
}

// A replay takes apart a chunk for each 512 events; what it allocates sets the collector to work.
func TestEventsAreTakenApartInFewAllocations(t *testing.T) {
	var events []store.Event
	for i := range 512 {
		events = append(events, store.Event{Seq: int64(i) + 1, Key: "step#1", Payload: []byte("hf1 json int - - dbea4e35\n1")})
	}
	b := packed(t, "UTF-8", events)
	got := 0
	allocs := testing.AllocsPerRun(20, func() {
		list, err := pack.Events(b, 0, nil)
		if err == nil {
			got = len(list)
		}
	})
	require.Equal(t, 512, got)
	require.LessOrEqual(t, allocs, 4.0) // the events, their keys, their payloads, and the name of their type
}
