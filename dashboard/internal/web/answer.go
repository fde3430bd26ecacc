package web

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// WriteJSON answers with a JSON document.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// Answers consist of strings, numbers and JSON that was checked.
		panic(fmt.Errorf("dashboard: an answer cannot be encoded: %w", err))
	}
	sendJSON(w, status, body)
}

func sendJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// AnswerJSON answers a question with a JSON document of at most MaxAnswer bytes. The
// outcome of an act is written by WriteJSON: the act is done, however large the answer is.
func AnswerJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("dashboard: an answer cannot be encoded: %w", err)
	}
	if len(body) > MaxAnswer {
		return &TooLargeError{What: "the answer"}
	}
	sendJSON(w, http.StatusOK, body)
	return nil
}

// ListBytes is how many bytes of JSON a page of a list has at most, not counting its last
// element.
const ListBytes = MaxAnswer / 2

// A Quota is the number of bytes left for a list.
type Quota int

// Take reports whether v is within what was left.
func (q *Quota) Take(v any) bool {
	if *q <= 0 {
		return false
	}
	body, err := json.Marshal(v)
	if err != nil {
		return true // encoding the answer reports the error
	}
	*q -= Quota(len(body))
	return true
}

// MaxAnswer bounds a page and an answer of the API, in bytes. Every route has its own
// bounds that keep its answers far smaller; this bound keeps a route without them from
// filling the memory of server and browser. Downloads are as large as what is recorded.
const MaxAnswer = 2 << 20

// A TooLargeError says that an answer would be beyond MaxAnswer.
type TooLargeError struct{ What string }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s would have more than %d MiB", e.What, MaxAnswer>>20)
}
