package conformance

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var eventCases = []Case{
	{Name: "an event reads back as it was written", Clauses: "S1, S4", run: eventReadsBack},
	{Name: "a payload may be any bytes", Clauses: "S4", run: eventPayloads},
	{Name: "a large payload is kept up to the limit", Clauses: "S4", run: eventLarge},
	{Name: "what is over a limit is refused with its size", Clauses: "S1", run: eventTooLarge},
	{Name: "times keep their microseconds", Clauses: "S4", run: eventPrecision},
	{Name: "events of one change stand in their order", Clauses: "S1, S3", run: eventOrder},
	{Name: "a write is read at once through every handle", Clauses: "S4", run: eventReadYourWrites},
	{Name: "many runs written at once keep their own events in order", Clauses: "S2, S3", run: eventManyRuns},
	{Name: "a long log is read whole, in part, and more than once", Clauses: "S4", run: eventLongLog},
	{Name: "what was read is not overwritten by what is read later", Clauses: "S17", run: eventKept},
	{Name: "a history is of one moment, however late its events are read", Clauses: "S27", run: eventMoment},
	{Name: "an invalid change is refused and changes nothing", Clauses: "S1", run: eventInvalid},
}

func eventReadsBack(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	w := t.run(s, "r")
	full := store.Event{
		Type: store.AttemptFailed, Key: "items[17]/resize#2", Attempt: 3, Ordinal: 9, Branch: 2, At: t.now(),
		Took: 1500 * time.Microsecond, Active: 72 * time.Hour, Steps: 12345, Data: []byte(`{"error":"no \u0000 route","next":1}`), Payload: []byte("\x00\xff payload"),
	}
	types := []store.Event{
		full,
		{Type: "a_type_of_tomorrow", At: full.At},
		{Type: store.StepCompleted, Key: strings.Repeat("k", store.MaxKey), At: full.At, Attempt: math.MaxInt32, Ordinal: math.MaxInt32, Steps: math.MaxInt32, Active: math.MaxInt64 / 1000 * 1000},
	}
	c := w.append(types...)
	w.must(s, c)
	for _, reader := range []store.Store{s, other} {
		require.Equal(t, stored(c), t.all(reader, "r").Events[1:])
	}
}

func eventPayloads(t *T) {
	d := t.fresh()
	s := t.handle(d)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	payloads := [][]byte{
		nil, {}, {0}, {0xff, 0xfe, 0}, every, []byte("\xc3\x28 not UTF-8"), []byte("null"), []byte(`""`), []byte("🚚 ü e\u0301"), []byte(`{"a":"\u0000 \ud83d\ude9a"}`),
		[]byte(`\x00 \\ '' $1 ?1`), []byte(strings.Repeat("x", 1000)), bytes.Repeat([]byte{0}, 70_000),
	}
	data := [][]byte{
		nil, []byte(`{}`), []byte(`{"a":"\u0000"}`), []byte(`{"b": 1,  "a":2.0, "a":1e3}`), []byte(`{"lone":"\ud800"}`), []byte(`{"big":123456789012345678901234567890}`),
		[]byte("{\"raw\":\"ü🚚\"}"),
	}
	w := t.run(s, "r")
	var want []store.Event
	for i := range max(len(payloads), len(data)) {
		c := w.append(store.Event{Type: store.StepCompleted, Key: fmt.Sprint(i), Payload: payloads[i%len(payloads)], Data: data[i%len(data)]})
		c.Send = []store.Message{{To: "r", Kind: store.KindSignal, Name: "n", ID: fmt.Sprint(i), Payload: payloads[i%len(payloads)], Data: data[i%len(data)]}}
		w.must(s, c)
		want = append(want, stored(c)...)
	}
	plain := w.append(store.Event{Type: store.StepCompleted, Payload: every, Data: data[2]})
	w.must(s, plain)
	want = append(want, stored(plain)...)
	got := t.all(t.handle(d), "r")
	require.Equal(t, want, got.Events[1:], "byte for byte, the Data too")
	for i, m := range got.Inbox {
		require.Equal(t, plainBytes(payloads[i%len(payloads)]), m.Payload, "message %d", i)
		require.Equal(t, plainBytes(data[i%len(data)]), m.Data, "message %d", i)
	}
}

// noise returns bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

