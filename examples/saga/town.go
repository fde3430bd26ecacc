package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Ledger is the services' own book: every request they got, and every act they
// did, in order. The demonstration believes it, and not the agency.
type Ledger struct {
	Requests []Request
	Acts     []Act
}

// Act is a booking made or cancelled.
type Act struct {
	Trip string
	What string // "book hotel"
}

// Request is one request for an act, and its outcome.
type Request struct {
	Act
	Key    string
	Answer string
}

// The answers, as the ledger has them.
const (
	refused  = "503, nothing done"
	lost     = "answered, but the answer is lost"
	held     = "answered, but the client is killed before it hears of it"
	repeated = "answered before, same answer"
	done     = "done"
	soldOut  = "sold out"
	nothing  = "there is nothing to cancel"
)

// answered reports whether the client got a final answer.
func (r Request) answered() bool {
	return r.Answer == done || r.Answer == repeated || r.Answer == soldOut || r.Answer == nothing
}

// town is where the three services are. They share a ledger, so that the order of their
// acts is known, and bad luck.
type town struct {
	mu     sync.Mutex
	ledger Ledger
	rng    *rand.Rand
	bad    map[string]int    // failures in a row, by key
	hold   map[string]bool   // acts whose next answer is held back: "cancel hotel"
	by     map[string]string // the answers, by key
	booked map[Act]bool      // by trip and service
	barred map[Act]bool      // cancelled before it was booked: a later booking must be refused
}

// worst is how often in a row a service may fail one request: less often than a client
// tries.
const worst = 2

func newTown(seed uint64, hold []string) *town {
	t := &town{
		rng: rand.New(rand.NewPCG(seed, 0)), bad: map[string]int{}, hold: map[string]bool{},
		by: map[string]string{}, booked: map[Act]bool{}, barred: map[Act]bool{},
	}
	for _, what := range hold {
		t.hold[what] = true
	}
	return t
}

// serveTown runs the services until the process is stopped, and prints where they
// listen and, later, which client waits in vain.
func serveTown(ctx context.Context, seed uint64, hold []string) error {
	t := newTown(seed, hold)
	failed := make(chan error, len(services))
	for _, service := range services {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.HandleFunc("POST /bookings", func(w http.ResponseWriter, r *http.Request) { t.book(w, r, service) })
		mux.HandleFunc("DELETE /bookings/{trip}", func(w http.ResponseWriter, r *http.Request) {
			t.answer(w, r, Act{r.PathValue("trip"), "cancel " + service}, service)
		})
		mux.HandleFunc("GET /ledger", t.show)
		fmt.Println("http://" + l.Addr().String())
		go func() { failed <- http.Serve(l, mux) }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (t *town) book(w http.ResponseWriter, r *http.Request, service string) {
	var trip Trip
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&trip); err != nil || trip.ID == "" {
		http.Error(w, "a booking needs a trip", http.StatusBadRequest)
		return
	}
	t.answer(w, r, Act{trip.ID, "book " + service}, service)
}

func (t *town) answer(w http.ResponseWriter, r *http.Request, act Act, service string) {
	key := r.Header.Get(keyHeader)
	if key == "" {
		http.Error(w, "an idempotency key is needed", http.StatusBadRequest)
		return
	}
	req, result := t.decide(Request{Act: act, Key: key}, service)
	switch req.Answer {
	case refused:
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	case lost:
		http.Error(w, "the answer is lost", http.StatusGatewayTimeout)
	case held:
		// On stdout, for the parent, which takes it as the moment to kill.
		fmt.Printf("did %q for %s, and has not answered yet\n", act.What, act.Trip)
		<-r.Context().Done() // until the client is gone
	default:
		if result == soldOut {
			http.Error(w, soldOut, http.StatusConflict)
			return
		}
		_, _ = io.WriteString(w, result) // an error means that the client is gone
	}
}

// decide carries out a request, if it must be, and enters it into the ledger.
func (t *town) decide(req Request, service string) (_ Request, result string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.ledger.Requests = append(t.ledger.Requests, req) }()
	luck := t.luck(req.Key)
	if luck == refused {
		req.Answer = refused
		return req, ""
	}
	result, again := t.by[req.Key]
	req.Answer = repeated
	if !again {
		req.Answer, result = t.act(req.Act, service)
		t.by[req.Key] = result
	}
	switch {
	case t.hold[req.What]:
		delete(t.hold, req.What)
		req.Answer = held
	case luck == lost:
		req.Answer = lost
	}
	return req, result
}

// luck decides how a service answers: often with a failure, but not for ever.
func (t *town) luck(key string) string {
	n := t.rng.IntN(10)
	if n >= 5 || t.bad[key] == worst {
		delete(t.bad, key)
		return done
	}
	t.bad[key]++
	if n < 3 {
		return refused
	}
	return lost
}

// act books or cancels, and enters it into the ledger.
func (t *town) act(act Act, service string) (answer, result string) {
	booking := Act{act.Trip, service}
	if strings.HasPrefix(act.What, "cancel ") {
		if !t.booked[booking] {
			t.barred[booking] = true
			return nothing, nothing
		}
		delete(t.booked, booking)
		t.ledger.Acts = append(t.ledger.Acts, act)
		return done, "cancelled"
	}
	if t.barred[booking] || act == (Act{trips[0].ID, "book car"}) {
		return soldOut, soldOut
	}
	t.booked[booking] = true
	t.ledger.Acts = append(t.ledger.Acts, act)
	return done, fmt.Sprintf("%s %d", service, 100+len(t.ledger.Acts))
}

func (t *town) show(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(t.ledger)
}
