package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// Ledger is the payment service's own book: every request it got, and every
// charge it made. The demonstration believes this book and not the shop.
type Ledger struct {
	Requests []Request
	Charges  []Charge
}

// Request is one request for a charge, with what the client said it knew.
type Request struct {
	Key           string
	Attempt       int
	KnownFailures int
	Answer        string // "refused", "charged, answer lost", "charged already"
}

// Charge is money that moved.
type Charge struct {
	Key   string
	ID    string
	Cents int
}

// payments is the service: it fails the first two requests, makes the charge in the
// third but never answers it, and works from then on. Like real payment services it
// charges an idempotency key once.
type payments struct {
	mu     sync.Mutex
	ledger Ledger
}

// servePayments runs the service in its own process until stdin closes, and prints
// where it listens and, later, that a client waits in vain.
func servePayments() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := &payments{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", p.charge)
	mux.HandleFunc("GET /ledger", p.show)
	fmt.Println("http://" + l.Addr().String())
	return http.Serve(l, mux)
}

func (p *payments) charge(w http.ResponseWriter, r *http.Request) {
	var body struct{ Cents int }
	key := r.Header.Get(keyHeader)
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&body); err != nil || key == "" || body.Cents <= 0 {
		http.Error(w, "a charge needs cents and an idempotency key", http.StatusBadRequest)
		return
	}
	charge, request := p.book(key, body.Cents, r.Header)
	switch request.Answer {
	case refused:
		log.Print("503: try again later")
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	case lost:
		// On stdout, for the parent, which takes it as the moment to kill.
		fmt.Printf("%d.%02d charged, but the answer never leaves the building\n", body.Cents/100, body.Cents%100)
		<-r.Context().Done() // until the client is gone
	case repeated, charged:
		log.Printf("%s: %s", request.Answer, charge.ID)
		w.Header().Set("Content-Type", "application/json")
		// The client is told the same either way; an error here means it is gone.
		_ = json.NewEncoder(w).Encode(Payment{ID: charge.ID, Cents: charge.Cents})
	}
}

// The answers of the service, as its ledger has them.
const (
	refused  = "refused"
	lost     = "charged, answer lost"
	repeated = "charged already, same payment"
	charged  = "charged"
)

// book decides about a request and enters it into the ledger, in one step.
func (p *payments) book(key string, cents int, h http.Header) (Charge, Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	attempt, _ := strconv.Atoi(h.Get(attemptHeader))
	failures, _ := strconv.Atoi(h.Get(failuresHeader))
	req := Request{Key: key, Attempt: attempt, KnownFailures: failures}
	defer func() { p.ledger.Requests = append(p.ledger.Requests, req) }()

	for _, c := range p.ledger.Charges {
		if c.Key == key {
			req.Answer = repeated
			return c, req
		}
	}
	n := len(p.ledger.Requests) + 1
	if n <= 2 {
		req.Answer = refused
		return Charge{}, req
	}
	c := Charge{Key: key, ID: fmt.Sprintf("pay-%d", len(p.ledger.Charges)+1), Cents: cents}
	p.ledger.Charges = append(p.ledger.Charges, c)
	req.Answer = charged
	if n == 3 {
		req.Answer = lost
	}
	return c, req
}

func (p *payments) show(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.ledger)
}
