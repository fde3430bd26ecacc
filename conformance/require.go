package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// require stops a case at the first failure and describes it: the clause, and where
// the two values first differ, by the names of their fields. The messages of the cases
// come before that.
var require requirer

type requirer struct{}

// failer is what require needs of a *T, a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// fail stops the case. what is the difference; why is the case's own message: a text,
// or a format with its arguments.
func (requirer) fail(t failer, what string, why []any) {
	t.Helper()
	if len(why) > 0 {
		said := fmt.Sprint(why[0])
		if format, ok := why[0].(string); ok {
			said = fmt.Sprintf(format, why[1:]...)
		}
		what = said + ": " + what
	}
	t.Errorf("%s", what)
	t.FailNow()
}

// Equal compares got with want, field by field.
func (r requirer) Equal(t failer, want, got any, why ...any) {
	t.Helper()
	if d := difference(want, got); d != "" {
		r.fail(t, d, why)
	}
}

// Fields compares the named fields of a struct.
func (r requirer) Fields(t failer, want fields, got any, why ...any) {
	t.Helper()
	if d := want.difference(got); d != "" {
		r.fail(t, d, why)
	}
}

func (r requirer) NotEqual(t failer, not, got any, why ...any) {
	t.Helper()
	if difference(not, got) == "" {
		r.fail(t, "it is "+show(got), why)
	}
}

func (r requirer) True(t failer, holds bool, why ...any) {
	t.Helper()
	if !holds {
		r.fail(t, "this does not hold", why)
	}
}

func (r requirer) False(t failer, holds bool, why ...any) {
	t.Helper()
	if holds {
		r.fail(t, "the opposite holds", why)
	}
}

func (r requirer) NoError(t failer, err error, why ...any) {
	t.Helper()
	if err != nil {
		r.fail(t, "unexpected error: "+err.Error(), why)
	}
}

func (r requirer) Error(t failer, err error, why ...any) {
	t.Helper()
	if err == nil {
		r.fail(t, "there is no error", why)
	}
}

func (r requirer) ErrorIs(t failer, err, want error, why ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		r.fail(t, fmt.Sprintf("the error is %s, want one that matches %q", errText(err), want), why)
	}
}

func (r requirer) NotErrorIs(t failer, err, not error, why ...any) {
	t.Helper()
	if errors.Is(err, not) {
		r.fail(t, fmt.Sprintf("the error is %s, want one that does not match %q", errText(err), not), why)
	}
}

func (r requirer) ErrorAs(t failer, err error, target any, why ...any) {
	t.Helper()
	if !errors.As(err, target) {
		r.fail(t, fmt.Sprintf("the error is %s, want a %s", errText(err), reflect.TypeOf(target).Elem()), why)
	}
}

func errText(err error) string {
	if err == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", err)
}

func (r requirer) Len(t failer, list any, want int, why ...any) {
	t.Helper()
	if n := reflect.ValueOf(list).Len(); n != want {
		r.fail(t, fmt.Sprintf("there are %d, want %d: %s", n, want, show(list)), why)
	}
}

func (r requirer) Empty(t failer, v any, why ...any) {
	t.Helper()
	if !empty(v) {
		r.fail(t, "it should be empty and is "+show(v), why)
	}
}

func (r requirer) NotEmpty(t failer, v any, why ...any) {
	t.Helper()
	if empty(v) {
		r.fail(t, "it is empty", why)
	}
}

func empty(v any) bool {
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Slice, reflect.Map, reflect.String:
		return rv.Len() == 0
	default:
		return rv.IsZero()
	}
}

func (r requirer) Zero(t failer, v any, why ...any) {
	t.Helper()
	if !reflect.ValueOf(v).IsZero() {
		r.fail(t, "it is "+show(v)+", want its zero value", why)
	}
}

