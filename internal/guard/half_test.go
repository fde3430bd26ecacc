package guard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

func TestHalfOfAPairIsFoundInJSON(t *testing.T) {
	for _, whole := range []string{`""`, `"a"`, `"\\ud800"`, `"\u00e9"`, `"\ud83d\ude00"`, `["\ud83d\ude00\n","\ud83d\uDE00"]`, `"\ufffd"`, `"\"\\"`} {
		require.True(t, json.Valid([]byte(whole)), whole)
		require.False(t, guard.HalfCharacter([]byte(whole)), whole)
	}
	for _, half := range []string{`"\ud800"`, `"\udc00"`, `"\ud800a"`, `"\ud800\n"`, `"\ud800\ud800\udc00"`, `"\ud800\u0041"`, `["\ud800","\udc00"]`, `{"\uDBFF":1}`, `"\\\ud800"`} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(half), &v))
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.True(t, strings.Contains(string(text), "�") || strings.Contains(string(text), `\ufffd`), half)
		require.True(t, guard.HalfCharacter([]byte(half)), half)
	}
	for _, torn := range []string{`"\`, `"\u`, `"\ud8`, `\`, ``} {
		guard.HalfCharacter([]byte(torn)) // no panic
	}
}