func eventLarge(t *T) {
	d := t.fresh()
	s := t.handle(d)
	for _, size := range []int{1 << 20, s.Limits().Payload} {
		id := fmt.Sprint(size)
		w := t.run(s, id)
		big := noise(size)
		w.must(s, w.append(store.Event{Type: store.StepCompleted, Key: "big", Payload: big}))
		w.must(s, w.append(step("after")))
		t.must(s, send(store.Message{To: id, Kind: store.KindSignal, ID: "big", Payload: big}))
		got := t.all(t.handle(d), id)
		require.True(t, bytes.Equal(big, got.Events[1].Payload), "%d bytes come back", size)
		require.True(t, bytes.Equal(big, got.Inbox[0].Payload), "a message of %d bytes comes back", size)
		_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{id}, Force: true})
		require.NoError(t, err)
	}
}

func eventTooLarge(t *T) {
	s := t.open()
	w := t.run(s, "r")
	l := s.Limits()
	require.Positive(t, l.Payload)
	require.GreaterOrEqual(t, l.Batch, l.Payload, "a change can hold a payload")
	require.Positive(t, l.Changes)
	before := t.dump(s)
	big := make([]byte, l.Payload+1)
	refused := func(c store.Change, size, limit int) {
		t.Helper()
		err := t.commit(s, c)
		require.ErrorIs(t, err, store.ErrTooLarge)
		var tooLarge *store.TooLargeError
		require.ErrorAs(t, err, &tooLarge)
		require.GreaterOrEqual(t, tooLarge.Size, size)
		require.Equal(t, limit, tooLarge.Limit)
	}
	// Sums do not matter here, and sealing large events takes time.
	event := func(e store.Event) store.Change {
		e.Seq, e.Type = 2, store.StepCompleted
		return store.Change{RunID: "r", Expect: store.Expect{Epoch: w.epoch}, Events: []store.Event{e}}
	}
	refused(event(store.Event{Payload: big}), l.Payload+1, l.Payload)
	refused(event(store.Event{Data: big}), l.Payload+1, l.Payload)
	refused(send(store.Message{To: "r", Kind: store.KindSignal, ID: "1", Payload: big}), l.Payload+1, l.Payload)
	whole := event(store.Event{Payload: big[1:]})
	for n := l.Payload; n <= l.Batch; n += l.Payload {
		e := whole.Events[len(whole.Events)-1]
		e.Seq++
		whole.Events = append(whole.Events, e)
	}
	refused(whole, l.Batch+1, l.Batch)
	require.Equal(t, before, t.dump(s), "S1: nothing changed")
}

func eventPrecision(t *T) {
	d := t.fresh()
	s := t.handle(d)
	at := store.TimeOf(time.Date(2026, 11, 21, 23, 59, 59, 999_999_000, time.UTC))
	w := t.run(s, "r", func(r *store.Run) {
		r.CreatedAt, r.WakeAt, r.DeadlineAt = at, at+1, store.TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))
	})
	var want []store.Event
	for i := range 5 {
		c := w.append(store.Event{Type: store.StepCompleted, At: at + store.Time(i), Took: 100*time.Hour + time.Duration(i+1)*time.Microsecond, Active: time.Hour + time.Duration(i)*time.Microsecond})
		w.must(s, c)
		want = append(want, stored(c)...)
	}
	t.must(s, send(store.Message{To: "r", Kind: store.KindSignal, ID: "1", At: at + 7}))
	got := t.all(t.handle(d), "r")
	require.Equal(t, want, got.Events[1:])
	require.Equal(t, at+7, got.Inbox[0].At)
	require.Equal(t, []store.Time{at, at + 1}, []store.Time{got.Run.CreatedAt, got.Run.WakeAt})
	require.Equal(t, 9999, got.Run.DeadlineAt.Time().Year())
}

func eventOrder(t *T) {
	s := t.open()
	w := t.run(s, "r")
	for _, n := range []int{1, 2, 50} {
		var events []store.Event
		for i := range n {
			events = append(events, step(fmt.Sprintf("%d.%d", n, i)))
		}
		c := w.append(events...)
		w.must(s, c)
		got := t.load(s, "r", store.Cursor{}).Events
		require.Equal(t, stored(c), got[len(got)-n:])
	}
	c := w.append(step("a"), step("b"))
	c.Row = &store.RowPatch{Status: ptr(store.Running)}
	w.must(s, c)
	require.Equal(t, stored(c), t.load(s, "r", store.Cursor{Tail: 2}).Events, "with a row patch too")
}

