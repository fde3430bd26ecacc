package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
)

// ErrSoldOut says that a service has nothing left. It is registered with the
// engine, so that errors.Is finds it in a recorded error too.
var ErrSoldOut = errors.New("sold out")

// keyHeader carries the idempotency key: however often a service gets a request with
// one key, it acts once.
const keyHeader = "Idempotency-Key"

// Service is the client of a booking service.
type Service struct {
	Name string // what it books
	URL  string
}

// Book books for a trip and returns the confirmation.
func (s *Service) Book(ctx context.Context, t Trip, key string) (string, error) {
	log.Printf("book %s for %s, attempt %d", s.Name, t.ID, durable.Attempt(ctx).Number)
	body, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	return s.call(ctx, http.MethodPost, "/bookings", string(body), key)
}

// Cancel cancels what was booked for a trip. It is not an error if nothing was.
func (s *Service) Cancel(ctx context.Context, trip, key string) error {
	log.Printf("cancel %s for %s, attempt %d", s.Name, trip, durable.Attempt(ctx).Number)
	_, err := s.call(ctx, http.MethodDelete, "/bookings/"+url.PathEscape(trip), "", key)
	return err
}

func (s *Service) call(ctx context.Context, method, path, body, key string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set(keyHeader, key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("the %s service cannot be reached: %w", s.Name, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return "", fmt.Errorf("the %s service's answer broke off: %w", s.Name, err)
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return string(answer), nil
	case resp.StatusCode == http.StatusConflict:
		return "", durable.Permanent(fmt.Errorf("no %s for this trip: %w", s.Name, ErrSoldOut))
	default:
		return "", fmt.Errorf("the %s service answered %s", s.Name, resp.Status)
	}
}
