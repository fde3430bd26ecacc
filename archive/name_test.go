package archive_test

import (
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/store"
)

// hostileIDs are ids that would be something else than a name, were they not
// encoded.
var hostileIDs = []string{
	"..", ".", "../../heads/main", "/etc/passwd", "..\\..\\x", "-rf", "--upload-pack=touch x", "a.lock", "a.LOCK", ".lock", "a..b", "a@{1}", "@", "HEAD",
	"a b", "a~1", "a^", "a:b", "a?b", "a*", "a[b]", "a\\b", "a/", "/a", "a//b", "a.", ".a", "%2E%2E", "a%", "a+", "a+/b", "名前", "🙂", "é", "e\u0301",
	"order-42", "order-42/ship", "order-42/ship/1", "v1.2.3", "A", "con", "refs/heads/main", "|touch x", "$(touch x)", "`x`", "a;b",
	strings.Repeat("x", store.MaxRunID), strings.Repeat(".", store.MaxRunID), strings.Repeat("名", store.MaxRunID/3), strings.Repeat("-", 181),
	strings.Repeat("a/", store.MaxRunID/2), strings.Repeat("a.lock", 100), strings.Repeat("x", 180), strings.Repeat("x", 181), strings.Repeat("x", 360),
}

func TestANameStaysBelowItsPrefixAndLeadsBackToItsRun(t *testing.T) {
	seen := map[string]string{}
	for _, id := range hostileIDs {
		name, err := archive.NameOf(id)
		require.NoError(t, err, "%q", id)
		back, err := archive.IDOf(name)
		require.NoError(t, err, "%q as %q", id, name)
		require.Equal(t, id, back)
		require.NotContains(t, seen, name)
		seen[name] = id
		checkName(t, name)
		require.NoError(t, exec.Command("git", "check-ref-format", "refs/durable/runs/"+name).Run(), "%q as %q", id, name)
	}
	for name := range seen {
		for other := range seen {
			require.False(t, strings.HasPrefix(other, name+"/"), "%q would be a file and a folder", name)
		}
	}
}

func checkName(t *testing.T, name string) {
	t.Helper()
	require.Equal(t, name, path.Clean(name))
	for _, part := range strings.Split(name, "/") {
		require.NotEmpty(t, part)
		require.LessOrEqual(t, len(part), 200)
		require.NotContains(t, ".-", part[:1])
		require.False(t, strings.HasSuffix(part, ".lock"))
	}
}

func TestWhatIsNoRunIDHasNoName(t *testing.T) {
	for _, id := range []string{"", "a\nb", "a\x00b", "\x7f", "\xff", strings.Repeat("x", store.MaxRunID+1)} {
		_, err := archive.NameOf(id)
		require.ErrorIs(t, err, store.ErrInvalid, "%q", id)
	}
	for _, name := range []string{"", ".", "..", "a/b", "a b", "%2e", "%", "%4", "%41", "a+/b", "x.", "-x", "a.lock", "%00"} {
		_, err := archive.IDOf(name)
		require.Error(t, err, "%q", name)
	}
}

func FuzzName(f *testing.F) {
	for _, id := range hostileIDs {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name, err := archive.NameOf(s); err == nil {
			checkName(t, name)
			back, err := archive.IDOf(name)
			require.NoError(t, err)
			require.Equal(t, s, back)
		}
		if id, err := archive.IDOf(s); err == nil {
			name, err := archive.NameOf(id)
			require.NoError(t, err)
			require.Equal(t, s, name)
		}
	})
}

func TestEveryIDIsArchivedAndListed(t *testing.T) {
	base := export(t, "template", 0)
	p := boot(t, emptyStore(), options())
	for name, a := range archives(t) {
		t.Run(name, func(t *testing.T) {
			for i, id := range hostileIDs {
				file := copyAs(t, p, base, id, i)
				require.NoError(t, a.Store(t.Context(), id, file), "%q", id)
				e, err := a.Get(t.Context(), id)
				require.NoError(t, err, "%q", id)
				require.Equal(t, file, e.File)
				require.Equal(t, id, e.ID)
			}
			require.ElementsMatch(t, hostileIDs, listed(t, a))
		})
	}
}
