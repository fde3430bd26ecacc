package durable

import (
	"context"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/internal/desk"
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
	mail       []store.Message                         // the signals, encoded; To is missing
	err        error                                   // what is wrong with them
	begin      func(context.Context, desk.Start) error // makes the run exist; nil: it begins from nothing
	input      reflect.Type                            // for comparing it with that of a run that exists
}

// refuse keeps the first thing that is wrong with the options.
func (o *startOptions) refuse(err error) {
	if o.err == nil {
		o.err = err
	}
}
