package host_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/host"
)

func TestALongNameOfABuildKeepsWhatTellsItApart(t *testing.T) {
	require.Equal(t, "v1.2.3", host.BuildLabel("v1.2.3"))
	long := strings.Repeat("é", 60)
	one, other := host.BuildLabel(long+"1"), host.BuildLabel(long+"2")
	require.NotEqual(t, one, other)
	for _, label := range []string{one, other} {
		require.LessOrEqual(t, len(label), 64)
		require.True(t, strings.HasPrefix(label, "éé"))
	}
	require.Equal(t, one, host.BuildLabel(long+"1"))
}
