package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Letter is a mail that somebody has put in line.
type Letter struct {
	ID     string
	Tenant string
	// InLine is when its start had returned. Began is the time of its workflow_started: when a
	// worker asked the store for it, shortly before it got it. The server cannot know that.
	InLine, Began time.Time
	// Prompt mails must not wait behind the flood: those of the other tenants, and the urgent
	// ones of the flood's own. They are sent one at a time.
	Prompt bool
}

// Kill is the end of a worker: it was alive until From and dead from To.
type Kill struct{ From, To time.Time }

// Ledger is all that the verdict is about.
type Ledger struct {
	Letters []Letter
	Book    []Request // of the mail server
	Kills   []Kill
}

// Seen is the most that was seen of what the queue limits.
type Seen struct {
	AtOnce    int // mails on their way
	OfTenant  int // of one tenant
	Began     int // mails that began in any time as long as Per
	Came      int // mails that came to the server in any such time
	Overtaken int // mails of the flood that overtook one prompt mail
	Again     int // requests for mails that were delivered already: what kills leave behind
}

// turns is how many mails of the flood may overtake one that is prompt. Tenants take turns, so
// it is one; and each worker may just have been giving the flood its turn.
const turns = 1 + workers

// check compares what the server has seen with what was put in line and with what the queue
// promises, and returns an error unless all is as it must be.
func check(l Ledger, q durable.Queue) (seen Seen, err error) {
	first := map[string]time.Time{} // when a mail came for the first time
	for _, r := range l.Book {
		if at, ok := first[r.ID]; !ok || r.At.Before(at) {
			first[r.ID] = r.At
		}
	}
	if seen.Again, err = l.once(); err != nil {
		return seen, err
	}
	if seen.AtOnce, seen.OfTenant, err = l.places(q); err != nil {
		return seen, err
	}
	if seen.Began, seen.Came, err = l.rate(q, first); err != nil {
		return seen, err
	}
	seen.Overtaken, err = l.overtaken(first)
	return seen, err
}

// once checks that each mail was delivered once, under one key.
func (l *Ledger) once() (again int, err error) {
	tenants, keys, delivered := map[string]string{}, map[string]string{}, map[string]int{}
	for _, m := range l.Letters {
		tenants[m.ID] = m.Tenant
	}
	for _, r := range l.Book {
		switch key, asked := keys[r.ID]; {
		case tenants[r.ID] != r.Tenant:
			return 0, fmt.Errorf("mail %s of %s came to the server, and nobody has put it in line", r.ID, r.Tenant)
		case asked && key != r.Key:
			return 0, fmt.Errorf("mail %s came under the keys %s and %s", r.ID, key, r.Key)
		}
		keys[r.ID] = r.Key
		if r.Delivered {
			delivered[r.ID]++
		} else if delivered[r.ID] > 0 {
			again++
		}
	}
	for _, m := range l.Letters {
		if n := delivered[m.ID]; n != 1 {
			return 0, fmt.Errorf("mail %s of %s was delivered %d times", m.ID, m.Tenant, n)
		}
	}
	return again, nil
}

// places checks how many mails were on their way at once, in all and of one tenant.
func (l *Ledger) places(q durable.Queue) (atOnce, ofTenant int, err error) {
	type change struct {
		at time.Time
		r  *Request
		by int
	}
	var changes []change
	for i := range l.Book {
		r := &l.Book[i]
		until := r.Until
		if r.Gone {
			until = r.At // its worker may have died right then
		}
		changes = append(changes, change{r.At, r, 1}, change{until, r, -1})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	open := map[string]map[string]int{} // by tenant and mail
	all := 0
	for _, c := range changes {
		mails := open[c.r.Tenant]
		if mails == nil {
			mails = map[string]int{}
			open[c.r.Tenant] = mails
		}
		was := len(mails)
		if mails[c.r.ID] += c.by; mails[c.r.ID] == 0 {
			delete(mails, c.r.ID)
		}
		all += len(mails) - was
		atOnce, ofTenant = max(atOnce, all), max(ofTenant, len(mails))
		switch {
		case len(mails) > q.MaxPerPartition:
			return 0, 0, fmt.Errorf("%d mails of %s were on their way at once; %d are allowed", len(mails), c.r.Tenant, q.MaxPerPartition)
		case all > q.Max:
			return 0, 0, fmt.Errorf("%d mails were on their way at once; %d are allowed", all, q.Max)
		}
	}
	return atOnce, ofTenant, nil
}

// rate checks how many mails began in any time as long as Per, and how many came to the
// server. A mail has begun at some time from Began until it came for the first time; only
// those count of which both lie within the time, so that what is told is certain.
//
// To the server can come, besides those that begin, those that were under way: as many as
// the queue has places. Those whose worker was killed before they came do not begin again,
// and are left out.
func (l *Ledger) rate(q durable.Queue, first map[string]time.Time) (began, came int, err error) {
	var begins, comes []span
	for _, m := range l.Letters {
		at := first[m.ID]
		if at.Before(m.Began) {
			return 0, 0, fmt.Errorf("mail %s came to the server before its run began", m.ID)
		}
		begins = append(begins, span{m.Began, at})
		cut := func(k Kill) bool { return k.To.After(m.Began) && k.From.Before(at) }
		if !slices.ContainsFunc(l.Kills, cut) {
			comes = append(comes, span{at, at})
		}
	}
	if began = most(begins, q.Per); began > q.Rate {
		return 0, 0, fmt.Errorf("%d mails began within %s; %d are allowed", began, q.Per, q.Rate)
	}
	if came = most(comes, q.Per); came > q.Rate+q.Max {
		return 0, 0, fmt.Errorf("%d mails came to the server within %s; %d may begin, and %d may have been under way", came, q.Per, q.Rate, q.Max)
	}
	return began, came, nil
}

// span is a time in which something has happened.
type span struct{ from, to time.Time }

// most returns how many of the spans lie within any window.
func most(spans []span, window time.Duration) (n int) {
	for _, s := range spans {
		end, in := s.from.Add(window), 0
		for _, o := range spans {
			if !o.from.Before(s.from) && o.to.Before(end) {
				in++
			}
		}
		n = max(n, in)
	}
	return n
}

// overtaken checks how many mails of the flood began, and came to the server, while a prompt
// one was in line.
func (l *Ledger) overtaken(first map[string]time.Time) (n int, err error) {
	for _, m := range l.Letters {
		if !m.Prompt {
			continue
		}
		by := 0
		for _, f := range l.Letters {
			if f.Tenant == flooding && !f.Prompt && f.Began.After(m.InLine) && first[f.ID].Before(m.Began) {
				by++
			}
		}
		if n = max(n, by); n > turns {
			return n, fmt.Errorf("mail %s of %s was overtaken by %d mails of %s; %d are allowed", m.ID, m.Tenant, by, flooding, turns)
		}
	}
	return n, nil
}
