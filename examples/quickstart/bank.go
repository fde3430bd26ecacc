package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"

	"github.com/holdfast-dev/holdfast/durable"
)

// Payment is what the payment service answers.
type Payment struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// Bank is the client of the payment service.
type Bank struct{ URL string }

// The headers that say, for the bank's ledger, what the client knew. Only this
// demonstration needs them.
const (
	keyHeader      = "Idempotency-Key"
	attemptHeader  = "X-Attempt"
	failuresHeader = "X-Known-Failures"
)

// Charge takes money. The service promises to do so once per key, however often it is
// asked, so a call whose answer was lost may be repeated.
func (b *Bank) Charge(ctx context.Context, cents int, key string) (Payment, error) {
	attempt := durable.Attempt(ctx)
	log.Printf("charge: attempt %d of %d%s", attempt.Number, attempt.Max, known(attempt))

	body, err := json.Marshal(map[string]int{"cents": cents})
	if err != nil {
		return Payment{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+"/charges", bytes.NewReader(body))
	if err != nil {
		return Payment{}, err
	}
	req.Header.Set(keyHeader, key)
	req.Header.Set(attemptHeader, strconv.Itoa(attempt.Number))
	req.Header.Set(failuresHeader, strconv.Itoa(len(attempt.Failures)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Payment{}, fmt.Errorf("the bank cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return Payment{}, fmt.Errorf("the bank's answer broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Payment{}, fmt.Errorf("the bank answered %s", resp.Status)
	}
	var p Payment
	if err := json.Unmarshal(answer, &p); err != nil {
		return Payment{}, fmt.Errorf("the bank's answer cannot be read: %w", err)
	}
	return p, nil
}

// known lists the earlier failures that an attempt can see.
func known(a durable.AttemptInfo) string {
	s := ""
	for _, f := range a.Failures {
		s += fmt.Sprintf("\n        attempt %d failed before: %v", f.Attempt, f.Err)
	}
	return s
}
