package sqlstore_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

var dialect = sqlstore.Dialect{
	Param:      func(n int) string { return fmt.Sprintf("?%d", n) },
	AnyOf:      func(column, param string) string { return column + " IN (SELECT value FROM json_each(" + param + "))" },
	Array:      func(list []string) any { return strings.Join(list, ",") },
	Bar:        func(column string) string { return "+" + column },
	Unfinished: "status NOT IN ('completed', 'failed', 'cancelled')", Owned: []string{"owner <> ''"}, Mail: "inbox > seen", Queued: true, LimitFirst: true,
	Runs: "durable_runs", Attributes: "durable_attributes", LastSeq: "(SELECT max(seq) FROM durable_events WHERE run_no = no)",
}

const hostile = `x'; DROP TABLE durable_runs; --`

func TestWhatACallerGivesIsNeverPartOfTheSQL(t *testing.T) {
	var f store.Filter
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		switch fv := v.Field(i); fv.Kind() {
		case reflect.Slice:
			s := reflect.MakeSlice(fv.Type(), 1, 1)
			s.Index(0).SetString(hostile)
			fv.Set(s)
		case reflect.String:
			fv.SetString(hostile)
		case reflect.Map:
			fv.Set(reflect.ValueOf(map[string]string{hostile: hostile}))
		case reflect.Int64:
			fv.SetInt(7)
		case reflect.Bool:
			fv.SetBool(true)
		}
	}
	f.After = ""
	l, err := dialect.List(f, []string{hostile})
	require.NoError(t, err)
	require.NotContains(t, l.SQL, "DROP")
	for i := range l.Args {
		require.Regexp(t, fmt.Sprintf(`\?%d\b`, i+1), l.SQL, "a server refuses a parameter of which it does not learn the type")
	}
	for _, col := range []string{"id", "workflow", "version", "status", "code", "queue", "owner", "parent", "created_at", "updated_at", "ended_at", "inbox"} {
		require.Contains(t, l.SQL, col)
	}
	_, _, err = dialect.Count(f, hostile, nil)
	require.ErrorIs(t, err, store.ErrInvalid)
	sql, args, err := dialect.Count(f, store.ByQueue, nil)
	require.NoError(t, err)
	require.NotContains(t, sql, "DROP")
	require.Contains(t, sql, "GROUP BY queue")
	for i := range args {
		require.Regexp(t, fmt.Sprintf(`\?%d\b`, i+1), sql)
	}
}

// Each combination of filters makes a statement that uses all its parameters.
func TestEveryParameterIsUsed(t *testing.T) {
	some := []string{"b", "a", "b"}
	set := []func(*store.Filter){
		func(f *store.Filter) { f.IDs = some },
		func(f *store.Filter) { f.IDPrefix = "p" },
		func(f *store.Filter) { f.Statuses = []store.Status{store.Failed, store.Running} },
		func(f *store.Filter) { f.Codes = some },
		func(f *store.Filter) { f.Queues = some },
		func(f *store.Filter) { f.Owners = some },
		func(f *store.Filter) { f.Parents = some },
		func(f *store.Filter) { f.Attributes = map[string]string{"x": "1", "y": "2"} },
		func(f *store.Filter) { f.EndedFrom, f.EndedTo = 1, 2 },
		func(f *store.Filter) { f.Orphaned, f.Mail, f.Paused = true, true, true },
	}
	for _, gone := range [][]string{nil, {"g"}, {"g", "h"}} {
		for bits := range 1 << len(set) {
			var f store.Filter
			for i := range set {
				if bits>>i&1 == 1 {
					set[i](&f)
				}
			}
			l, err := dialect.List(f, gone)
			require.NoError(t, err)
			sql, args, err := dialect.Count(f, store.ByStatus, gone)
			require.NoError(t, err)
			for i := range l.Args {
				require.Contains(t, l.SQL+" ", fmt.Sprintf("?%d", i+1))
			}
			for i := range args {
				require.Contains(t, sql, fmt.Sprintf("?%d", i+1))
			}
		}
	}
}

func TestACursorBelongsToItsFilterAndOrder(t *testing.T) {
	f := store.Filter{Workflows: []string{"a"}, Attributes: map[string]string{"x": "1", "y": "2"}}
	l, err := dialect.List(f, nil)
	require.NoError(t, err)
	next := l.Next(&sqlstore.RunRow{CreatedAt: -5, No: 9})

	same := f
	same.After, same.Limit, same.WithLast = next, 3, true
	l, err = dialect.List(same, nil)
	require.NoError(t, err)
	require.Contains(t, l.Args, any(int64(-5)))
	require.Contains(t, l.Args, any(int64(9)))

	for name, change := range map[string]func(*store.Filter){
		"filter":  func(f *store.Filter) { f.Workflows = []string{"b"} },
		"order":   func(f *store.Filter) { f.OldestFirst = true },
		"damaged": func(f *store.Filter) { f.After = next[:len(next)-1] },
		"foreign": func(f *store.Filter) { f.After = "abc" },
		"noise":   func(f *store.Filter) { f.After = "!" + next },
	} {
		g := f
		g.After = next
		change(&g)
		_, err := dialect.List(g, nil)
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
}

func TestPageSize(t *testing.T) {
	for asked, want := range map[int]int{0: 100, -1: 100, 7: 7, 5000: sqlstore.MaxPage} {
		l, err := dialect.List(store.Filter{Limit: asked}, nil)
		require.NoError(t, err)
		require.Equal(t, want, l.Limit)
		require.EqualValues(t, want+1, l.Args[len(l.Args)-1])
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{
		"a": "b", "az": "a{", "a\U0010FFFF": "b", "\uD7FF": "\uE000", "é": "ê", "a\xff": "b", "\xfe": "\xff",
	} {
		got, ok := sqlstore.PrefixEnd(prefix)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Greater(t, got, prefix+"\U0010FFFF")
	}
	for _, prefix := range []string{"", "\U0010FFFF", "\xff\xff"} {
		_, ok := sqlstore.PrefixEnd(prefix)
		require.False(t, ok)
	}
}
