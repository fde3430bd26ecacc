package eventlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// eventOf returns an event whose fields all depend on its number.
func eventOf(n int) store.Event {
	e := store.Event{
		Seq: int64(n), Branch: int32(n % 3), Type: store.Type(fmt.Sprintf("type_%d", n%5)), Key: strings.Repeat("k", n%7),
		Attempt: int32(n), Ordinal: int32(-n), At: store.Time(1e15 + n), Took: time.Duration(n) * time.Microsecond,
		Active: time.Duration(n) * time.Hour, Steps: int32(n / 2), Sum: uint32(n) * 7,
	}
	switch n % 4 {
	case 1:
		e.Data = fmt.Appendf(nil, `{"n":%d}`, n)
	case 2:
		e.Payload = fmt.Appendf(nil, "payload %d", n)
	case 3:
		e.Data, e.Payload = []byte(strings.Repeat("d", n)), []byte(strings.Repeat("p", 40*n))
	}
	return e
}

func TestEveryFieldOfEveryEventIsKept(t *testing.T) {
	const n = 4*pageSize + 7
	var l Log
	require.Nil(t, l.Last())
	require.Nil(t, l.End())
	var snapshots []Log
	for i := 1; i <= n; i++ {
		e := eventOf(i)
		l.Append(&e, int64(i+1000))
		clear(e.Data) // the log has its own copy
		clear(e.Payload)
		end := l.End()
		require.Equal(t, []int64{int64(i), int64(i + 1000), int64(e.Sum)}, []int64{end.Seq, end.Epoch, int64(end.Sum)})
		snapshots = append(snapshots, l.Snapshot())
	}
	for _, s := range append(snapshots, l) {
		require.Nil(t, s.At(0))
		require.Nil(t, s.At(s.Len()+1))
		for seq := s.Len(); seq > max(s.Len()-3, 0); seq-- {
			want := eventOf(int(seq))
			want.Epoch = seq + 1000
			require.Equal(t, &want, s.At(seq))
		}
	}
	for seq := int64(1); seq <= n; seq++ {
		want := eventOf(int(seq))
		want.Epoch = seq + 1000
		require.Equal(t, want, l.Read(seq))
	}
}

func TestWhatIsReadBelongsToTheReader(t *testing.T) {
	var l Log
	e := store.Event{Type: store.StepCompleted, Data: []byte("data"), Payload: []byte("payload")}
	l.Append(&e, 1)
	read := l.Read(1)
	clear(read.Payload)
	_ = append(read.Data, "and more"...)
	require.Equal(t, "data", string(l.Read(1).Data))
	require.Equal(t, "payload", string(l.Read(1).Payload))
}
