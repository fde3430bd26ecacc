package durable

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// StartOption changes how a run is started.
type StartOption func(*startOptions)

type startOptions struct {
	attributes map[string]string
	abandon    bool
	parent     string
	parentKey  string
	headers    map[string]string
	deadline   time.Duration // from the start; 0: none
	exclusive  []string      // sorted, each once
	signals    []firstSignal
	line       inLine
	mail       []store.Message                         // the signals, encoded; To is missing
	err        error                                   // what is wrong with the options
	begin      func(context.Context, desk.Start) error // makes the run exist; nil: it starts from nothing
	input      reflect.Type                            // to compare it with that of an existing run
	tx         any                                     // the transaction that it is part of; nil: none
	signalID   string                                  // of a signal
	scheduled  *history.Scheduled                      // by which schedule; nil: none
}

// refuse keeps the first error in the options.
func (o *startOptions) refuse(err error) {
	if o.err == nil {
		o.err = err
	}
}

// The limits of a run's headers, including those it has from its parent.
const (
	maxHeaders     = 64
	maxHeaderBytes = 8 << 10 // keys and values together
)

// Header sets a header of the run: information about it that is not input, such
// as the tenant or the request it belongs to. Headers are kept with the run, and
// Headers reads them anywhere below it. A child run has those of its parent and
// may override them. They do not distinguish two starts: a second Start with
// other headers finds the run as it is.
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

// inherit gives a child the headers of its parent; its own take precedence.
func (o *startOptions) inherit(parent *run) {
	if len(parent.origin.headers) == 0 {
		return
	}
	all := maps.Clone(parent.origin.headers)
	maps.Copy(all, o.headers)
	o.headers = all
}

// checkHeaders checks the limits on all headers together.
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

// maxExclusive limits the number of exclusive keys of one run.
const maxExclusive = 64

// Exclusive makes the run the only one that holds these keys. A key names
// something that two runs must not work on at once, such as "worktree:/src/app".
// The write that records the start takes all of them, or none: if another run
// holds one, Start returns an error that matches ErrOccupied, with a
// *store.OccupiedError that names the key and that run, and there is no new run.
// Start does not wait for a key.
//
// The run holds its keys while it is interrupted or waits; the write that ends it
// (completed, failed or cancelled) frees them. Resume of a failed run takes them
// again. Starting a run that exists finds it, whichever run holds the keys by
// now.
//
// A key has 1 to 1,024 bytes of UTF-8 without control characters; a run has at
// most 64. Several Exclusive options add up.
func Exclusive(keys ...string) StartOption {
	return func(o *startOptions) {
		for _, key := range keys {
			if err := store.CheckHold(key); err != nil {
				o.refuse(err)
				return
			}
		}
		o.exclusive = append(o.exclusive, keys...)
	}
}

// checkExclusive checks the keys together. It sorts them, so that two runs that
// want the same keys meet at the first.
func (o *startOptions) checkExclusive() error {
	slices.Sort(o.exclusive)
	o.exclusive = slices.Compact(o.exclusive)
	if n := len(o.exclusive); n > maxExclusive {
		return fmt.Errorf("%d exclusive keys; a run has at most %d: %w", n, maxExclusive, ErrInvalid)
	}
	return nil
}
