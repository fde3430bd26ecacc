package show

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A terminal shows what JSON says, and does none of it; a pipe gets it as it is.
func TestJSONOnATerminalHasNothingThatActs(t *testing.T) {
	const evil = "pay \u202eecila \u200b\u009b31m \U000e0041"
	for _, tty := range []bool{true, false} {
		var b bytes.Buffer
		s := &Stream{W: &b, TTY: tty}
		require.NoError(t, s.JSON(map[string]string{"prompt": evil}))
		var back map[string]string
		require.NoError(t, json.Unmarshal(b.Bytes(), &back))
		require.Equal(t, evil, back["prompt"])
		line := bytes.TrimRight(b.Bytes(), "\n")
		require.Equal(t, tty, Clean(string(line)), "%s", line)
	}
}
