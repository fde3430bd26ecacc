package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The demonstration's verdict must be able to be "no".
func TestCheckFindsWhatWentWrong(t *testing.T) {
	good := func() Ledger {
		return Ledger{
			Requests: []Request{
				{Key: "k", Attempt: 1, KnownFailures: 0, Answer: refused},
				{Key: "k", Attempt: 2, KnownFailures: 1, Answer: refused},
				{Key: "k", Attempt: 3, KnownFailures: 2, Answer: lost},
				{Key: "k", Attempt: 3, KnownFailures: 2, Answer: repeated},
			},
			Charges: []Charge{{Key: "k", ID: "pay-1", Cents: 4200}},
		}
	}
	const book = "reserve order-42\nship order-42\n"
	require.NoError(t, check(good(), book))

	for want, spoil := range map[string]func(*Ledger){
		"twice":           func(l *Ledger) { l.Charges = append(l.Charges, l.Charges[0]) },
		"2 charges":       func(l *Ledger) { l.Charges = append(l.Charges, Charge{Key: "other"}) },
		"0 charges":       func(l *Ledger) { l.Charges = nil },
		"5 requests":      func(l *Ledger) { l.Requests = append(l.Requests, l.Requests[3]) },
		"request 4 was {": func(l *Ledger) { l.Requests[3].Attempt = 1 },
		"request 3 was {": func(l *Ledger) { l.Requests[2].KnownFailures = 0 },
		"request 2 was {": func(l *Ledger) { l.Requests[1].Key = "new" },
	} {
		l := good()
		spoil(&l)
		require.ErrorContains(t, check(l, book), want)
	}
	require.ErrorContains(t, check(good(), "reserve order-42\n"+book), "warehouse")
}
