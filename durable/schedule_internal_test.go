package durable

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// A new option of starts is stored with schedules, or refused by them: whoever adds one
// decides.
func TestEveryOptionOfAStartIsStoredWithASchedule(t *testing.T) {
	const stored, refused, notGiven = "stored", "refused", "not given by a caller, or of no effect on a fire"
	for typ, fields := range map[reflect.Type]map[string]string{
		reflect.TypeFor[startOptions](): {
			"attributes": stored, "headers": stored, "deadline": stored, "exclusive": stored, "line": stored,
			"signals": refused, "abandon": refused, "begin": refused, "tx": refused,
			"parent": notGiven, "parentKey": notGiven, "mail": notGiven, "err": notGiven, "input": notGiven, "signalID": notGiven, "scheduled": notGiven,
		},
		reflect.TypeFor[inLine](): {
			"queue": stored, "partition": stored, "dedup": stored, "priority": stored, "delay": stored, "at": refused, "debounce": refused, "enqueue": notGiven,
		},
	} {
		for i := range typ.NumField() {
			require.NotEmpty(t, fields[typ.Field(i).Name], "%s.%s: what does a schedule do with it?", typ, typ.Field(i).Name)
		}
		require.Equal(t, typ.NumField(), len(fields))
	}
}
