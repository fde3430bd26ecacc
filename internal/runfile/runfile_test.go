package runfile_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

func sample() *runfile.File {
	return &runfile.File{
		Run: store.Run{
			ID: "order-42 ü", Workflow: "w", InitialVersion: "1", Version: "2", Parent: "p", ParentKey: "k", ForkedFrom: "f", InputHash: [16]byte{1, 255},
			Queue: "q", Partition: "p", Dedup: "d", Trace: "t", CreatedAt: 1, Status: store.Waiting, Code: "c", Reason: "<r>", Recoverable: true, Branch: 1,
			Generation: 2, Resumes: 3, Priority: 4, Seen: 1, CancelAsked: true, Paused: true, StartedAt: 5, UpdatedAt: 6, EndedAt: 7, WakeAt: 8, DeadlineAt: 9,
			Attributes: map[string]string{"a": "b"},
		},
		Branches: []store.Branch{{N: 1, Parent: 0, Generation: 1, Cutoff: 3, CutScope: "items[3]", Reason: "r", CreatedAt: 4}},
		Inbox:    []store.Message{{Seq: 1, Kind: store.KindSignal, Name: "n", ID: "i", At: 2, Data: []byte(`{"a":"<b>"}`), Payload: []byte("hf1 \n\t\"x\"\u2028")}},
		Events: []store.Event{
			{Seq: 1, Type: store.WorkflowCreated, At: 1, Payload: []byte{0, 0xff, '\n'}, Sum: 1},
			{Seq: 2, Branch: 1, Type: store.StepCompleted, Key: "a/b", Attempt: 2, Ordinal: 3, At: 4, Took: 5 * time.Microsecond, Active: time.Hour, Steps: 6, Data: []byte("\x01"), Payload: []byte("€"), Sum: 1<<32 - 1},
		},
	}
}

func write(t require.TestingT, f *runfile.File) []byte {
	var b bytes.Buffer
	w, err := runfile.NewWriter(&b, &f.Run)
	require.NoError(t, err)
	for i := range f.Branches {
		require.NoError(t, w.Branch(&f.Branches[i]))
	}
	for i := range f.Inbox {
		require.NoError(t, w.Message(&f.Inbox[i]))
	}
	for i := range f.Events {
		require.NoError(t, w.Event(&f.Events[i]))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestWhatIsWrittenIsReadByteForByte(t *testing.T) {
	b := write(t, sample())
	got, err := runfile.Read(bytes.NewReader(b), 1<<20)
	require.NoError(t, err)
	require.Equal(t, sample(), got)
	require.Equal(t, string(b), string(write(t, got)))
	require.True(t, strings.HasPrefix(string(b), `{"holdfast":"run","format":1,"run":{"id":"order-42 ü"`), "a person can read it")
}

func TestAFileThatIsNotWholeIsRefused(t *testing.T) {
	b := write(t, sample())
	for i := range b {
		_, err := runfile.Read(bytes.NewReader(b[:i]), 1<<20)
		require.ErrorIs(t, err, runfile.ErrDamaged, "cut off at %d", i)
		for _, bit := range []byte{1, 32} {
			bad := bytes.Clone(b)
			bad[i] ^= bit
			_, err := runfile.Read(bytes.NewReader(bad), 1<<20)
			var future *runfile.FutureError
			require.True(t, errors.Is(err, runfile.ErrDamaged) || errors.As(err, &future), "byte %d: %v", i, err)
		}
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	lines[2], lines[3] = lines[3], lines[2]
	_, err := runfile.Read(bytes.NewReader(bytes.Join(lines, nil)), 1<<20)
	require.ErrorIs(t, err, runfile.ErrDamaged, "swapped lines")
	require.Regexp(t, `its last line says 1 branch, \d messages? and \d events? with the SHA-256 "[0-9a-f]{64}", and there are 1 branch, `, err.Error())
	_, err = runfile.Read(bytes.NewReader(b), int64(len(b)-1))
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = runfile.Read(io.MultiReader(bytes.NewReader(b[:10]), &broken{}), 1<<20)
	require.ErrorIs(t, err, io.ErrClosedPipe, "what the reader says is told")
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func FuzzRead(f *testing.F) {
	f.Add(write(f, sample()))
	f.Add([]byte(`{"holdfast":"run","format":1,"run":{"input_hash":"zz"}}` + "\n"))
	f.Add([]byte(`{"holdfast":"run","format":9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := runfile.Read(bytes.NewReader(b), 1<<20)
		if err != nil {
			return
		}
		again, err := runfile.Read(bytes.NewReader(write(t, got)), 1<<24)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
