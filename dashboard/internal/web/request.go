package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

// ReadJSON reads the body of a request into v; an empty body leaves v as it is. Fields
// that v does not have are refused: they would have no effect.
func ReadJSON(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := guard.JSON(body); err != nil {
		return BadRequest("the body %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return BadRequest("the body cannot be used: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return BadRequest("something follows the JSON value in the body")
	}
	return nil
}

// QueryInt reads a number from the query; 0 if it is missing.
func QueryInt(r *http.Request, name string) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, BadRequest("%s=%q is no number", name, s)
	}
	return n, nil
}

// QueryBool reads a yes or no from the query; a name without a value is a yes.
func QueryBool(r *http.Request, name string) (bool, error) {
	q := r.URL.Query()
	if !q.Has(name) {
		return false, nil
	}
	switch q.Get(name) {
	case "", "1", "true", "yes":
		return true, nil
	case "0", "false", "no":
		return false, nil
	}
	return false, BadRequest("%s=%q is neither true nor false", name, q.Get(name))
}

// WantsPage reports whether a browser asked for an address that is both a page and JSON.
func WantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