func eventReadYourWrites(t *T) {
	d := t.fresh()
	a, b := t.handle(d), t.handle(d)
	w := t.run(a, "r")
	for i := range 20 {
		writer, reader := a, b
		if i%2 == 1 {
			writer, reader = b, a
		}
		w.must(writer, w.append(step(fmt.Sprint(i))))
		require.Equal(t, w.seq, t.row(reader, "r").Last.Seq, "S4: the other handle sees the event")
		w.must(writer, w.patch(store.RowPatch{Priority: ptr(int32(i))}))
		require.Equal(t, int32(i), t.row(reader, "r").Priority, "S4: the other handle sees the row")
		t.must(writer, send(signal("r", fmt.Sprint(i))))
		require.Equal(t, int64(i+1), t.row(reader, "r").Inbox, "S4: the other handle sees the message")
		require.Equal(t, map[string]int64{"": 1}, t.count(reader, store.Filter{Mail: true}, ""))
	}
}

func eventManyRuns(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const writers, runs, rounds = 4, 5, 6
	mine := make([][]*writer, writers)
	for i := range mine {
		for j := range runs {
			mine[i] = append(mine[i], t.run(handles[0], fmt.Sprintf("w%d-r%d", i, j)))
		}
	}
	t.together(writers, func(i int) {
		for range rounds {
			var batch []store.Change
			for _, w := range mine[i] {
				batch = append(batch, w.append(step(fmt.Sprint(w.id, w.seq)), step("second")))
			}
			for j, err := range handles[i%2].Commit(t.Context(), batch) {
				if err != nil {
					t.Errorf("S2: run %s: %v", batch[j].RunID, err)
					return
				}
				mine[i][j].done(batch[j])
			}
		}
	})
	for i := range mine {
		for _, w := range mine[i] {
			events := t.all(handles[1], w.id).Events
			require.Len(t, events, 1+2*rounds)
			for n := 1; n < len(events); n += 2 {
				require.Equal(t, fmt.Sprint(w.id, n), events[n].Key, "S3: in the order they were written, and of this run")
			}
		}
	}
}

func eventLongLog(t *T) {
	s := t.open()
	w := t.run(s, "r")
	const n = 3000
	for w.seq < n {
		var events []store.Event
		for i := range min(500, n-int(w.seq)) {
			events = append(events, step(fmt.Sprint(w.seq+int64(i)+1)))
		}
		w.must(s, w.append(events...))
	}
	h, err := s.Load(t.Context(), "r", store.Cursor{})
	require.NoError(t, err)
	for range 2 {
		var seq int64
		for e, err := range h.Events {
			require.NoError(t, err)
			seq++
			require.Equal(t, seq, e.Seq, "S4: in order, none missing")
		}
		require.Equal(t, int64(n), seq, "S4: all of them, each time it is ranged over")
	}
	for e := range h.Events { // breaking off early must not keep anything locked
		if e.Seq == 10 {
			break
		}
	}
	w.must(s, w.append(step("after")))
	require.Equal(t, int64(n+1), t.row(s, "r").Last.Seq)
}

