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

// listening asks for a message and listens.
func listening(t *testing.T, b *mail.Box, key, name string) *mail.Wait {
	w := wait(key, name)
	require.Empty(t, b.Ask(w))
	b.Listen(w)
	return w
}

func TestAnOfferGoesToTheWaitThatWouldGetTheMessage(t *testing.T) {
	var b mail.Box
	m := &store.Message{Kind: store.KindSignal, Name: "x", ID: "1"}
	require.Nil(t, b.Offer(m), "nobody waits")
	y, x := listening(t, &b, "a", "y"), listening(t, &b, "b", "x")
	o := b.Offer(m)
	require.NotNil(t, o)
	require.True(t, b.Offered(x))
	require.False(t, b.Offered(y))
	require.EqualValues(t, 1, x.Got().Seq)
	require.Nil(t, b.Offer(m), "one at a time")
	require.Zero(t, b.Seen(), "it is not in the store")
	_, handed := b.Noticed()
	require.Equal(t, 1, handed)

	b.Record(x)
	require.True(t, <-o.Recorded())
	b.Leave(x, true)
	require.EqualValues(t, 1, b.Seen())
	acted, handed := b.Noticed()
	require.EqualValues(t, 1, acted)
	require.Zero(t, handed)
}

func TestAWaitThatDoesNotListenOrIsNotTheFirstIsOfferedNothing(t *testing.T) {
	var b mail.Box
	require.Empty(t, b.Ask(wait("a", "x")))
	require.Nil(t, b.Offer(&store.Message{Kind: store.KindSignal, Name: "x", ID: "1"}))

	b = mail.Box{}
	b.Expect(map[string]history.Wait{"before": {Kind: store.KindSignal, Name: "x", Seq: 3}}, 0)
	listening(t, &b, "a", "x")
	require.Nil(t, b.Offer(&store.Message{Kind: store.KindSignal, Name: "x", ID: "1"}), "another wait has not come back")
}

func TestADeclinedOfferComesAgainAsAMessage(t *testing.T) {
	for name, decline := range map[string]func(*mail.Box, *mail.Wait){
		"declined": func(b *mail.Box, w *mail.Wait) { b.Decline(w) },
		"left":     func(b *mail.Box, w *mail.Wait) { b.Leave(w, false); require.Empty(t, b.Ask(w)) },
	} {
		t.Run(name, func(t *testing.T) {
			var b mail.Box
			w := listening(t, &b, "a", "x")
			m := store.Message{Kind: store.KindSignal, Name: "x", ID: "1"}
			o := b.Offer(&m)
			require.NotNil(t, o)
			// Another one has come in between.
			b.Receive([]store.Message{{Seq: 1, Kind: store.KindSignal, Name: "x", ID: "0"}}, nil)
			decline(&b, w)
			require.False(t, <-o.Recorded())
			<-w.Ready()
			require.Equal(t, "0", w.Got().ID)
			require.False(t, b.Offered(w))
			m.Seq = 2
			require.True(t, b.ReceiveNext(&m, func(*store.Message) bool { return false }))
			b.Leave(w, true)
			last, pending := b.Carry()
			require.EqualValues(t, 2, last)
			require.Equal(t, []int64{2}, pending)
		})
	}
}

// The store may be read between the commit and its answer.
func TestAnOfferedMessageThatIsReadIsTakenOnce(t *testing.T) {
	var b mail.Box
	w, next := listening(t, &b, "a", "x"), listening(t, &b, "b", "x")
	require.NotNil(t, b.Offer(&store.Message{Kind: store.KindSignal, Name: "x", ID: "1"}))
	b.Receive([]store.Message{{Seq: 1, Kind: store.KindSignal, Name: "x", ID: "1"}}, nil)
	require.Nil(t, next.Got())
	b.Record(w)
	b.Receive([]store.Message{{Seq: 1, Kind: store.KindSignal, Name: "x", ID: "1"}}, nil)
	require.Nil(t, next.Got())
	require.EqualValues(t, 1, b.Seen())
}
