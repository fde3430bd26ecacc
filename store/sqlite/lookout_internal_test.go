//go:build cgo && linux

package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// Once the kernel has told of a change of the notices, a lookout looks at them when the kernel tells,
// and not by itself.
func TestALookoutLooksWhenTheKernelTells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	a, err := OpenOptions(path, Options{Watch: time.Hour})
	require.NoError(t, err)
	defer a.Close()
	b, err := OpenOptions(path, Options{Watch: time.Hour})
	require.NoError(t, err)
	defer b.Close()
	o := newLookout(b)
	defer o.close()
	var got []string
	told := func(what string) {
		t.Helper()
		select {
		case <-o.noticed:
		case <-time.After(10 * time.Second):
			require.Fail(t, "the kernel does not tell of "+what)
		}
		o.hear()
		for !o.lookAt.IsZero() { // it does not look twice in watchLeast
			o.look(t.Context(), func(n store.Notice) { got = append(got, n.RunIDs...) })
		}
	}
	told("the proof that was asked for")
	for _, id := range []string{"x", "y"} {
		a.tell(notice.Of(id))
		for len(got) == 0 {
			told("a notice")
		}
		require.Equal(t, []string{id}, got)
		got = nil
	}
}
