package mail

import "github.com/holdfast-dev/holdfast/store"

// An Offer is a message that its sender has not recorded, because the wait that is to get it
// may do both at once: deliver the message and record its receipt, in one change.
type Offer struct {
	message  store.Message // with the number that it gets if no other one comes first
	recorded chan bool
	came     *store.Message // the same, if it was read from the store meanwhile
}

// Recorded returns a channel that says what has become of the offer: true, once, if the message is
// durable and was received; false if the sender has to record it. One of the two is certain to
// come, because a wait that leaves has declined.
func (o *Offer) Recorded() <-chan bool { return o.recorded }

// is reports whether m is the message of the offer.
func (o *Offer) is(m *store.Message) bool {
	return o != nil && m.Kind == o.message.Kind && m.ID == o.message.ID
}

// Listen says that w is about to wait for Ready, and does nothing else until then: from now on it is
// offered messages.
func (b *Box) Listen(w *Wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.takes = true
}

// Offer offers m, whose id no other message has, to the wait that would get it. It returns nil if
// there is none, or none that can record it.
func (b *Box) Offer(m *store.Message) *Offer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.offered != nil || len(b.absent) > 0 {
		return nil
	}
	for _, w := range b.waiters {
		if !w.wants(m) {
			continue
		}
		if !w.takes {
			return nil
		}
		o := &Offer{message: *m, recorded: make(chan bool, 1)}
		o.message.Seq, o.message.IfLive = b.last+1, false
		got := o.message
		b.offered, w.offer, w.got = o, o, &got
		b.handed++
		b.remove(w)
		close(w.ready)
		return o
	}
	return nil
}

// Offered reports whether the message of w is not in the store: w must then Record it, Decline
// it, or leave.
func (b *Box) Offered(w *Wait) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.offer != nil
}

// Record says that the message that w was offered is durable, and so is its receipt.
func (b *Box) Record(w *Wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// All messages before it were read. One that stops the run may not have done so yet.
	seq := w.got.Seq
	if b.acted == seq-1 {
		b.acted = seq
	}
	b.last = max(b.last, seq)
	w.offer.recorded <- true
	w.offer, b.offered = nil, nil
}

// Decline turns down the message that w was offered, and lets w wait again: its sender
// records it, and it comes back. Nothing must have been recorded, or the run must have ended here.
func (b *Box) Decline(w *Wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handed--
	b.decline(w)
	w.ready = make(chan struct{})
	b.insert(w)
	b.offerAll()
}

// decline takes the message of an offer back, unless it has come: then its sender has sent it again,
// and the store has it. The mutex is held.
func (b *Box) decline(w *Wait) {
	w.offer.recorded <- false
	if m := w.offer.came; m != nil {
		b.put(*m)
	}
	w.got, w.offer, b.offered = nil, nil, nil
}
