//go:build cgo

package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// Two processes write to one file, and both are killed, again and again:
// everything they were told is durable is there, and nothing is there by halves.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	const processes = 2
	lives := 20
	if os.Getenv("DURABLE_SOAK") != "" {
		lives = 500
	}
	path := file(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acked := make(map[string]int64)
	for i := range lives {
		var writers []*child
		for k := range processes {
			writers = append(writers, spawn(t, "write", path, fmt.Sprintf("life-%d-%d", i, k)))
		}
		for _, c := range writers {
			require.True(t, c.lines.Scan(), "it begins to write")
			id, n := fields(t, c.lines.Text())
			acked[id] = n
		}
		for _, c := range writers {
			time.AfterFunc(time.Duration(random.IntN(20_000))*time.Microsecond, func() { _ = c.cmd.Process.Kill() })
		}
		for _, c := range writers {
			for _, line := range c.rest() {
				id, n := fields(t, line)
				acked[id] = n
			}
			_ = c.cmd.Wait() // tells of the kill
		}
	}
	st := open(t, path, sqlite.Options{})
	total := 0
	for id, n := range acked {
		_, events := load(t, st, id)
		require.GreaterOrEqual(t, int64(len(events)), n, id)
		sound(t, id, events)
		total += len(events)
	}
	require.Equal(t, "ok", value[string](t, connect(t, path, ""), "PRAGMA integrity_check"))
	tried.Say(t, "store-kills", "kills=%d runs=%d events=%d lost=0", lives*processes, len(acked), total)
	require.Greater(t, total, lives*processes)
}

// state is what a crash image must show after one of the commits.
type state struct {
	walSize int64
	events  [2]int // of the two runs
	reason  string // of run 0
	inbox   int    // of run 1
}

// A power failure may leave any beginning of the WAL, and noise behind it: what
// is found is the state after exactly those commits that are in it whole.
func TestEveryBeginningOfTheWALIsAStateThatWas(t *testing.T) {
	size := int64(180 << 10)
	if os.Getenv("DURABLE_SOAK") != "" {
		size *= 5
	}
	path, states := written(t, size)
	db, err := os.ReadFile(path)
	require.NoError(t, err)
	wal, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.Equal(t, states[len(states)-1].walSize, int64(len(wal)))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	images := 0
	for size := states[0].walSize; ; size = min(size+512, int64(len(wal))) {
		for _, torn := range []bool{false, true} {
			images++
			image := filepath.Join(dir, strconv.Itoa(images)+".db")
			tail := wal[:size:size]
			if torn {
				for range 1 + random.IntN(4096) {
					tail = append(tail, byte(random.UintN(256)))
				}
			}
			require.NoError(t, os.WriteFile(image, db, 0o600))
			require.NoError(t, os.WriteFile(image+"-wal", tail, 0o600))
			want := states[0]
			for _, s := range states {
				if s.walSize <= size {
					want = s
				}
			}
			if !t.Run(fmt.Sprintf("%d_%v", size, torn), func(t *testing.T) { checkImage(t, image, want) }) {
				keep(t, image)
				t.FailNow()
			}
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(image + suffix)
			}
		}
		if size == int64(len(wal)) {
			break
		}
	}
	tried.Say(t, "wal", "of=commits images=%d commits=%d wrong=0", images, len(states)-1)
	require.GreaterOrEqual(t, images, 700)
}

// written leaves a database whose WAL, of about this size, holds a history of commits of all
// kinds, and returns what each of them led to.
func written(t *testing.T, size int64) (path string, states []state) {
	path = file(t)
	st := open(t, path, sqlite.Options{})
	a, b := start(t, st, "a"), start(t, st, "b")
	// From here on the file stays as it is, and all goes to the WAL.
	require.NoError(t, st.Setting("PRAGMA wal_checkpoint(TRUNCATE)"))
	require.NoError(t, st.Setting("PRAGMA wal_autocheckpoint = 0"))
	now := state{events: [2]int{1, 1}}
	states = append(states, now)
	note := func() {
		info, err := os.Stat(path + "-wal")
		require.NoError(t, err)
		now.walSize = info.Size()
		states = append(states, now)
	}
	for i := 0; now.walSize < size; i++ {
		switch i % 4 {
		case 0:
			commit(t, st, a.plain(1))
			now.events[0]++
		case 1:
			for _, err := range st.Commit(t.Context(), []store.Change{a.plain(2), b.plain(1)}) {
				require.NoError(t, err)
			}
			now.events[0] += 2
			now.events[1]++
		case 2:
			c := a.plain(1)
			now.reason = strconv.Itoa(i)
			c.Row = &store.RowPatch{Reason: &now.reason}
			c.Send = []store.Message{{To: "b", Kind: store.KindSignal, Name: "n", ID: now.reason}}
			c.Row.Reason = new(now.reason)
			commit(t, st, c)
			now.events[0]++
			now.inbox++
		case 3:
			c := b.plain(1)
			c.Events[0].Payload = make([]byte, 5000) // over several pages
			c.Events[0].Sum = store.Seal("b", sumBefore(t, st, "b"), &c.Events[0])
			b.last = c.Events[0]
			commit(t, st, c)
			now.events[1]++
		}
		note()
	}
	return path, states
}

func sumBefore(t testing.TB, st store.Store, run string) uint32 {
	t.Helper()
	h, err := st.Load(t.Context(), run, store.Cursor{NoEvents: true})
	require.NoError(t, err)
	return h.Run.Last.Sum
}

func checkImage(t *testing.T, path string, want state) {
	st, err := sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off, NoPresence: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	for i, run := range []string{"a", "b"} {
		h, events := load(t, st, run)
		sound(t, run, events)
		require.Len(t, events, want.events[i], run)
		if i == 0 {
			require.Equal(t, want.reason, h.Run.Reason)
		} else {
			require.Len(t, h.Inbox, want.inbox)
			require.EqualValues(t, want.inbox, h.Run.Inbox)
		}
	}
}

// keep saves a failing image where the test's artifacts go.
func keep(t *testing.T, image string) {
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(image + suffix)
		require.NoError(t, err)
		to := filepath.Join(t.ArtifactDir(), filepath.Base(image)+suffix)
		require.NoError(t, os.WriteFile(to, data, 0o600))
		t.Logf("kept %s", to)
	}
}
