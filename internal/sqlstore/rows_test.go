package sqlstore_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// fill sets every exported field of a struct to a value that is not zero and
// not the same as its neighbours'.
func fill(v reflect.Value, n *int64) {
	for i := range v.NumField() {
		f := v.Field(i)
		*n++
		switch f.Kind() {
		case reflect.String:
			f.SetString(v.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int32, reflect.Int64:
			f.SetInt(*n)
		case reflect.Uint32:
			f.SetUint(uint64(*n))
		case reflect.Slice:
			f.SetBytes([]byte{byte(*n)})
		case reflect.Array:
			reflect.Copy(f, reflect.ValueOf([]byte("0123456789abcdef")))
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]string{"a": "b", "c": "d"}))
		case reflect.Pointer:
			if f.Type().Elem().Kind() == reflect.Struct {
				continue
			}
			p := reflect.New(f.Type().Elem())
			switch p.Elem().Kind() {
			case reflect.String:
				p.Elem().SetString(v.Type().Field(i).Name)
			case reflect.Bool:
				p.Elem().SetBool(true)
			default:
				p.Elem().SetInt(*n)
			}
			f.Set(p)
		}
	}
}

func columns(list string) []string {
	cols := strings.Split(list, ",")
	for i := range cols {
		cols[i] = strings.TrimSpace(cols[i])
	}
	return cols
}

func TestEveryFieldOfARunIsAColumn(t *testing.T) {
	var run store.Run
	var n int64
	fill(reflect.ValueOf(&run).Elem(), &n)
	cols := columns(sqlstore.RunColumns)[1:]
	vals := sqlstore.RunValues(&run)
	require.Len(t, vals, len(cols))

	var row sqlstore.RunRow
	byColumn := map[string]reflect.Value{}
	rv := reflect.ValueOf(&row).Elem()
	for i := range rv.NumField() {
		byColumn[rv.Type().Field(i).Tag.Get("db")] = rv.Field(i)
	}
	require.Len(t, byColumn, len(cols)+1)
	for i, col := range cols {
		f, ok := byColumn[col]
		require.True(t, ok, col)
		f.Set(reflect.ValueOf(vals[i]).Convert(f.Type()))
	}
	got := row.Run()
	require.EqualValues(t, len(run.Attributes), row.Attributes)
	got.Attributes = run.Attributes
	require.Equal(t, run, got)
}

func TestEveryFieldOfAPatchIsAssigned(t *testing.T) {
	var p store.RowPatch
	var n int64
	fill(reflect.ValueOf(&p).Elem(), &n)
	sets := sqlstore.Patch(&p)
	require.Len(t, sets, reflect.TypeOf(p).NumField())
	cols := columns(sqlstore.RunColumns)
	seen := map[string]bool{}
	for _, s := range sets {
		require.Contains(t, cols, s.Column)
		require.False(t, seen[s.Column], s.Column)
		seen[s.Column] = true
	}
	require.Empty(t, sqlstore.Patch(nil))
	require.Empty(t, sqlstore.Patch(&store.RowPatch{}))
}

func TestEveryFieldOfAnEventIsKept(t *testing.T) {
	var e store.Event
	var n int64
	fill(reflect.ValueOf(&e).Elem(), &n)
	e.Took, e.Active = 7*time.Microsecond, 8*time.Microsecond
	v := sqlstore.EventValues(&e)
	row := sqlstore.EventRow{
		Seq: e.Seq, Epoch: e.Epoch, Branch: int32(v[0].(int64)), Type: v[1].(string), Key: v[2].(string), Attempt: int32(v[3].(int64)),
		Ordinal: int32(v[4].(int64)), At: v[5].(int64), Took: v[6].(int64), Active: v[7].(int64), Steps: int32(v[8].(int64)),
		Data: []byte(v[9].(string)), Payload: v[10].([]byte), Sum: v[11].(int64),
	}
	require.Equal(t, e, row.Event())
	e.Data, e.Payload = nil, nil
	v = sqlstore.EventValues(&e)
	require.Nil(t, v[9])
	require.Nil(t, v[10])
}

func TestServedComesBack(t *testing.T) {
	for _, served := range [][]store.Served{nil, {{Workflow: "a", Versions: []string{"1", ""}}, {Workflow: "é", Queues: []string{"a", "ü"}}}} {
		text, err := sqlstore.FormatServed(served)
		require.NoError(t, err)
		got, err := sqlstore.ParseServed(text)
		require.NoError(t, err)
		require.Equal(t, served, got)
	}
	_, err := sqlstore.ParseServed("{")
	require.ErrorIs(t, err, store.ErrCorrupt)
}
