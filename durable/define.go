package durable

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Definition is a workflow that an engine can execute. Define returns one.
type Definition interface{ definition() *definition }

// Workflow is a registered function: plain Go code that takes an input and
// returns an output, and whose side effects are in steps. It has no state and
// may be used from any goroutine.
type Workflow[I, O any] struct{ def *definition }

func (w *Workflow[I, O]) definition() *definition {
	if w == nil {
		return nil
	}
	return w.def
}

// Name returns the name under which the workflow is registered.
func (w *Workflow[I, O]) Name() string { return w.def.name }

// definition is a workflow without its types.
type definition struct {
	name    string
	version string
	steps   []string // declared; nil: not declared
	boot    BootPolicy
	// keepLoaded: its waiting runs keep their goroutines.
	keepLoaded bool
	byName     bool  // calls are matched by name alone
	err        error // why it cannot be used; reported by Open
	input      reflect.Type
	// call decodes the input, runs the function and encodes the output; nil
	// for a Ref.
	call func(ctx context.Context, r *run, input []byte) (output []byte, err error)
}

// DefaultVersion is the version of a workflow that names none.
const DefaultVersion = "1"

// DefineOption changes what Define registers.
type DefineOption func(*definition)

// Version names the version of this code. Runs stay pinned to the version they
// were started with. The default is DefaultVersion.
func Version(v string) DefineOption { return func(d *definition) { d.version = v } }

// Steps declares the names of the steps a run makes, in order, so that
// progress can be shown as "step 2 of 4". They are not enforced: an undeclared
// step runs too.
func Steps(names ...string) DefineOption {
	return func(d *definition) { d.steps = append([]string{}, names...) }
}

// OnBoot sets what Recover does with this workflow's interrupted runs, instead
// of Options.OnBoot.
func OnBoot(p BootPolicy) DefineOption { return func(d *definition) { d.boot = p } }

// KeepLoaded lets waiting runs of this workflow keep their goroutines, whatever
// Options.UnloadAfter says. It is for a function that holds something during its
// waits that a replay cannot restore, such as a lock or an open connection.
func KeepLoaded() DefineOption { return func(d *definition) { d.keepLoaded = true } }

// Define makes a workflow of fn, which may be a method value, so that its
// dependencies are injected as in any Go program. The history keeps the name, so
// it must never change while runs exist. A nil function or an unusable name is
// reported by Open.
func Define[I, O any](name string, fn func(ctx context.Context, in I) (O, error), o ...DefineOption) *Workflow[I, O] {
	d := &definition{name: name, version: DefaultVersion, input: reflect.TypeFor[I]()}
	if d.err = guard.Options(d, o); d.err != nil {
		d.err = fmt.Errorf("durable: workflow %q: %w", name, d.err)
	} else {
		d.err = d.check()
	}
	if fn == nil && d.err == nil {
		d.err = fmt.Errorf("durable: workflow %q: the function is nil: %w", name, ErrInvalid)
	}
	d.call = func(ctx context.Context, r *run, input []byte) ([]byte, error) {
		var in I
		if recorded, err := r.eng.sealer.Decode(r.origin.inputAt, input, &in); err != nil {
			return nil, r.undecodable("the input", recorded, reflect.TypeFor[I](), err)
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		env, _, err := payload.Encode(r.eng.sealer, r.origin.maxPayload, out)
		if err != nil {
			return nil, Permanent(r.refuses(&EncodeError{RunID: r.id, Type: reflect.TypeFor[O]().String(), Err: err}))
		}
		return env, nil
	}
	return &Workflow[I, O]{def: d}
}

// Ref names a workflow that another program executes: it can be started and waited for here,
// and runs where its code is in Options.Workflows. Start refuses a workflow that Define has
// made and that is not there.
func Ref[I, O any](name string) *Workflow[I, O] {
	d := &definition{name: name}
	d.err = d.check()
	return &Workflow[I, O]{def: d}
}

func (d *definition) check() error {
	if err := store.CheckName("workflow name", d.name); err != nil {
		return err
	}
	if d.version != "" {
		if err := store.CheckName("workflow version", d.version); err != nil {
			return err
		}
	}
	if !d.boot.valid() {
		return fmt.Errorf("durable: workflow %q: OnBoot(%d) is no policy: %w", d.name, d.boot, ErrInvalid)
	}
	for _, s := range d.steps {
		if err := store.CheckName("declared step", s); err != nil {
			return fmt.Errorf("durable: workflow %q: %w", d.name, err)
		}
	}
	return nil
}

// definitions are the workflows an engine serves. They do not change once it is
// open.
type definitions struct {
	byName map[string]*served
	served []store.Served // as advertised
}

// served is a workflow with all its versions.
type served struct {
	versions map[string]*definition
	newest   *definition // the one registered last
}

// newDefinitions returns the workflows of an engine that takes runs from these queues; none:
// from every one.
func newDefinitions(list []Definition, queues []string) (*definitions, error) {
	ds := &definitions{byName: map[string]*served{}}
	for i, item := range list {
		if item == nil || item.definition() == nil {
			return nil, fmt.Errorf("durable: Options.Workflows[%d] is nil: %w", i, ErrInvalid)
		}
		d := item.definition()
		if d.err != nil {
			return nil, d.err
		}
		if d.call == nil {
			return nil, fmt.Errorf("durable: Options.Workflows: %q is a Ref; only a workflow made by Define has code to run: %w", d.name, ErrInvalid)
		}
		s := ds.byName[d.name]
		if s == nil {
			s = &served{versions: map[string]*definition{}}
			ds.byName[d.name] = s
		}
		if s.versions[d.version] != nil {
			return nil, fmt.Errorf("durable: Options.Workflows: %q version %q is registered twice: %w", d.name, d.version, ErrInvalid)
		}
		s.versions[d.version] = d
		s.newest = d
	}
	for name, s := range ds.byName {
		// A run without a version was started by a Ref; any version may take it.
		vs := []string{""}
		for v := range s.versions {
			vs = append(vs, v)
		}
		ds.served = append(ds.served, store.Served{Workflow: name, Versions: vs, Queues: queues})
	}
	return ds, nil
}

// notHereError refuses the start of a workflow whose code is not in Options.Workflows.
type notHereError struct {
	Workflow string
	Version  string
	Have     []string // its versions that are registered
}

func (e *notHereError) Error() string {
	what := "workflow " + e.Workflow
	if len(e.Have) > 0 {
		what = fmt.Sprintf("version %s of %s", e.Version, what) + " (registered: " + strings.Join(e.Have, ", ") + ")"
	}
	return fmt.Sprintf("durable: the code of %s is not in this engine: add the value that durable.Define returned to Options.Workflows or, if another program executes it, start it with durable.Ref(%q)", what, e.Workflow)
}

// Is matches ErrNotRegistered.
func (e *notHereError) Is(target error) bool { return target == ErrNotRegistered }

// checkCode returns why this engine cannot execute a run that it is to start: it was made by
// Define, and is not in Options.Workflows. A run that is only put in line is for any engine.
func (o *startOptions) checkCode(e *Engine, def *definition) error {
	ds := e.program.defs
	if def.call == nil || o.line.waits() || o.tx != nil || ds.find(def.name, def.version) != nil {
		return nil
	}
	return &notHereError{Workflow: def.name, Version: def.version, Have: ds.versions(def.name)}
}

// find returns the code for a run, nil if there is none.
func (ds *definitions) find(workflow, version string) *definition {
	s := ds.byName[workflow]
	switch {
	case s == nil:
		return nil
	case version == "":
		return s.newest
	}
	return s.versions[version]
}
