// Package mail gives the messages that a run has received to the waits that want them: a signal
// wakes the wait that asks for its name, a child's outcome the one for that child.
package mail

import (
	"cmp"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Box has the messages that a run has received and not consumed. They stay in the store
// as long as the run; the box holds them while the run is executed. The zero value is
// ready for use, by several goroutines.
type Box struct {
	mu   sync.Mutex
	last int64 // number of the last message read
	// acted is the number of the last message that was acted on: it was read, and if it
	// stops or pauses the run, it has done so. Until then the row must not say that it
	// was seen: the run could be unloaded in between.
	acted int64
	// stops is the number of the first message that stops this execution; 0: there is none.
	// The event that carries it out is written when what is under way has ended, and the
	// process may die before: the next owner must find the run due.
	stops int64
	// messages that no wait has taken, by what waits ask for and then in order, so that
	// one is found and taken without looking at the others.
	messages map[address][]store.Message
	waiters  []*Wait // in the order in which they were asked for
	// absent are the waits that the history knows as open and that have not come
	// back since the run was loaded. Their messages are kept for them.
	absent []*Wait
	handed int // messages that were given to a wait that has not left yet
	// offered is a message that is not in the store yet, while the wait that it was given records
	// it; nil: there is none.
	offered *Offer
}

// A Wait is a wait for a message.
type Wait struct {
	Key    string // of the call that waits
	Kind   store.Kind
	Name   string
	Answer string        // the name of messages that are for this wait alone
	Child  string        // run id: the wait wants only its outcome
	passed int64         // for a child: messages up to this number are from earlier runs with its id
	Plain  bool          // any message of its name is for it: there may be one such wait at a time
	Asked  int64         // number of the event that asked for it; 0: not recorded yet, which orders it after all that are
	ready  chan struct{} // closed when got is set
	got    *store.Message
	takes  bool   // it is listening, and records a message that it is offered at once
	offer  *Offer // that of got, if it is not in the store yet
}

// wants reports whether m may be given to w.
func (w *Wait) wants(m *store.Message) bool {
	if w.Child != "" {
		id, _ := history.ChildOf(m)
		return m.Kind == w.Kind && id == w.Child
	}
	return history.Wait{Kind: w.Kind, Name: w.Name}.Wants(m, w.Answer)
}

// Ready returns a channel that is closed when the wait has its message. After PassOver it
// is a different one.
func (w *Wait) Ready() <-chan struct{} { return w.ready }

// Got returns the message that the wait was given; nil: none.
func (w *Wait) Got() *store.Message { return w.got }

// address is what a wait asks for.
type address struct {
	kind store.Kind
	name string // of a child's outcome: the run id of the child
}

func addressOf(m *store.Message) address {
	if m.Kind == store.KindChild {
		id, _ := history.ChildOf(m)
		return address{m.Kind, id}
	}
	return address{m.Kind, m.Name}
}

// addresses returns the addresses under which messages for w are; the two may be the
// same.
func (w *Wait) addresses() (plain, own address) {
	if w.Child != "" {
		plain = address{w.Kind, w.Child}
		return plain, plain
	}
	return address{w.Kind, w.Name}, address{w.Kind, w.Answer}
}

// before reports whether w was asked for before o.
func (w *Wait) before(o *Wait) bool {
	return w.Asked != 0 && (o.Asked == 0 || w.Asked < o.Asked)
}

// Receive takes over messages that were read from the store, and skips those that are
// known or were consumed.
func (b *Box) Receive(list []store.Message, consumed func(*store.Message) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range list {
		m := list[i]
		if m.Seq <= b.last {
			continue
		}
		b.last = m.Seq
		if consumed != nil && consumed(&m) {
			continue
		}
		if b.offered.is(&m) {
			b.offered.came = &m // the wait has recorded it, or its sender was faster
			continue
		}
		b.put(m)
	}
	b.offerAll()
}

// ReceiveNext takes over a message that was just sent, if it is the one after those that
// are known. It reports whether the message is known now; if it is not, others come before
// it, and all must be read.
func (b *Box) ReceiveNext(m *store.Message, consumed func(*store.Message) bool) (known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case m.Seq <= b.last:
		return true
	case m.Seq > b.last+1:
		return false
	}
	b.last = m.Seq
	if !consumed(m) {
		b.put(*m)
		b.offerAll()
	}
	return true
}

// offerAll offers the messages to all waits. The mutex is held.
func (b *Box) offerAll() {
	for _, w := range slices.Clone(b.waiters) {
		b.offer(w)
	}
}

// offer gives w the oldest message that it wants, except those that are kept for an
// absent wait that was asked for before it. The mutex is held.
func (b *Box) offer(w *Wait) {
	var kept []*Wait // each takes one
	plain, own := w.addresses()
	list, other := b.messages[plain], b.messages[own]
	if own == plain {
		other = nil
	}
	for i, j := 0, 0; i < len(list) || j < len(other); {
		at, n := plain, i
		if i == len(list) || j < len(other) && other[j].Seq < list[i].Seq {
			at, n = own, j
		}
		m := &b.messages[at][n]
		if a := b.absentee(m, w, kept); a != nil || m.Seq <= w.passed {
			if a != nil {
				kept = append(kept, a)
			}
			if at == plain {
				i++
			} else {
				j++
			}
			continue
		}
		got := *m
		b.cut(at, n)
		w.got = &got
		b.handed++
		b.remove(w)
		close(w.ready)
		return
	}
}

