package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demonstration's verdict must be able to be "no".
func TestCheckFindsWhatWentWrong(t *testing.T) {
	good := func() Ledger {
		var l Ledger
		for _, a := range []Act{
			{"trip-lisbon", "book flight"}, {"trip-lisbon", "book hotel"},
			{"trip-lisbon", "cancel hotel"}, {"trip-lisbon", "cancel flight"},
			{"trip-oslo", "book flight"}, {"trip-oslo", "book hotel"}, {"trip-oslo", "book car"},
		} {
			l.Acts = append(l.Acts, a)
			for _, answer := range []string{refused, held, repeated} {
				l.Requests = append(l.Requests, Request{Act: a, Key: a.Trip + a.What, Answer: answer})
			}
		}
		return l
	}
	const kills = 7
	require.NoError(t, check(good(), kills))

	for want, spoil := range map[string]func(*Ledger){
		"cancel flight} {trip-lisbon cancel flight": func(l *Ledger) { l.Acts = slices.Insert(l.Acts, 4, l.Acts[3]) },
		"the services did [{trip-lisbon book hotel": func(l *Ledger) { l.Acts = l.Acts[1:] },
		"cancel flight} {trip-lisbon cancel hotel}": func(l *Ledger) { l.Acts[2], l.Acts[3] = l.Acts[3], l.Acts[2] },
		"under another key":                         func(l *Ledger) { l.Requests[1].Key = "new" },
		"though that was answered":                  func(l *Ledger) { l.Requests[0].Answer = done },
		"killed in the middle":                      func(l *Ledger) { l.Requests = l.Requests[3:] },
	} {
		l := good()
		spoil(&l)
		require.ErrorContains(t, check(l, kills), want)
	}
}

// A booking that arrives after its cancellation must not come about, and an
// answer under a key never changes.
func TestTownBarsWhatWasCancelledAndRepeatsItsAnswers(t *testing.T) {
	w := newTown(1, nil)
	ask := func(what, key string) (string, string) {
		for {
			r, result := w.decide(Request{Act: Act{"t", what + " hotel"}, Key: key}, "hotel")
			if r.answered() {
				return r.Answer, result
			}
		}
	}
	answer, _ := ask("cancel", "k1")
	require.Contains(t, []string{nothing, repeated}, answer)
	_, result := ask("book", "k2")
	require.Equal(t, soldOut, result)
	answer, result = ask("book", "k2")
	require.Equal(t, repeated, answer)
	require.Equal(t, soldOut, result)
	require.Empty(t, w.ledger.Acts)
}
