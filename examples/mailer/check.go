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
	// InLine is when its start had returned. Began is when its run began, which the server
	// cannot know: the time of workflow_started, which its worker has estimated.
	InLine, Began time.Time
	// Prompt mails must not wait behind the flood: those of the other tenants, and the urgent
	// ones of the flood's own. They are sent one at a time.
	Prompt bool
	// Resumed: its worker was killed, so it may have come to the server long after it began.
	Resumed bool
}

// Ledger is all that the verdict is about.
type Ledger struct {
	Letters []Letter
	Book    []Request // of the mail server
	Digests []string  // their runs, each of which has a mail for everybody
}

// Seen is the most that was seen of what the queue limits.
type Seen struct {
	AtOnce    int           // mails on their way
	OfTenant  int           // of one tenant
	Came      int           // mails that came to the server in any time as long as Per
	Took      time.Duration // from the first mail to the last
	Overtaken int           // mails of the flood that overtook one prompt mail
	Again     int           // requests for mails that were delivered already: what kills leave behind
}

// turns is how many mails of the flood may overtake one that is prompt. Tenants take turns, so
// it is one. The others are for what is not known exactly: when runs began. By the order of
// their starts all of the flood would overtake it.
const turns = 10

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
	if seen.Came, seen.Took, err = l.rate(q, first); err != nil {
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
	for _, id := range l.Digests {
		for _, to := range everybody {
			if tenants[id+"/"+to] != digests {
				return 0, fmt.Errorf("digest %s has no mail for %s", id, to)
			}
		}
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

// rate checks how many mails came to the server for the first time in any window as long as
// Per, twice Per, and so on. The rate is about those that begin. To the server can come,
// besides them, those that were under way when the window began: as many as the queue has
// places. A mail whose worker was killed before it came does not begin again, and is left out.
func (l *Ledger) rate(q durable.Queue, first map[string]time.Time) (came int, took time.Duration, err error) {
	var comes []time.Time
	for _, m := range l.Letters {
		if !m.Resumed {
			comes = append(comes, first[m.ID])
		}
	}
	slices.SortFunc(comes, time.Time.Compare)
	for from, start := range comes {
		for n, at := range comes[from:] {
			took = max(took, at.Sub(start))
			windows := 1 + int(at.Sub(start)/q.Per)
			if windows == 1 {
				came = max(came, n+1)
			}
			if n+1 > windows*q.Rate+q.Max {
				return 0, 0, fmt.Errorf("%d mails came to the server within %s; %d may begin, and %d may have been under way", n+1, time.Duration(windows)*q.Per, windows*q.Rate, q.Max)
			}
		}
	}
	return came, took, nil
}

// overtaken checks how many mails of the flood began, and came to the server, while a prompt
// one was in line.
func (l *Ledger) overtaken(first map[string]time.Time) (n int, err error) {
	for _, m := range l.Letters {
		if !m.Prompt {
			continue
		}
		began := m.Began
		if at := first[m.ID]; at.Before(began) {
			began = at
		}
		by := 0
		for _, f := range l.Letters {
			if f.Tenant == flooding && !f.Prompt && f.Began.After(m.InLine) && first[f.ID].Before(began) {
				by++
			}
		}
		if n = max(n, by); n > turns {
			return n, fmt.Errorf("mail %s of %s was overtaken by %d mails of %s; %d are allowed", m.ID, m.Tenant, by, flooding, turns)
		}
	}
	return n, nil
}
