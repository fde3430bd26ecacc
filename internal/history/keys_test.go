package history_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
)

func TestKeysAreThoseOfJoinKey(t *testing.T) {
	for _, path := range []string{"", "items[17]", "b#9"} {
		var keys history.Keys
		join := func(name string, n int32) { require.Equal(t, history.JoinKey(path, name, n), keys.Join(path, name, n)) }
		for n := range int32(1201) {
			join("a", n+1)
			if n%7 == 3 {
				join("a9", n+1) // another name between two of one
			}
			if n%100 == 50 {
				join("a", 7)
				join("b", 8)
			}
		}
	}
}
