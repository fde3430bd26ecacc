package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// keyHeader carries the idempotency key: however often the server gets a mail with one key,
// it delivers it once.
const keyHeader = "Idempotency-Key"

// envelope is what the server gets.
type envelope struct {
	ID   string // of the mail
	Mail Mail
}

// Client is the client of the mail server.
type Client struct{ URL string }

// Deliver hands a mail to the server and returns its receipt.
func (c *Client) Deliver(ctx context.Context, id string, mail Mail, key string) (string, error) {
	body, err := json.Marshal(envelope{id, mail})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/mails", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set(keyHeader, key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("the mail server cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	receipt, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return "", fmt.Errorf("the mail server's answer broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the mail server answered %s", resp.Status)
	}
	return string(receipt), nil
}
