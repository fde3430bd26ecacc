package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// The golden files hold what earlier versions have written. With this flag a
// test adds to them what they lack; what is there is never changed.
var updateGolden = flag.Bool("update-golden", false, "add what is missing to the golden files")

// goldenLines returns the lines of a golden file.
func goldenLines(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../store/testdata/v1", name))
	if errors.Is(err, fs.ErrNotExist) && *updateGolden {
		return nil
	}
	require.NoError(t, err)
	return slices.Collect(strings.Lines(string(b)))
}

func addGolden(t *testing.T, name string, v any) {
	t.Helper()
	require.True(t, *updateGolden, "%+v is in no golden file: go test ./durable -run %s -update-golden", v, t.Name())
	line, err := json.Marshal(v)
	require.NoError(t, err)
	f, err := os.OpenFile(filepath.Join("../store/testdata/v1", name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = f.Write(append(line, '\n'))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// goldenData is what the Data of an event or a message says in one field.
type goldenData struct {
	Of    string          `json:"of"` // "event", "message", "child"
	Field string          `json:"field"`
	Data  json.RawMessage `json:"data"`
}

// Every field that the Data of an event or a message ever had keeps its name and
// its form.
func TestDataOfEarlierVersionsIsUnderstood(t *testing.T) {
	kinds := map[string][]reflect.Type{
		"event": saidTypes(), "message": {reflect.TypeFor[history.MessageData]()}, "child": {reflect.TypeFor[history.ChildData]()},
	}
	covered := map[string]bool{}
	for _, line := range goldenLines(t, "data.jsonl") {
		var g goldenData
		require.NoError(t, json.Unmarshal([]byte(line), &g))
		known := false
		for _, typ := range kinds[g.Of] {
			v := reflect.New(typ)
			d := json.NewDecoder(bytes.NewReader(g.Data))
			d.DisallowUnknownFields()
			if !hasField(typ, g.Field) {
				continue // what others say
			}
			known = true
			require.NoError(t, d.Decode(v.Interface()), "%s", line)
			again, err := json.Marshal(v.Interface())
			require.NoError(t, err)
			require.JSONEq(t, string(g.Data), string(again))
		}
		require.True(t, known, "%s", line)
		covered[g.Of+" "+g.Field] = true
	}
	for of, types := range kinds {
		for f, typ := range fieldsOf(types) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if covered[of+" "+name] {
				continue
			}
			v := reflect.New(typ).Elem()
			fill(v.FieldByIndex(f.Index))
			data, err := json.Marshal(v.Interface())
			require.NoError(t, err)
			require.Contains(t, string(data), `"`+name+`":`)
			addGolden(t, "data.jsonl", goldenData{Of: of, Field: name, Data: data})
		}
	}
}

// saidTypes are the types of what events say.
func saidTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[history.Beginning](), reflect.TypeFor[history.Claim](), reflect.TypeFor[history.Continued](), reflect.TypeFor[history.End](), reflect.TypeFor[history.Stop](),
		reflect.TypeFor[history.Act](), reflect.TypeFor[history.Recovery](), reflect.TypeFor[history.Cancelling](), reflect.TypeFor[history.Marker](),
		reflect.TypeFor[history.Begun](), reflect.TypeFor[history.StepEnd](), reflect.TypeFor[history.Progress](), reflect.TypeFor[history.ItemEnd](), reflect.TypeFor[history.Timer](),
		reflect.TypeFor[history.WaitBegun](), reflect.TypeFor[history.WaitEnd](), reflect.TypeFor[history.ChildBegun](), reflect.TypeFor[history.ChildEnd](), reflect.TypeFor[history.Won](),
		reflect.TypeFor[history.Publication](), reflect.TypeFor[history.AttributeSet](),
	}
}

// fieldsOf yields the fields of several types, each with its type.
func fieldsOf(types []reflect.Type) iter.Seq2[reflect.StructField, reflect.Type] {
	return func(yield func(reflect.StructField, reflect.Type) bool) {
		for _, typ := range types {
			for _, f := range reflect.VisibleFields(typ) {
				if !f.Anonymous && !yield(f, typ) {
					return
				}
			}
		}
	}
}

// hasField reports whether a type has a field that is called so in JSON.
func hasField(typ reflect.Type, field string) bool {
	for _, f := range reflect.VisibleFields(typ) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && name == field {
			return true
		}
	}
	return false
}