// put files a message after those that came before it. The mutex is held.
func (b *Box) put(m store.Message) {
	if b.messages == nil {
		b.messages = map[address][]store.Message{}
	}
	at := addressOf(&m)
	list := b.messages[at]
	n := len(list)
	for n > 0 && list[n-1].Seq > m.Seq {
		n--
	}
	b.messages[at] = slices.Insert(list, n, m)
}

// cut takes out one message. The mutex is held.
func (b *Box) cut(at address, n int) {
	list := b.messages[at]
	switch {
	case len(list) == 1:
		delete(b.messages, at)
	case n == 0:
		list[0] = store.Message{} // so that its payload is not held any longer
		b.messages[at] = list[1:]
	default:
		b.messages[at] = slices.Delete(list, n, n+1)
	}
}

// absentee returns the absent wait for which m is kept, nil if there is none before w.
// The mutex is held.
func (b *Box) absentee(m *store.Message, w *Wait, served []*Wait) *Wait {
	for _, a := range b.absent {
		if a.before(w) && a.wants(m) && !slices.Contains(served, a) {
			return a
		}
	}
	return nil
}

// Ask registers a wait; it gets a message that is in the inbox already at once. A plain
// wait that would compete with another one is not registered: the key of the other one is
// returned. A wait that is in the history is never turned away.
func (b *Box) Ask(w *Wait) (rival string) {
	w.ready = make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.absent) > 0 {
		b.absent = slices.DeleteFunc(b.absent, func(a *Wait) bool { return a.Key == w.Key })
	}
	if w.Plain && w.Asked == 0 {
		for _, list := range [][]*Wait{b.waiters, b.absent} {
			for _, o := range list {
				if o.Plain && o.Kind == w.Kind && o.Name == w.Name {
					return o.Key
				}
			}
		}
	}
	b.insert(w)
	b.offer(w)
	return ""
}

// insert gives w its place among the waits. The mutex is held.
func (b *Box) insert(w *Wait) {
	at := len(b.waiters)
	for at > 0 && w.before(b.waiters[at-1]) {
		at--
	}
	b.waiters = slices.Insert(b.waiters, at, w)
}

// remove takes w out of the waits. The mutex is held.
func (b *Box) remove(w *Wait) {
	if i := slices.Index(b.waiters, w); i >= 0 {
		b.waiters = slices.Delete(b.waiters, i, i+1)
	}
}

// Placed says by which event w was asked for: from then on it has its place in
// that order, live as on every replay.
func (b *Box) Placed(w *Wait, seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.got == nil && slices.Contains(b.waiters, w) {
		b.remove(w)
		w.Asked = seq
		b.insert(w)
	}
}

// Leave ends a wait. A message that it was given and did not consume goes back to its
// place.
func (b *Box) Leave(w *Wait, consumed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(w)
	if w.got == nil {
		return
	}
	b.handed--
	if w.offer != nil {
		b.decline(w)
		b.offerAll()
		return
	}
	if consumed {
		return
	}
	b.put(*w.got)
	b.offerAll()
}

// PassOver gives back the message that w was given, and lets it wait for a later one.
func (b *Box) PassOver(w *Wait) {
	w.passed = w.got.Seq
	b.Leave(w, false)
	w.got = nil
	b.Ask(w)
}

// Expect takes over the waits that were open when the history ended; branch is
// the one that the run is on.
func (b *Box) Expect(open map[string]history.Wait, branch int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.absent = make([]*Wait, 0, len(open))
	for key, w := range open {
		b.absent = append(b.absent, of(key, w, branch))
	}
	slices.SortFunc(b.absent, func(x, y *Wait) int { return cmp.Compare(x.Asked, y.Asked) })
}

// of returns a wait of the history as a Wait.
func of(key string, w history.Wait, branch int32) *Wait {
	return &Wait{Key: key, Kind: w.Kind, Name: w.Name, Plain: w.Plain, Asked: w.Seq, Answer: history.WaitKey(key, branch)}
}

// Withdraw ends a wait that has timed out. It reports whether a message came at the same
// moment, which then counts, and the number of the last message that was read.
func (b *Box) Withdraw(w *Wait) (last int64, came bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(w)
	return b.last, w.got != nil
}

// Again lets a wait that was withdrawn wait again.
func (b *Box) Again(w *Wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.insert(w)
	b.offer(w)
}

// Settle notes that the messages received so far were acted on, up to one that stops
// the execution.
func (b *Box) Settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acted = b.last
	if b.stops != 0 {
		b.acted = min(b.acted, b.stops-1)
	}
}

// Stops notes that a message stops this execution: it counts as acted on when the event
// that says so is in the store, and this box is needed no more.
func (b *Box) Stops(m *store.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stops == 0 {
		b.stops = m.Seq
	}
}

// Noticed returns the number of the last message that was acted on, and how many
// are on their way to a wait.
func (b *Box) Noticed() (acted int64, handed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acted, b.handed
}

// Seen returns the number of the last message that was read.
func (b *Box) Seen() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Carry returns the number of the last message that was read, and those up to it
// that the next generation is to find. A child's outcome is only for the generation that
// started the child.
func (b *Box) Carry() (last int64, pending []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, list := range b.messages {
		if at.kind == store.KindChild || at.kind == store.KindCancel {
			continue
		}
		for i := range list {
			pending = append(pending, list[i].Seq)
		}
	}
	slices.Sort(pending)
	return b.last, pending
}

// Skip notes that an earlier generation has read the messages up to this number.
func (b *Box) Skip(to int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = max(b.last, to)
}
