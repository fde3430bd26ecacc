package store_test

import (
	"encoding"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/store"
)

type record interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// notKept are the fields that are no part of a record.
var notKept = map[string][]string{"Run": {"Last"}, "Message": {"IfLive"}, "Executor": {"Leaving", "Live"}}

func records() []record {
	return []record{&store.Run{}, &store.Event{}, &store.Branch{}, &store.Message{}, &store.Executor{}}
}

// fill sets a field to something that is neither zero nor what the others have.
func fill(v reflect.Value, n int) {
	switch v.Interface().(type) {
	case time.Duration:
		v.SetInt(int64(time.Hour) + int64(n)*int64(time.Microsecond))
		return
	case []store.Served:
		v.Set(reflect.ValueOf([]store.Served{{Workflow: "a", Versions: []string{"1", ""}}, {Workflow: "", Queues: []string{"q", " \x00"}}, {Workflow: "b ", Versions: []string{" 2\x00"}}}))
		return
	case map[string]string:
		v.Set(reflect.ValueOf(map[string]string{"": "x", "name ": " value\n", "n": ""}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(" text \x00\xff ü " + string(rune('a'+n%26)) + " ")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MinInt64 + int64(n))
	case reflect.Int32:
		v.SetInt(math.MinInt32 + int64(n))
	case reflect.Uint32:
		v.SetUint(uint64(math.MaxUint32 - n))
	case reflect.Slice:
		v.SetBytes([]byte{0, byte(n), 255})
	case reflect.Array:
		reflect.Copy(v, reflect.ValueOf([]byte{0, byte(n), 255}))
	}
}

func TestARecordComesBackFieldByField(t *testing.T) {
	for _, r := range records() {
		typ := reflect.TypeOf(r).Elem()
		all := reflect.New(typ)
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			skip := false
			for _, n := range notKept[typ.Name()] {
				skip = skip || n == name
			}
			if skip {
				continue
			}
			alone := reflect.New(typ)
			fill(alone.Elem().Field(i), i)
			fill(all.Elem().Field(i), i)
			require.False(t, alone.Elem().Field(i).IsZero(), "%s.%s is filled", typ, name)
			b, err := alone.Interface().(record).AppendBinary([]byte("before"))
			require.NoError(t, err)
			back := reflect.New(typ)
			require.NoError(t, back.Interface().(record).UnmarshalBinary(b[len("before"):]))
			require.Equal(t, alone.Interface(), back.Interface(), "%s.%s alone", typ, name)
		}
		b, err := all.Interface().(record).AppendBinary(nil)
		require.NoError(t, err)
		back := reflect.New(typ)
		require.NoError(t, back.Interface().(record).UnmarshalBinary(b))
		require.Equal(t, all.Interface(), back.Interface())
		clear(b) // the reader's buffer
		require.Equal(t, all.Interface(), back.Interface(), "nothing of the buffer was kept")
	}
}

// The bytes of a record are a promise: what a program of today wrote is read for
// ever.
func TestARecordOfTodayIsReadForEver(t *testing.T) {
	const golden = "\x01\x02\x0e\x04\x12\x06\x03\x09\x0estep_completed\x0b\x06charge\x0c\x02\x0e\x04\x10\xc8\x01\x12\xdc\x17\x14\xb8\x17\x16\x06\x19\x02{}\x1b\x02\x00\xff\x1c\x54"
	e := store.Event{
		Seq: 7, Epoch: 9, Branch: -2, Type: store.StepCompleted, Key: "charge", Attempt: 1, Ordinal: 2, At: 100,
		Took: 1518 * time.Microsecond, Active: 1500 * time.Microsecond, Steps: 3, Data: []byte("{}"), Payload: []byte("\x00\xff"), Sum: 42,
	}
	b, err := e.AppendBinary(nil)
	require.NoError(t, err)
	require.Equal(t, golden, string(b[:len(b)-4]))
	var back store.Event
	require.NoError(t, back.UnmarshalBinary(b))
	require.Equal(t, e, back)
}

func TestADamagedRecordIsNeverBelieved(t *testing.T) {
	r := store.Run{ID: "r", Workflow: "w", Status: store.Running, Epoch: 1, Attributes: map[string]string{"a": "b"}}
	b, err := r.AppendBinary(nil)
	require.NoError(t, err)
	for i := range b {
		var back store.Run
		require.ErrorIs(t, back.UnmarshalBinary(b[:i]), store.ErrCorrupt, "cut after %d bytes", i)
		bad := append([]byte(nil), b...)
		bad[i] ^= 4
		require.ErrorIs(t, back.UnmarshalBinary(bad), store.ErrCorrupt, "byte %d", i)
	}
	rapid.Check(t, func(rt *rapid.T) {
		for _, r := range records() {
			require.Error(rt, r.UnmarshalBinary(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")))
		}
	})
}

func TestARecordOfANewerProgramIsRefused(t *testing.T) {
	// A branch has seven fields, so a run's ninth is one of tomorrow to it.
	b, err := (&store.Run{Partition: "p"}).AppendBinary(nil)
	require.NoError(t, err)
	var n store.Branch
	err = n.UnmarshalBinary(b)
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorContains(t, err, "field 9")
}
