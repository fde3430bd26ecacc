package matching

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFirstDifferenceNamesTheEditWhereItCan(t *testing.T) {
	for name, c := range map[string]struct {
		recorded  string
		ordinal   int
		call      string
		otherKind bool
		declared  string
		want      string
	}{
		"a new call":                         {"a b c", 2, "x", false, "", ChangeInsertedOrRenamed},
		"a new call of another kind":         {"a b c", 2, "x", true, "", ChangeInserted},
		"a new call, the old one declared":   {"a b c", 2, "x", false, "a x b c", ChangeInserted},
		"a new call in its place":            {"a b c", 2, "x", false, "a x c", ChangeRenamed},
		"a name that differs in case":        {"a sendMail", 2, "send-mail", false, "", ChangeRenamed},
		"a later call":                       {"a b c", 2, "c", false, "", ChangeRemovedOrReordered},
		"a later call, the other declared":   {"a b c", 2, "c", false, "a c b", ChangeReordered},
		"a later call, the other is gone":    {"a b c", 2, "c", false, "a c", ChangeRemoved},
		"one repetition more":                {"s s#2 b", 3, "s#3", false, "", ChangeInserted},
		"one repetition less":                {"s s#2 s#3 b", 3, "b", false, "", ChangeRemoved},
		"one repetition less in an item":     {"m[1]/s m[1]/s#2 m[1]/b", 2, "m[1]/b", false, "", ChangeRemoved},
		"the name of a repetition has moved": {"b s s#2", 1, "s", false, "", ChangeRemovedOrReordered},
	} {
		t.Run(name, func(t *testing.T) {
			got := changeOf(strings.Fields(c.recorded), c.ordinal, c.call, !c.otherKind, strings.Fields(c.declared))
			if c.declared == "" {
				got = changeOf(strings.Fields(c.recorded), c.ordinal, c.call, !c.otherKind, nil)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func FuzzEditOf(f *testing.F) {
	f.Add("a b c", uint8(1), "x", "a x")
	f.Add("s s#2", uint8(0), "s#3", "")
	f.Fuzz(func(t *testing.T, recorded string, at uint8, call, declared string) {
		keys := strings.Fields(recorded)
		if len(keys) == 0 {
			return
		}
		n := int(at)%len(keys) + 1
		if keys[n-1] == call {
			return
		}
		edit := changeOf(keys, n, call, true, strings.Fields(declared))
		text := (&Difference{RunID: "r", Workflow: "w", Recorded: keys, Ordinal: n, Call: call, Change: edit}).String()
		require.NotEmpty(t, edit)
		require.Contains(t, text, keys[n-1])
	})
}
