package guard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

func TestJSONThatADecoderWouldReplaceIsRefused(t *testing.T) {
	for text, fine := range map[string]bool{
		`"plain"`: true, `"\ud83d\ude00"`: true, `"\uD83D\uDE00"`: true, `"\\ud83d"`: true, `"\\\\ud83d"`: true, `"\ufffd"`: true, `{"\u00e9":"\n"}`: true, `"😀"`: true,
		``: true, `\`: true, `\u`: true,
		`"\ud83d"`: false, `"\ude00"`: false, `"\ude00\ud83d"`: false, `"\ud83dx"`: false, `"\ud83d\n"`: false, `"\ud83d\ud83d\ude00"`: false, `"\\\ud83d"`: false,
		`{"\udfff":1}`: false, "\"\xff\"": false, `\ud83d`: false,
	} {
		if err := guard.JSON([]byte(text)); fine {
			require.NoError(t, err, text)
		} else {
			require.Error(t, err, text)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`"\ud83d\ude00"`)
	f.Add(`"\\\ud83d"`)
	f.Fuzz(func(t *testing.T, text string) {
		var s string
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		replaced := strings.Count(s, "\ufffd") > strings.Count(text, "\ufffd")+strings.Count(strings.ToLower(text), `\ufffd`)
		if err := guard.JSON([]byte(text)); replaced != (err != nil) {
			t.Fatalf("%q is read as %q, and guard.JSON says %v", text, s, err)
		}
	})
}
