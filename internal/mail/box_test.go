package mail_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/mail"
	"github.com/holdfast-dev/holdfast/store"
)

func signal(seq int64, name string) store.Message {
	return store.Message{To: "r", Kind: store.KindSignal, Name: name, Seq: seq}
}

func wait(key, name string) *mail.Wait {
	return &mail.Wait{Key: key, Kind: store.KindSignal, Name: name, Answer: history.WaitKey(key, 0)}
}

func has(w *mail.Wait) int64 {
	select {
	case <-w.Ready():
		return w.Got().Seq
	default:
		return 0
	}
}

func TestTheOldestMessageGoesToTheWaitThatWasAskedForFirst(t *testing.T) {
	var b mail.Box
	one, two := wait("one", "go"), wait("two", "go")
	require.Empty(t, b.Ask(one))
	require.Empty(t, b.Ask(two))
	b.Placed(two, 4)
	b.Placed(one, 5)
	b.Receive([]store.Message{signal(1, "other"), signal(2, "go")}, nil)
	require.EqualValues(t, 2, has(two))
	require.Zero(t, has(one))
	b.Receive([]store.Message{signal(2, "go"), signal(3, "go")}, nil) // the store is read again
	require.EqualValues(t, 3, has(one))
	b.Leave(one, true)
	b.Leave(two, false) // it goes back
	last, pending := b.Carry()
	require.EqualValues(t, 3, last)
	require.Equal(t, []int64{1, 2}, pending)
}

func TestWhatAnAbsentWaitWantsIsKeptForIt(t *testing.T) {
	var b mail.Box
	b.Expect(map[string]history.Wait{"early": {Kind: store.KindSignal, Name: "go", Seq: 2}}, 0)
	b.Receive([]store.Message{signal(1, "go")}, nil)
	late := wait("late", "go")
	b.Ask(late)
	require.Zero(t, has(late))
	early := wait("early", "go")
	early.Asked = 2
	b.Ask(early)
	require.EqualValues(t, 1, has(early))
}

func TestAWaitThatPassesAMessageOverTakesALaterOne(t *testing.T) {
	var b mail.Box
	w := wait("w", "go")
	b.Ask(w)
	b.Receive([]store.Message{signal(1, "go")}, nil)
	require.EqualValues(t, 1, has(w))
	b.PassOver(w)
	require.Zero(t, has(w))
	b.Receive([]store.Message{signal(2, "go")}, nil)
	require.EqualValues(t, 2, has(w))
	b.Settle()
	acted, handed := b.Noticed()
	require.EqualValues(t, 2, acted)
	require.Equal(t, 1, handed)
}

func TestAMessageIsTakenOverOnlyBehindThoseThatAreKnown(t *testing.T) {
	var b mail.Box
	none := func(*store.Message) bool { return false }
	message := func(n int64) *store.Message { return &store.Message{Kind: store.KindSignal, Name: "x", Seq: n} }
	if b.ReceiveNext(message(2), none) {
		t.Error("message 1 is not known yet")
	}
	if !b.ReceiveNext(message(1), none) || !b.ReceiveNext(message(2), none) || !b.ReceiveNext(message(2), none) {
		t.Error("each follows the one before, and what is known stays known")
	}
	if b.Seen() != 2 {
		t.Errorf("seen: %d", b.Seen())
	}
	for want := int64(1); want <= 2; want++ {
		w := &mail.Wait{Kind: store.KindSignal, Name: "x"}
		b.Ask(w)
		if got := w.Got(); got == nil || got.Seq != want {
			t.Fatalf("got %v, not message %d", got, want)
		}
		b.Leave(w, true)
	}
	w := &mail.Wait{Kind: store.KindSignal, Name: "x"}
	if b.Ask(w); w.Got() != nil {
		t.Error("a message was given twice")
	}
}