// fill gives v a value that is not the zero one.
func fill(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*x = json.RawMessage(`{"n":1}`)
		return
	case *[]*ItemError:
		*x = []*ItemError{{Index: 1, Key: "items[1]", Err: errors.New("no"), Attempts: 1}, {Index: 7, Key: "items[7]", Err: store.ErrTooLarge, Attempts: 3}}
		return
	case **history.Error:
		*x = &history.Error{Message: "out of stock", Sentinel: "io.EOF", Permanent: true, Causes: []*history.Error{{Message: "why", Type: "durable.PanicError", Value: []byte(`{"value":"boom","stack":"main.go:7"}`)}}}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1_700_000_000_123_456 % (1 << 31))
	case reflect.Uint32:
		v.SetUint(1_700_000_000)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), elem)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	default:
		panic(fmt.Sprintf("no sample of a %s: add one", v.Type()))
	}
}

// goldenError is an error as it was recorded, and what it is to be found as.
type goldenError struct {
	Name    string          `json:"name"`
	Record  json.RawMessage `json:"record"`
	Message string          `json:"message"`
	Is      []string        `json:"is"` // names of registered sentinels and types
}

// Errors keep their message and their identity under every later version.
func TestErrorsOfEarlierVersionsAreRestored(t *testing.T) {
	k, err := newFaults(nil, nil)
	require.NoError(t, err)
	covered := map[string]bool{}
	for _, line := range goldenLines(t, "errors.jsonl") {
		var g goldenError
		require.NoError(t, json.Unmarshal([]byte(line), &g))
		var rec history.Error
		d := json.NewDecoder(bytes.NewReader(g.Record))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&rec))
		restored := k.Restore(&rec)
		require.Equal(t, g.Message, restored.Error())
		for _, name := range g.Is {
			require.True(t, isKind(restored, name), "%s is not %s any more", g.Name, name)
		}
		covered[g.Name] = true
	}
	for name, err := range goldenErrors() {
		if covered[name] {
			continue
		}
		record, jsonErr := json.Marshal(k.Record(err))
		require.NoError(t, jsonErr)
		g := goldenError{Name: name, Record: record, Message: err.Error()}
		for _, kind := range standardErrors() {
			if isKind(err, kind.kind.Name) {
				g.Is = append(g.Is, kind.kind.Name)
			}
		}
		addGolden(t, "errors.jsonl", g)
	}
}

func isKind(err error, name string) bool {
	for _, e := range standardErrors() {
		switch k := e.kind; {
		case k.Name != name:
		case k.Sentinel != nil:
			return errors.Is(err, k.Sentinel)
		default:
			return errors.As(err, reflect.New(k.Type).Interface())
		}
	}
	return false
}

// goldenErrors are one error of each kind that is registered always, and some of
// other forms.
func goldenErrors() map[string]error {
	all := map[string]error{
		"plain":   errors.New("plain"),
		"of Go":   fmt.Errorf("asking: %w", errors.New("no answer")),
		"wrapped": fmt.Errorf("reading: %w", fs.ErrNotExist),
		"joined":  errors.Join(errors.New("one"), fmt.Errorf("two: %w", context.Canceled)),
		"final":   Permanent(&PanicError{Value: "boom", Stack: "main.go:7"}),
	}
	for _, kind := range standardErrors() {
		if kind.kind.Sentinel != nil {
			all[kind.kind.Name] = kind.kind.Sentinel
			continue
		}
		v := reflect.New(kind.kind.Type.Elem())
		for i := range v.Elem().NumField() {
			f := v.Elem().Field(i)
			if !v.Elem().Type().Field(i).IsExported() {
				continue
			}
			if f.Type() == reflect.TypeFor[error]() {
				f.Set(reflect.ValueOf(store.ErrTooLarge))
			} else {
				fill(f)
			}
		}
		all[kind.kind.Name] = v.Interface().(error)
	}
	return all
}

// A history names the concrete types of errors, and a replay compares them by name. Where
// one stands in the code now does not change what it is called there.
func TestErrorsThatHaveMovedKeepTheNamesInHistories(t *testing.T) {
	const was = "*github.com/holdfast-dev/holdfast/durable."
	for name, err := range map[string]error{
		"unquotedError":         &payload.UnquotedError{},
		"mismatchError":         &payload.MismatchError{},
		"PanicError":            &PanicError{},
		"PayloadSizeError":      &PayloadSizeError{},
		"FutureVersionError":    &FutureVersionError{},
		"UnregisteredTypeError": &UnregisteredTypeError{},
		"ConcurrentCallError":   &misuse.ConcurrentCallError{},
		"ContextDeadlineError":  &misuse.ContextDeadlineError{},
		"ContinueError":         &misuse.ContinueError{},
		"ForgottenError":        &misuse.ForgottenError{},
		"OuterContextError":     &misuse.OuterContextError{},
		"SameWaitError":         &misuse.SameWaitError{},
		"ChildMissingError":     &childMissingError{},
		"DeadlineError":         &deadlineError{},
	} {
		require.Equal(t, was+name, faults.GoType(err))
	}
}
