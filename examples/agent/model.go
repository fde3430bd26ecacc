package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Model is the client of a model server.
type Model struct{ URL string }

// Next returns what the model says to the conversation so far.
func (m *Model) Next(ctx context.Context, talk []Message) (Message, error) {
	body, err := json.Marshal(talk)
	if err != nil {
		return Message{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL+"/next", bytes.NewReader(body))
	if err != nil {
		return Message{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Message{}, fmt.Errorf("the model cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return Message{}, fmt.Errorf("the model's answer broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Message{}, fmt.Errorf("the model answered %s", resp.Status)
	}
	said := Message{}
	if err := json.Unmarshal(answer, &said); err != nil {
		return Message{}, fmt.Errorf("the model's answer is not readable: %w", err)
	}
	return said, nil
}
