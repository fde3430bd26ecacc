package durable_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// With an archive, retention deletes a run once the archive has it, however old it
// is; a person who asks for all gets all.
func TestRetentionWaitsForTheArchive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		s.fail = errors.New("disk full")
		wf := quick("w")
		o := with(wf)
		o.Archive, o.Retention = s, durable.Retention{KeepFor: time.Hour, Every: -1}
		o.Lease = rareBeats
		w.boot(t, o)
		for _, id := range []string{"a", "b"} {
			_, err := run(t, w, wf, id, 1)
			require.NoError(t, err)
		}
		pass(30 * day)
		require.Equal(t, operate.Cleaned{Kept: 2, Unarchived: 2}, clean(t, w, operate.CleanOptions{}))
		s.set(func() { s.fail = nil })
		w.reboot(t, o)
		pass(time.Minute)
		require.Equal(t, operate.Cleaned{Runs: 2}, clean(t, w, operate.CleanOptions{}))
		require.Empty(t, w.ids())

		s.set(func() { s.fail = errors.New("disk full") })
		_, err := run(t, w, wf, "c", 1)
		require.NoError(t, err)
		require.Equal(t, operate.Cleaned{Kept: 1, Unarchived: 1}, clean(t, w, operate.CleanOptions{All: true}))
		only := &durable.Retention{OnlyArchived: true}
		w.open(t, with(wf)) // a program without the archive does not know of it
		require.Equal(t, operate.Cleaned{Kept: 1, Unarchived: 1}, clean(t, w, operate.CleanOptions{All: true, Retention: only}))
		dry := clean(t, w, operate.CleanOptions{All: true, Force: true, Retention: only, DryRun: true})
		require.Equal(t, operate.Cleaned{Runs: 1, IDs: []string{"c"}, Epochs: []int64{w.row("c").Epoch}}, dry)
		require.Equal(t, operate.Cleaned{Runs: 1}, clean(t, w, operate.CleanOptions{All: true, Force: true, Retention: only}))
	})
}
