package view

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// told writes tokens for a test: a coloured one as <class text>, a hidden one as #.
func told(list []Token) string {
	var b strings.Builder
	for _, t := range list {
		switch {
		case t.Hidden:
			b.WriteString("#")
		case t.Class != "":
			b.WriteString("<" + t.Class + " " + t.Text + ">")
		default:
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

func TestThePiecesOfAJSONTextHaveColoursByTheirKind(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [1, "b", -2.5e+3], "c\"d": true}`: `{<s "a">: [<nn 1>, "b", <nn -2.5e+3>], <s "c\"d">: <lit true>}`,
		`"a: \\"`:                                `"a: \\"`,
		`null`:                                   `<lit null>`,
		`{"": {"</pre><b>": {}}}`:                `{<s "">: {<s "</pre><b>">: {}}}`,
		`[]`:                                     `[]`,
		`"`:                                      `"`, // of a text that is not JSON nothing is lost
		`{"a" !`:                                 `{"a" !`,
		``:                                       ``,
	} {
		require.Equal(t, want, told(Tokens(text, nil)), text)
	}
	long := "[" + strings.Repeat("1,", 3*tokensShown) + "1]"
	tokens := Tokens(long, nil)
	require.Less(t, len(tokens), tokensShown+2)
	require.Equal(t, long, strings.NewReplacer("<nn ", "", ">", "").Replace(told(tokens)))
}

func TestWhatWasRedactedIsAChipWhereItStood(t *testing.T) {
	for _, c := range []struct{ whole, now, want string }{
		{`{"card": "4242 4242", "n": 1}`, `{"card": "[redacted]", "n": 1}`, `{<s "card">: #, <s "n">: <nn 1>}`},
		{`{"text": "card 4242 of Ada"}`, `{"text": "card *** of Ada"}`, `{<s "text">: "card # of Ada"}`},
		{`{"text": "card 4242"}`, `{"text": "card ***"}`, `{<s "text">: "card #"}`},
		{`{"n": 4242}`, `{"n": null}`, `{<s "n">: #}`},
		{`{"ada": 1}`, `{"***": 1}`, `{#: <nn 1>}`},
		// Of another shape: shown as it is, and nothing of what it was.
		{`{"a": 1, "b": 2}`, `{"a": 1}`, `{<s "a">: <nn 1>}`},
		{`{"a": [1]}`, `"gone"`, `"gone"`},
	} {
		text := PayloadText(payloadOf([]byte(c.now)))
		got := told(Tokens(text, []byte(c.whole)))
		require.Equal(t, c.want, strings.Join(strings.Fields(strings.NewReplacer("{\n  ", "{", "\n}", "}").Replace(got)), " "), c.whole)
	}
}

// Whatever is redacted, nothing of it comes out, and whatever is not comes out whole.
func FuzzTokensOfJSON(f *testing.F) {
	f.Add(`{"card": "4242 4242", "n": [1, true, null, "x"]}`, "4242")
	f.Add(`"secret and more"`, "secret")
	f.Add(`{"secret": {"a": "b secret"}}`, "secret")
	f.Fuzz(func(t *testing.T, text, secret string) {
		require.Equal(t, text, whole(Tokens(text, nil)))
		if secret == "" || !json.Valid([]byte(text)) {
			return
		}
		now := strings.ReplaceAll(text, secret, "0")
		if !json.Valid([]byte(now)) {
			return
		}
		shown := PayloadText(payloadOf([]byte(now)))
		for _, tok := range Tokens(shown, compact([]byte(text))) {
			require.Contains(t, shown, tok.Text, "only of what is shown")
		}
	})
}

func whole(list []Token) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.Text)
	}
	return b.String()
}