func (r requirer) NotZero(t failer, v any, why ...any) {
	t.Helper()
	if reflect.ValueOf(v).IsZero() {
		r.fail(t, "it is "+show(v), why)
	}
}

func (r requirer) NotNil(t failer, v any, why ...any) {
	t.Helper()
	if rv := reflect.ValueOf(v); !rv.IsValid() || rv.IsNil() {
		r.fail(t, "it is not there (nil)", why)
	}
}

func (r requirer) Nil(t failer, v any, why ...any) {
	t.Helper()
	if rv := reflect.ValueOf(v); rv.IsValid() && !rv.IsNil() {
		r.fail(t, "it should be nil and is "+show(v), why)
	}
}

func (r requirer) Positive(t failer, n any, why ...any) {
	t.Helper()
	if number(n) <= 0 {
		r.fail(t, fmt.Sprintf("it is %v, want more than 0", n), why)
	}
}

func (r requirer) Greater(t failer, a, b any, why ...any) {
	t.Helper()
	if number(a) <= number(b) {
		r.fail(t, fmt.Sprintf("%v is not greater than %v", a, b), why)
	}
}

func (r requirer) GreaterOrEqual(t failer, a, b any, why ...any) {
	t.Helper()
	if number(a) < number(b) {
		r.fail(t, fmt.Sprintf("%v is less than %v", a, b), why)
	}
}

func (r requirer) Less(t failer, a, b any, why ...any) {
	t.Helper()
	if number(a) >= number(b) {
		r.fail(t, fmt.Sprintf("%v is not less than %v", a, b), why)
	}
}

func (r requirer) LessOrEqual(t failer, a, b any, why ...any) {
	t.Helper()
	if number(a) > number(b) {
		r.fail(t, fmt.Sprintf("%v is greater than %v", a, b), why)
	}
}

func number(n any) int64 { return reflect.ValueOf(n).Int() }

// Contains says that list, a slice, has an element.
func (r requirer) Contains(t failer, list, element any, why ...any) {
	t.Helper()
	if !has(list, element) {
		r.fail(t, fmt.Sprintf("%s is missing in %s", show(element), show(list)), why)
	}
}

func (r requirer) NotContains(t failer, list, element any, why ...any) {
	t.Helper()
	if has(list, element) {
		r.fail(t, fmt.Sprintf("%s should not be in %s", show(element), show(list)), why)
	}
}

func has(list, element any) bool {
	rv := reflect.ValueOf(list)
	for i := range rv.Len() {
		if difference(element, rv.Index(i).Interface()) == "" {
			return true
		}
	}
	return false
}

// ElementsMatch compares two slices in any order.
func (r requirer) ElementsMatch(t failer, want, got any, why ...any) {
	t.Helper()
	var missing, extra []string
	count := func(list any, element any) int {
		n := 0
		for i, rv := 0, reflect.ValueOf(list); i < rv.Len(); i++ {
			if difference(element, rv.Index(i).Interface()) == "" {
				n++
			}
		}
		return n
	}
	for i, rv := 0, reflect.ValueOf(want); i < rv.Len(); i++ {
		if e := rv.Index(i).Interface(); count(got, e) < count(want, e) {
			missing = append(missing, show(e))
		}
	}
	for i, rv := 0, reflect.ValueOf(got); i < rv.Len(); i++ {
		if e := rv.Index(i).Interface(); count(want, e) < count(got, e) {
			extra = append(extra, show(e))
		}
	}
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, "missing: "+strings.Join(missing, ", "))
	}
	if len(extra) > 0 {
		parts = append(parts, "there and not wanted: "+strings.Join(extra, ", "))
	}
	if len(parts) > 0 {
		r.fail(t, strings.Join(parts, "; "), why)
	}
}

func (r requirer) Fail(t failer, what string, why ...any) {
	t.Helper()
	r.fail(t, what, why)
}

func (r requirer) FailNow(t failer, what string) {
	t.Helper()
	r.fail(t, what, nil)
}
