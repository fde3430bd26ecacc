package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// modelServer stands in for the language model, so that the example needs no account
// and always behaves the same. Everything else about it is real: it is another process,
// asked over HTTP, that keeps no conversation, takes its time, is sometimes overloaded,
// and logs what it is asked, which is what one pays for.
type modelServer struct {
	book *demo.Book

	mu       sync.Mutex
	hang     map[string]bool // questions that it does not finish answering, once each
	asked    int
	overload bool // the one before was turned away
}

// questionsName is the name of the server's book: a line when a question comes,
// one when it is answered.
const questionsName = "questions.txt"

// thinking is how long an answer takes.
const thinking = 30 * time.Millisecond

// serveModel serves until ctx ends; it prints its address first. Questions in
// hang are not answered the first time.
func serveModel(ctx context.Context, dir string, hang []string) error {
	book, err := demo.OpenBook(filepath.Join(dir, questionsName))
	if err != nil {
		return err
	}
	defer book.Close()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	s := &modelServer{book: book, hang: map[string]bool{}}
	for _, question := range hang {
		s.hang[question] = true
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /next", s.next)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *modelServer) next(w http.ResponseWriter, req *http.Request) {
	var talk []Message
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20)).Decode(&talk); err != nil || len(talk) == 0 {
		http.Error(w, "a conversation is missing", http.StatusBadRequest)
		return
	}
	if s.isOverloaded() {
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	}
	customer, _, _ := strings.Cut(talk[0].Text, ":")
	turn := fmt.Sprint(customer, " ", len(talk))
	if err := s.book.Write("asked", turn); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	thought := time.After(thinking)
	if s.hangs(turn) {
		thought = nil
	}
	select {
	case <-thought:
	case <-req.Context().Done():
		return // the client is gone
	}
	w.Header().Set("Content-Type", "application/json")
	if json.NewEncoder(w).Encode(think(talk)) == nil {
		_ = s.book.Write("answered", turn)
	}
}

// isOverloaded turns every fourth question away, and never two in a row.
func (s *modelServer) isOverloaded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	s.overload = !s.overload && s.asked%4 == 2
	return s.overload
}

func (s *modelServer) hangs(turn string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	hangs := s.hang[turn]
	delete(s.hang, turn)
	return hangs
}

var orderNumber = regexp.MustCompile(`order (\d+)`)

// think says what a helpful model would say to the conversation so far. It knows
// nothing but that.
func think(talk []Message) Message {
	last := talk[len(talk)-1]
	order := ""
	if m := orderNumber.FindStringSubmatch(talk[0].Text); m != nil {
		order = m[1]
	}
	call := func(tool string, args ...string) Message {
		m := Message{Role: "model", Text: "I use " + tool, Tool: tool, Args: map[string]string{}}
		for i := 0; i < len(args); i += 2 {
			m.Args[args[i]] = args[i+1]
		}
		return m
	}
	say := func(text string) Message { return Message{Role: "model", Text: text} }
	switch {
	case last.Role == "customer" && order == "":
		return say("Which order do you mean?")
	case last.Role == "customer":
		return call("find order", "order", order)
	case last.Tool == "find order" && strings.Contains(last.Text, "lost"):
		_, price, _ := strings.Cut(last.Text, "price ")
		return call("refund", "order", order, "amount", price)
	case last.Tool == "find order":
		return say("Your order " + order + ": " + last.Text + ".")
	case last.Tool == "refund" && strings.Contains(last.Text, "declines"):
		return say("I am sorry: your order " + order + " cannot be refunded. A colleague will call you.")
	case last.Tool == "refund" && strings.HasPrefix(last.Text, "it failed"):
		return say("I am sorry: the refund of order " + order + " did not succeed. A colleague will call you.")
	case last.Tool == "refund":
		return say("Your order " + order + " was lost. You have your money back: " + last.Text + ".")
	}
	return say("I am sorry, I cannot help with that.")
}
