package count_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/count"
)

func TestACountAgreesWithItsNoun(t *testing.T) {
	for _, c := range []struct {
		n    int
		noun string
		want string
	}{
		{0, "run", "0 runs"}, {1, "run", "1 run"}, {2, "run", "2 runs"}, {1, "failed attempt", "1 failed attempt"}, {3, "failed attempt", "3 failed attempts"},
		{1, "process", "1 process"}, {2, "process", "2 processes"}, {2, "branch", "2 branches"}, {2, "child", "2 children"}, {12408, "event", "12,408 events"},
	} {
		require.Equal(t, c.want, count.Of(c.n, c.noun))
	}
	require.Equal(t, "is", count.Verb(1, "is", "are"))
	require.Equal(t, "are", count.Verb(0, "is", "are"))
	require.Equal(t, "-1,234,567", count.Number(-1234567))
	require.Equal(t, "-123", count.Number(-123))
	require.Equal(t, "999", count.Number(int64(999)))
}
