package conformance

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// checkInvariants opens its own handle and checks what must hold for any data at any
// time.
func (t *T) checkInvariants(d *Data) {
	t.Helper()
	s := t.handle(d)
	rows := t.list(s, store.Filter{OldestFirst: true, WithLast: true, Limit: 200})
	seen := make(map[string]bool)
	unfinished := make(map[string]string)
	byStatus := make(map[string]int64)
	for _, row := range rows {
		require.False(t, seen[row.ID], "S16: run %q is listed twice", row.ID)
		seen[row.ID] = true
		byStatus[string(row.Status)]++
		h := t.all(s, row.ID)
		require.Equal(t, h.Run, row, "S4: List and Load agree on the row of %q", row.ID)
		t.checkLog(row, h.Events)
		t.checkInbox(row, h.Inbox)
		if row.Status.Terminal() {
			require.Empty(t, row.Owner, "S5: run %q has ended and has no owner", row.ID)
		} else if row.Dedup != "" {
			key := fmt.Sprintf("%q in queue %q", row.Dedup, row.Queue)
			require.Empty(t, unfinished[key], "S12: run %q shares dedup %s", row.ID, key)
			unfinished[key] = row.ID
		}
	}
	require.Equal(t, byStatus, t.count(s, store.Filter{}, store.ByStatus), "S4: Count agrees with List")
}

// checkLog checks that a log has no gap and no altered event, and that the row agrees
// with it.
func (t *T) checkLog(row store.Run, events []store.Event) {
	t.Helper()
	require.NotEmpty(t, events, "S1: run %q has its first event", row.ID)
	var before store.Event
	for i, e := range events {
		require.Equal(t, int64(i+1), e.Seq, "S3: the log of %q has no gap", row.ID)
		require.GreaterOrEqual(t, e.Epoch, before.Epoch, "S3: epochs never go back: run %q, event %d", row.ID, e.Seq)
		require.GreaterOrEqual(t, e.At, before.At, "S29: time never goes back: run %q, event %d", row.ID, e.Seq)
		require.Equal(t, store.Seal(row.ID, before.Sum, &e), e.Sum, "S3: run %q, event %d is as it was sealed", row.ID, e.Seq)
		before = e
	}
	require.NotNil(t, row.Last, "S27: run %q comes with its last event", row.ID)
	require.Equal(t, before, *row.Last, "S4: Last of %q is the last event", row.ID)
	require.GreaterOrEqual(t, row.Epoch, before.Epoch, "S3: the row of %q is not behind its log", row.ID)
}

func (t *T) checkInbox(row store.Run, inbox []store.Message) {
	t.Helper()
	require.Len(t, inbox, int(row.Inbox), "S13: run %q counts its messages", row.ID)
	had := make(map[string]bool)
	for i, m := range inbox {
		require.Equal(t, int64(i+1), m.Seq, "S13: the inbox of %q has no gap", row.ID)
		require.Equal(t, row.ID, m.To, "S13: a message is with its receiver")
		id := fmt.Sprintf("%s %q", m.Kind, m.ID)
		require.False(t, had[id], "S14: run %q has message %s twice", row.ID, id)
		had[id] = true
	}
}
