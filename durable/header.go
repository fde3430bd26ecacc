package durable

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// The limits of a run's headers, those it has from its parent included.
const (
	maxHeaders     = 64
	maxHeaderBytes = 8 << 10 // keys and values together
)

// Header sets a header of the run: something about it that is no input, such as
// the tenant or the request it belongs to. Headers are kept with the run and read
// with Headers anywhere below it; a child run has those of its parent and may set
// its own over them. They do not tell two starts apart: a second Start with other
// headers finds the run as it is.
//
// A key is a name of 1 to 255 bytes; a value may be empty. Both are UTF-8 without
// control characters. A run has at most 64 headers of 8 KiB together.
func Header(key, value string) StartOption {
	return func(o *startOptions) {
		if err := checkHeader(key, value); err != nil {
			o.refuse(err)
			return
		}
		if o.headers == nil {
			o.headers = map[string]string{}
		}
		o.headers[key] = value
	}
}

func checkHeader(key, value string) error {
	if err := store.CheckName("header", key); err != nil {
		return err
	}
	reason := ""
	switch {
	case len(value) > maxHeaderBytes:
		reason = fmt.Sprintf("is %d bytes long; all headers together may have %d", len(value), maxHeaderBytes)
		value = value[:80]
	case !utf8.ValidString(value):
		reason = "is not valid UTF-8"
	case strings.ContainsFunc(value, unicode.IsControl):
		reason = "contains a control character"
	}
	if reason == "" {
		return nil
	}
	return &store.NameError{Kind: "value of header " + key, Value: value, Reason: reason}
}

// inherit gives a child the headers of its parent, under its own.
func (o *startOptions) inherit(parent *run) {
	if len(parent.origin.headers) == 0 {
		return
	}
	all := maps.Clone(parent.origin.headers)
	maps.Copy(all, o.headers)
	o.headers = all
}

// checkHeaders checks what only all headers together can exceed.
func (o *startOptions) checkHeaders() error {
	size := 0
	for k, v := range o.headers {
		size += len(k) + len(v)
	}
	if len(o.headers) > maxHeaders || size > maxHeaderBytes {
		return fmt.Errorf("%d headers of %d bytes; at most %d of %d bytes together are allowed: %w", len(o.headers), size, maxHeaders, maxHeaderBytes, ErrInvalid)
	}
	return nil
}

// Headers returns a copy of the headers of the run that ctx belongs to: in its
// function, in branches, items, step bodies and compensations. It is nil outside
// a run and for a run without headers.
func Headers(ctx context.Context) map[string]string {
	if r := runOf(ctx); r != nil {
		return maps.Clone(r.origin.headers)
	}
	return nil
}

// birthOf returns what the first event of a run's lineage says of its start.
func birthOf(h *store.History) (history.Data, error) {
	for ev, err := range h.Events {
		if err != nil {
			return history.Data{}, fmt.Errorf("durable: reading how run %s was started: %w", h.Run.ID, storeError(err))
		}
		d, err := history.DataOf(&ev)
		if err != nil {
			return history.Data{}, &DamagedError{RunID: h.Run.ID, Seq: ev.Seq, Err: err}
		}
		return d, nil
	}
	return history.Data{}, &DamagedError{RunID: h.Run.ID, Err: ErrNoHistory}
}
