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

// twoHandles returns two handles on one file that do not poll.
func twoHandles(t *testing.T) (a, b *Store) {
	path := filepath.Join(t.TempDir(), "app.db")
	for _, s := range []**Store{&a, &b} {
		var err error
		*s, err = OpenOptions(path, Options{Watch: time.Hour})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, (*s).Close()) })
	}
	return a, b
}

// Once the kernel has told of a change of the notices, a lookout looks at them when the kernel tells,
// and not by itself.
func TestALookoutLooksWhenTheKernelTells(t *testing.T) {
	a, b := twoHandles(t)
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

// The kernel tells of a commit of ours before the commit has ended. A lookout waits for that, and does not
// look for requests that nobody else can have written.
func TestALookoutDoesNotLookAtWhatOnlyThisHandleHasWritten(t *testing.T) {
	a, b := twoHandles(t)
	o := newLookout(a)
	defer o.close()
	o.patience = time.Minute
	looks := func() int64 {
		before := a.Counts().Reads
		w := <-a.writer // a commit that is not over yet
		time.AfterFunc(time.Millisecond, func() { a.writer <- w })
		o.walHeard = true
		o.lookForRequests(t.Context(), time.Now(), func(store.Notice) {})
		return a.Counts().Reads - before
	}
	require.Zero(t, looks())
	_, err := b.Beat(t.Context(), store.Executor{ID: "x", Lease: time.Minute})
	require.NoError(t, err)
	require.EqualValues(t, 1, looks(), "another handle has written")
	require.Zero(t, looks())
}