func eventInvalid(t *T) {
	s := t.open()
	w := t.run(s, "r")
	edit := func(base store.Change, f func(*store.Change)) store.Change { f(&base); return base }
	created, _ := t.create("new")
	before := t.dump(s)
	invalid := map[string]store.Change{
		"empty":                  {},
		"events without a run":   {Events: w.append(step("a")).Events},
		"empty run id to":        send(store.Message{Kind: store.KindSignal, ID: "1"}),
		"control character":      edit(created, func(c *store.Change) { c.RunID = "a\nb"; c.Create.ID = "a\nb" }),
		"NUL in id":              {RunID: "a\x00b", Expect: store.Expect{Epoch: 1}, Row: &store.RowPatch{}},
		"id not UTF-8":           {RunID: "a\xff", Expect: store.Expect{Epoch: 1}, Row: &store.RowPatch{}},
		"long id":                {RunID: strings.Repeat("x", store.MaxRunID+1), Expect: store.Expect{Epoch: 1}, Row: &store.RowPatch{}},
		"long key":               w.append(step(strings.Repeat("k", store.MaxKey+1))),
		"event without a type":   w.append(store.Event{Key: "a"}),
		"no epoch":               edit(w.append(step("a")), func(c *store.Change) { c.Expect.Epoch = 0 }),
		"gap within":             edit(w.append(step("a"), step("b")), func(c *store.Change) { c.Events[1].Seq++ }),
		"event 0":                edit(w.append(step("a")), func(c *store.Change) { c.Events[0].Seq = 0 }),
		"event 1 without create": edit(w.append(step("a")), func(c *store.Change) { c.Events[0].Seq = 1 }),
		"create without absent":  edit(created, func(c *store.Change) { c.Expect = store.Expect{Epoch: 1} }),
		"absent without create":  edit(created, func(c *store.Change) { c.Create = nil }),
		"create without event":   edit(created, func(c *store.Change) { c.Events = nil }),
		"end without yield":      edit(w.end(store.Completed), func(c *store.Change) { c.Yield = false }),
		"yield without event":    edit(w.patch(store.RowPatch{}), func(c *store.Change) { c.Yield = true }),
		"key without text":       edit(w.append(step("a")), func(c *store.Change) { c.Hold = []string{"desk", ""} }),
		"long exclusive key":     edit(w.patch(store.RowPatch{}), func(c *store.Change) { c.Hold = []string{strings.Repeat("x", store.MaxHold+1)} }),
		"NUL in a key":           edit(created, func(c *store.Change) { c.Hold = []string{"a\x00"} }),
		"unknown status":         w.patch(store.RowPatch{Status: ptr(store.Status("done"))}),
		"message without id":     send(store.Message{To: "r", Kind: store.KindSignal}),
		"message without kind":   send(store.Message{To: "r", ID: "1"}),
		"start with send":        {Start: []store.Change{edit(created, func(c *store.Change) { c.Send = []store.Message{signal("r", "1")} })}},
		"start of an append":     {Start: []store.Change{w.append(step("a"))}},
	}
	for name, c := range invalid {
		require.ErrorIs(t, t.commit(s, c), store.ErrInvalid, name)
		require.Equal(t, before, t.dump(s), "S1: %s: nothing changed", name)
	}
}

// eventMoment reads the events of histories that were loaded before more were
// committed.
func eventMoment(t *T) {
	s := t.handle(t.fresh())
	w := t.run(s, "r")
	for range 7 {
		w.must(s, w.append(step("before")))
	}
	branch := int32(0)
	cursors := []store.Cursor{{}, {All: true}, {Branch: &branch}, {After: 3}, {Tail: 3}, {Tail: 3, All: true}, {After: 6, Tail: 20}}
	read := make([]*store.History, len(cursors))
	for i, c := range cursors {
		h, err := s.Load(t.Context(), "r", c)
		require.NoError(t, err)
		require.NotNil(t, h.Run.Last)
		read[i] = h
	}
	for range 30 {
		w.must(s, w.append(step("after"), step("after")))
	}
	last := read[0].Run.Last.Seq
	for i, h := range read {
		from := cursors[i].After + 1
		if n := int64(cursors[i].Tail); n > 0 {
			from = max(from, last-n+1)
		}
		var want []int64
		for seq := from; seq <= last; seq++ {
			want = append(want, seq)
		}
		for range 2 {
			var got []int64
			for e, err := range h.Events {
				require.NoError(t, err)
				got = append(got, e.Seq)
			}
			require.Equal(t, want, got, "S27: the events that %+v asks for, read after others were committed", cursors[i])
		}
	}
}

// eventKept holds on to events without copying them, as a reader may.
func eventKept(t *T) {
	s := t.handle(t.fresh())
	w := t.run(s, "r")
	for i := range 200 {
		e := step(fmt.Sprint("s", i))
		e.Payload = bytes.Repeat([]byte{byte(i)}, 40+i)
		e.Data = fmt.Appendf(nil, `{"n":%d}`, i)
		w.must(s, w.append(e))
	}
	h, err := s.Load(t.Context(), "r", store.Cursor{After: 1})
	require.NoError(t, err)
	var kept []store.Event
	for e, err := range h.Events {
		require.NoError(t, err)
		kept = append(kept, e)
	}
	t.all(s, "r")
	require.Len(t, kept, 200)
	for i, e := range kept {
		require.Equal(t, fmt.Sprint("s", i), e.Key)
		require.Equal(t, fmt.Sprintf(`{"n":%d}`, i), string(e.Data), "the data of event %d", e.Seq)
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 40+i), e.Payload, "the payload of event %d", e.Seq)
	}
}
