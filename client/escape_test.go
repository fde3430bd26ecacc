package client_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

func TestAnEscapedIdIsOneSegmentThatComesBack(t *testing.T) {
	ids := []string{".", "..", "history", "~.", "~~..", "~history", "~", "~~", "~x", "...", "a/b", "a b", "%2E", "history2", "Ä", "a:b"}
	seen := map[string]string{}
	for _, id := range ids {
		escaped := client.EscapeID(id)
		require.NotContains(t, seen, escaped, "%q and %q", id, seen[escaped])
		seen[escaped] = id
		// As a browser resolves it, and as a server sees it.
		base, err := url.Parse("http://host/ops/runs/")
		require.NoError(t, err)
		to, err := base.Parse("/ops/runs/" + escaped + "/rows")
		require.NoError(t, err)
		require.Equal(t, "/ops/runs/"+escaped+"/rows", to.EscapedPath(), "%q", id)
		arrived, err := url.PathUnescape(escaped)
		require.NoError(t, err)
		require.Equal(t, id, client.UnescapeID(arrived), "%q", id)
	}
	require.Equal(t, "~..", client.EscapeID(".."))
	require.Equal(t, "..", client.UnescapeID(".."))
}

func FuzzEscapeID(f *testing.F) {
	for _, id := range []string{"", ".", "~..", "~~history", "a/%2E"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		arrived, err := url.PathUnescape(client.EscapeID(id))
		require.NoError(t, err)
		require.Equal(t, id, client.UnescapeID(arrived))
	})
}
