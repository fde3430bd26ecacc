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
	require.Equal(t, Seen{AtOnce: 4, OfTenant: 3, Began: 19, Came: 19}, seen)

	last := func(l *Ledger) *Request { return &l.Book[len(l.Book)-1] }
	again := func(l *Ledger) *Request {
		l.Book = append(l.Book, *last(l))
		r := last(l)
		r.At, r.Until, r.Delivered = r.At.Add(time.Second), r.Until.Add(time.Second), false
		return r
	}
	for want, spoil := range map[string]func(*Ledger){
		"nobody has put it in line":                  func(l *Ledger) { l.Letters = l.Letters[1:] },
		"mail bolt/letter-0 of bolt was delivered 0": func(l *Ledger) { l.Book = l.Book[:30] },
		"mail bolt/letter-0 of bolt was delivered 2": func(l *Ledger) { again(l).Delivered = true },
		"came under the keys":                        func(l *Ledger) { again(l).Key = "new" },
		"of cork came to the server, and nobody":     func(l *Ledger) { last(l).Tenant = "cork" },
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
		"came to the server before its run began": func(l *Ledger) { l.Letters[7].Began = l.Book[7].At.Add(time.Microsecond) },
		"21 mails began within 1s; 20 are allowed": func(l *Ledger) {
			for n := 18; n < 20; n++ {
				at := l.Letters[0].Began.Add(850 * time.Millisecond)
				l.Letters[n].Began, l.Book[n].At, l.Book[n].Until = at, at, at.Add(time.Millisecond)
			}
		},
		"27 mails came to the server within 1s": late,
		"overtaken by 4 mails of acme; 3 are allowed": func(l *Ledger) {
			l.Letters[30].Began, l.Book[30].At = l.Book[6].At.Add(time.Microsecond), l.Book[6].At.Add(time.Millisecond)
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
	l.Kills = []Kill{{From: l.Book[0].At, To: l.Book[0].At.Add(time.Millisecond)}}
	seen, err := check(*l, queue)
	require.NoError(t, err)
	require.Equal(t, 1, seen.Again)
}
