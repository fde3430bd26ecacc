package store_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestCheckRunID(t *testing.T) {
	for _, id := range []string{"a", " ", "order-42", "Ärger 🚚", "a/b#c@d~e[f]%", strings.Repeat("x", store.MaxRunID), "\u200b"} {
		require.NoError(t, store.CheckRunID(id), "%q", id)
	}
	for id, reason := range map[string]string{
		"":                                    "must not be empty",
		strings.Repeat("x", store.MaxRunID+1): "is 1025 bytes long; at most 1024 are allowed",
		"a\xffb":                              "is not valid UTF-8",
		"a\x00b":                              "contains the control character U+0000",
		"a\nb":                                "contains the control character U+000A",
		"a\u0085b":                            "contains the control character U+0085",
		strings.Repeat("🚚", store.MaxRunID/4+1): "is 1028 bytes long; at most 1024 are allowed",
	} {
		err := store.CheckRunID(id)
		require.ErrorIs(t, err, store.ErrInvalid, "%q", id)
		var ne *store.NameError
		require.ErrorAs(t, err, &ne)
		require.Equal(t, []string{"run id", reason}, []string{ne.Kind, ne.Reason})
		require.LessOrEqual(t, len(ne.Value), 80, "a long value is cut")
	}
}

func TestCheckName(t *testing.T) {
	require.NoError(t, store.CheckName("step name", strings.Repeat("x", store.MaxName)))
	err := store.CheckName("step name", strings.Repeat("x", store.MaxName+1))
	require.ErrorIs(t, err, store.ErrInvalid)
	require.Contains(t, err.Error(), "step name")
	require.Contains(t, err.Error(), "at most 255")
}

func FuzzCheckRunID(f *testing.F) {
	for _, s := range []string{"", "a", "\x00", "\xff", "🚚", "\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		err := store.CheckRunID(id)
		ok := id != "" && len(id) <= store.MaxRunID && utf8.ValidString(id)
		for _, r := range id {
			ok = ok && (r >= 0x20 && r < 0x7f || r >= 0xa0)
		}
		if ok != (err == nil) || err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	})
}
