package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// good is a ledger of a newsletter, three mails at a time, and of a prompt mail that comes
// after the first three.
func good() *Ledger {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var l Ledger
	add := func(id, tenant string, inLine, began time.Duration, prompt bool) {
		l.Letters = append(l.Letters, Letter{ID: id, Tenant: tenant, InLine: start.Add(inLine), Began: start.Add(began), Prompt: prompt})
		at := start.Add(began + time.Millisecond)
		l.Book = append(l.Book, Request{ID: id, Tenant: tenant, Key: "key of " + id, At: at, Until: at.Add(100 * time.Millisecond), Delivered: true})
	}
	for n := range 30 {
		add(reader(n), flooding, 0, time.Duration(n/3)*180*time.Millisecond+time.Duration(n%3)*time.Millisecond, false)
	}
	add("bolt/letter-0", "bolt", 100*time.Millisecond, 110*time.Millisecond, true)
	for n, tenant := range everybody {
		add("night/"+tenant, digests, 0, 3*time.Second+time.Duration(n)*200*time.Millisecond, false)
	}
	l.Digests = []string{"night"}
	return &l
}

// late adds eight mails whose runs began long before they came to the server, all of them in the
// first second.
func late(l *Ledger) {
	for n := range 8 {
		m, r := l.Letters[30], l.Book[30]
		m.ID, m.Prompt, m.Began = fmt.Sprint("bolt/late-", n), false, l.Letters[0].Began.Add(-10*time.Second)
		r.ID, r.At = m.ID, l.Letters[0].Began.Add(850*time.Millisecond+time.Duration(2*n)*time.Millisecond)
		r.Until = r.At.Add(time.Millisecond)
		l.Letters, l.Book = append(l.Letters, m), append(l.Book, r)
	}
}

// The demonstration's verdict must be able to be "no".
func TestCheckFindsWhatWentWrong(t *testing.T) {
	seen, err := check(*good(), queue)
	require.NoError(t, err)
	require.Equal(t, Seen{AtOnce: 4, OfTenant: 3, Came: 19, Took: 3600 * time.Millisecond}, seen)

	bolts := func(l *Ledger) *Request { return &l.Book[30] }
	again := func(l *Ledger) *Request {
		l.Book = append(l.Book, *bolts(l))
		r := &l.Book[len(l.Book)-1]
		r.At, r.Until, r.Delivered = r.At.Add(time.Second), r.Until.Add(time.Second), false
		return r
	}
	for want, spoil := range map[string]func(*Ledger){
		"nobody has put it in line":                  func(l *Ledger) { l.Letters = l.Letters[1:] },
		"mail bolt/letter-0 of bolt was delivered 0": func(l *Ledger) { bolts(l).Delivered = false },
		"mail bolt/letter-0 of bolt was delivered 2": func(l *Ledger) { again(l).Delivered = true },
		"came under the keys":                        func(l *Ledger) { again(l).Key = "new" },
		"of cork came to the server, and nobody":     func(l *Ledger) { bolts(l).Tenant = "cork" },
		"4 mails of acme were on their way at once":  func(l *Ledger) { l.Book[0].Until = l.Book[5].At.Add(time.Millisecond) },
		"7 mails were on their way at once": func(l *Ledger) {
			for n := range 4 {
				id := fmt.Sprintf("mail-%d", n)
				m, r := l.Letters[30], l.Book[30]
				m.ID, m.Tenant, r.ID, r.Tenant = id, id, id, id
				l.Letters, l.Book = append(l.Letters, m), append(l.Book, r)
			}
			for n := range 3 {
				l.Book[n].Until = l.Book[30].At.Add(time.Millisecond)
			}
		},
		"digest night has no mail for dune":     func(l *Ledger) { l.Letters = l.Letters[:len(l.Letters)-1] },
		"27 mails came to the server within 1s": late,
		"67 mails came to the server within 3s": func(l *Ledger) { // no single second has too many
			m, r, at := l.Letters[30], l.Book[30], l.Book[30].At
			*l = Ledger{}
			for n := range 80 {
				m.ID, m.Prompt = fmt.Sprint("bolt/", n), false
				r.ID, r.At = m.ID, at.Add(time.Duration(n)*44*time.Millisecond)
				r.Until = r.At.Add(time.Millisecond)
				l.Letters, l.Book = append(l.Letters, m), append(l.Book, r)
			}
		},
		"overtaken by 11 mails of acme; 10 are allowed": func(l *Ledger) {
			l.Letters[30].Began, l.Book[30].At = l.Book[13].At.Add(time.Microsecond), l.Book[13].At.Add(time.Millisecond)
		},
	} {
		l := good()
		spoil(l)
		_, err := check(*l, queue)
		require.ErrorContains(t, err, want, want)
	}
}

// What kills leave behind is no fault: a mail that was handed over again under its key, whose
// first request nobody waited for, and one that came late because its worker was killed.
func TestCheckAllowsWhatKillsLeaveBehind(t *testing.T) {
	l := good()
	r := l.Book[0]
	r.At, r.Until, r.Delivered = r.At.Add(50*time.Millisecond), r.Until.Add(50*time.Millisecond), false
	l.Book[0].Gone, l.Book[0].Until = true, l.Book[5].At.Add(time.Millisecond)
	l.Book = append(l.Book, r)
	late(l)
	for n := range l.Letters[35:] {
		l.Letters[35+n].Resumed = true
	}
	seen, err := check(*l, queue)
	require.NoError(t, err)
	require.Equal(t, 1, seen.Again)
}
