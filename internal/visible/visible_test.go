package visible_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/visible"
)

func TestWhatActsIsWrittenOut(t *testing.T) {
	for text, line := range map[string]string{
		"plain":                    "plain",
		"שלום, मुझे, 👩\u200d🚀":     "שלום, मुझे, 👩\u200d🚀",
		"pay \u202eecila\u202c":    `pay \u202eecila\u202c`,
		"\u2066a\u2069 \u061c":     `\u2066a\u2069 \u061c`,
		"ad\u200bmin \u2060\ufeff": `ad\u200bmin \u2060\ufeff`,
		"\x1b[31m \u009b31m":       `\x1b[31m \x9b31m`,
		"a\nb\tc\rd\x00\x7f":       `a\nb\tc\rd\x00\x7f`,
		"tag \U000e0041":           `tag \U000e0041`,
		"\u3164\u115f":             `\u3164\u115f`,
		"\u2028":                   `\u2028`,
		"\xff\xed\xa0\x80":         `\xff\xed\xa0\x80`,
	} {
		require.Equal(t, line, visible.Line(text), "%q", text)
	}
}

func TestJSONKeepsItsValue(t *testing.T) {
	for _, v := range []string{"plain", "pay \u202eecila", "\u009b31m", "tag \U000e0041", "ad\u200bmin", "👩\u200d🚀"} {
		text, err := json.MarshalIndent(map[string]string{v: v}, "", "  ")
		require.NoError(t, err)
		shown := visible.JSON(text)
		require.Equal(t, string(shown), visible.Line(string(shown)[:1])+string(shown)[1:])
		var back map[string]string
		require.NoError(t, json.Unmarshal(shown, &back), "%s", shown)
		require.Equal(t, map[string]string{v: v}, back)
		for _, r := range string(shown) {
			require.True(t, r == '\n' || visible.Line(string(r)) == string(r), "%U in %s", r, shown)
		}
	}
}

func TestAPageKeepsWhatAFormSendsBack(t *testing.T) {
	page := "<h1>\u202ea</h1><input type=\"hidden\" name=\"wait\" value=\"\u202eb\"><option value=\"\u202ec\">\u202ec</option><a title=\"\u202ed\">\xff\x1b</a>\n"
	require.Equal(t, "<h1>\\u202ea</h1><input type=\"hidden\" name=\"wait\" value=\"\u202eb\"><option value=\"\u202ec\">\\u202ec</option><a title=\"\\u202ed\">\ufffd\\u001b</a>\n", string(visible.HTML([]byte(page))))
	require.Equal(t, "<p>plain</p>", string(visible.HTML([]byte("<p>plain</p>"))))
}
