package history

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// All calls without anything rare share one record: what is filed for one must not appear
// with another.
func TestWhatIsRareIsFiledForOneCallOnly(t *testing.T) {
	p := &Past{RunID: "r", Scopes: map[string][]*Call{}, Items: map[string]map[int]*store.Event{}, Taken: map[int64]bool{}}
	seq := int64(0)
	add := func(n int, e store.Event) {
		seq++
		e.Seq, e.Key, e.Ordinal, e.At = seq, fmt.Sprintf("c%d", n), int32(n), store.Time(100+seq)
		require.NoError(t, p.Add(&e))
	}
	add(1, store.Event{Type: store.StepCompleted})
	add(2, store.Event{Type: store.StepStarted, Data: []byte(`{"input":"h","once":true}`)})
	add(2, store.Event{Type: store.AttemptFailed, Attempt: 1, Data: []byte(`{"error":{"message":"m"}}`)})
	add(3, store.Event{Type: store.ProgressSaved, Data: []byte(`{"slot":"s"}`)})
	add(4, store.Event{Type: store.ProgressSaved})
	add(5, store.Event{Type: store.TimerSet, Data: []byte(`{"until":7}`)})
	add(6, store.Event{Type: store.WaitRequested, Data: []byte(`{"name":"n","until":9}`)})
	add(7, store.Event{Type: store.ChildStarted, Data: []byte(`{"child":"x","abandon":true}`)})
	add(8, store.Event{Type: store.StepCompleted, Data: []byte(`{"item":"i","input":"h2"}`)})
	add(9, store.Event{Type: store.StepCompleted})
	p.filing.done(p.Scopes)
	p.Forget([]string{"c1", "c2", "c6"}, seq)
	require.True(t, reflect.ValueOf(plain).IsZero())
	calls := p.Scopes[""]
	require.Len(t, calls, 9)
	for i, rec := range calls {
		require.Equal(t, i == 1, rec.Once)
		require.Equal(t, map[int]string{1: "h", 7: "h2"}[i], rec.Input)
		require.Equal(t, map[int]store.Time{4: 7}[i], rec.Until)
		require.Equal(t, map[int]string{6: "x"}[i], rec.Child)
		require.Equal(t, map[int]string{7: "i"}[i], rec.Item)
		require.Empty(t, rec.Failures)
		require.Equal(t, i == 3, rec.LastSaved("") != nil)
		require.Equal(t, i == 2, rec.LastSaved("s") != nil)
	}
	require.Same(t, &plain, calls[8].rare)
}
