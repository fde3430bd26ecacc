package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Request is a mail that a worker has handed to the server, as the server saw it.
type Request struct {
	ID     string // of the mail
	Tenant string
	Key    string
	// At is when it came, Until when the server was about to answer.
	At, Until time.Time
	// Delivered: this one delivered the mail. The others did nothing, or repeated the answer.
	Delivered bool
	// Gone: the worker had died before it could be answered. It may have died at any time
	// between At and Until.
	Gone bool
}

// Server stands in for the provider that delivers mails. It keeps a book of every request,
// which the demonstration believes, and not the workers.
type Server struct {
	URL string

	http http.Server
	mu   sync.Mutex
	rng  *rand.Rand
	// keys are those under which a mail was delivered, refused those of which one request
	// was.
	keys, refused map[string]bool
	book          []*Request
	waits         map[int]chan struct{} // closed when that many requests have come
}

// listen starts the server.
func listen(ctx context.Context, seed uint64) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + l.Addr().String(), rng: rand.New(rand.NewPCG(seed, 1)),
		keys: map[string]bool{}, refused: map[string]bool{}, waits: map[int]chan struct{}{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mails", s.take)
	s.http.Handler = mux
	go func() { _ = s.http.Serve(l) }() // until Close
	return s, nil
}

// Close stops the server.
func (s *Server) Close() error { return s.http.Close() }

// After returns a channel that is closed when n requests have come.
func (s *Server) After(n int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	if len(s.book) >= n {
		close(c)
	} else if s.waits[n] == nil {
		s.waits[n] = c
	} else {
		c = s.waits[n]
	}
	return c
}

// Book returns all requests so far that are answered.
func (s *Server) Book() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var book []Request
	for _, r := range s.book {
		if !r.Until.IsZero() {
			book = append(book, *r)
		}
	}
	return book
}

// Now returns how many mails were delivered, and how many requests wait for their answer.
func (s *Server) Now() (delivered, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.book {
		if r.Until.IsZero() {
			open++
		}
	}
	return len(s.keys), open
}

func (s *Server) take(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	var mail envelope
	if err == nil {
		err = json.Unmarshal(body, &mail)
	}
	key := r.Header.Get(keyHeader)
	if err != nil || mail.ID == "" || key == "" {
		http.Error(w, "a mail needs an id and an idempotency key", http.StatusBadRequest)
		return
	}
	req, busy, work := s.enter(at, mail, key)
	// The mail is on its way, and the worker does not know it yet. This is the moment to die.
	gone := false
	select {
	case <-time.After(work):
	case <-r.Context().Done():
		gone = true
	}
	s.mu.Lock()
	req.Until, req.Gone = time.Now(), gone
	s.mu.Unlock()
	if busy {
		http.Error(w, "busy: try again later", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, "delivered %s", mail.ID)
}

// enter writes a request into the book, delivers the mail if it must, and returns how long
// the answer takes. One mail of eight is refused once.
func (s *Server) enter(at time.Time, mail envelope, key string) (req *Request, busy bool, work time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req = &Request{ID: mail.ID, Tenant: mail.Mail.Tenant, Key: key, At: at}
	s.book = append(s.book, req)
	if c := s.waits[len(s.book)]; c != nil {
		close(c)
	}
	switch {
	case s.keys[key]:
	case !s.refused[key] && s.rng.IntN(8) == 0:
		s.refused[key], busy = true, true
	default:
		s.keys[key], req.Delivered = true, true
	}
	return req, busy, 30*time.Millisecond + time.Duration(s.rng.IntN(100))*time.Millisecond
}
