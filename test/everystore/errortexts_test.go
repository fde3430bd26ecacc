package everystore_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

var packageNames = regexp.MustCompile(`\b(durable|operate|store|sqlite|postgres|memory): `)

// stutters returns what is wrong with the text of an error about a run: a part that is said
// twice, a package that is named twice, or one that is named after something else.
func stutters(err error, id string) string {
	text := err.Error()
	parts := map[string]bool{}
	for _, part := range strings.Split(text, ": ") {
		if parts[part] {
			return "it says twice: " + part
		}
		parts[part] = true
	}
	packages := map[string]bool{}
	for _, at := range packageNames.FindAllStringIndex(text, -1) {
		if name := text[at[0]:at[1]]; packages[name] {
			return "it names a package twice: " + name
		} else if packages[name] = true; (name == "durable: " || name == "store: ") && at[0] > 0 {
			return "it begins in its middle"
		}
	}
	if id == "nosuch" && errors.Is(err, durable.ErrNotFound) && strings.Count(text, id) != 1 {
		return "it does not say once what does not exist"
	}
	return ""
}

// errorsOf calls every method of v that takes a context and a name, with zero values for the
// rest, and returns the errors by method.
func errorsOf(ctx context.Context, v any, id string) map[string]error {
	all := map[string]error{}
	name, ctxType := reflect.TypeFor[string](), reflect.TypeFor[context.Context]()
	for m := range reflect.TypeOf(v).NumMethod() {
		method := reflect.TypeOf(v).Method(m)
		if method.Type.NumIn() < 3 || method.Type.In(1) != ctxType || method.Type.In(2) != name {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(v), reflect.ValueOf(ctx), reflect.ValueOf(id)}
		for i := 3; i < method.Type.NumIn() && !(method.Type.IsVariadic() && i == method.Type.NumIn()-1); i++ {
			if method.Type.In(i) == reflect.TypeFor[io.Writer]() {
				args = append(args, reflect.ValueOf(io.Discard))
				continue
			}
			args = append(args, reflect.Zero(method.Type.In(i)))
		}
		results := method.Func.Call(args)
		last := results[len(results)-1]
		switch last.Kind() {
		case reflect.Func: // iter.Seq2[T, error]
			if last.Type().NumIn() != 1 || last.Type().In(0).NumIn() != 2 {
				continue
			}
			yield := reflect.MakeFunc(last.Type().In(0), func(got []reflect.Value) []reflect.Value {
				err, _ := got[1].Interface().(error)
				if err != nil {
					all[method.Name] = err
				}
				return []reflect.Value{reflect.ValueOf(err == nil)}
			})
			last.Call([]reflect.Value{yield})
		default:
			if err, ok := last.Interface().(error); ok {
				all[method.Name] = err
			}
		}
	}
	return all
}

// Whatever is asked of a run that does not exist, has ended, waits, or whose engine is
// closed: the text of the error says each thing once.
func TestTheTextOfAnErrorDoesNotStutter(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			b.run(t, func(t *testing.T) {
				st, err := b.fresh(t)().open()
				require.NoError(t, err)
				defer func() { require.NoError(t, st.Close()) }()
				waits := durable.Define("waits", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "go") })
				fails := durable.Define("fails", func(context.Context, int) (int, error) { return 0, io.ErrUnexpectedEOF })
				eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{waits, fails}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
				require.NoError(t, err)
				defer func() { require.NoError(t, eng.Close()) }()
				ctx := durable.NewContext(t.Context(), eng)
				_, err = waits.Start(ctx, "waiting", 1)
				require.NoError(t, err)
				f, err := fails.Start(ctx, "failed", 1)
				require.NoError(t, err)
				_, err = f.Wait(ctx)
				require.Error(t, err)
				require.Empty(t, stutters(err, "failed"), err)

				seen := 0
				look := func(state, id string) {
					for _, on := range []any{eng, operate.On(eng)} {
						short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
						for method, err := range errorsOf(short, on, id) {
							seen++
							assert.Empty(t, stutters(err, id), "%T.%s of a run that %s: %s", on, method, state, err)
						}
						stop()
					}
					err := durable.Signal(ctx, id, "word", 1)
					if err != nil {
						assert.Empty(t, stutters(err, id), "Signal of a run that %s: %s", state, err)
					}
				}
				look("does not exist", "nosuch")
				require.Greater(t, seen, 20, "errors were looked at")
				require.ErrorIs(t, durable.Signal(ctx, "nosuch", "word", 1), durable.ErrNotFound)
				look("has failed", "failed")
				look("waits", "waiting")
				require.NoError(t, eng.Close())
				look("its engine has left", "waiting")
			})
		})
	}
}

// A step whose result cannot be kept, and options that make no sense: their texts name the run,
// the step and the package once.
func TestTheTextOfARefusalDoesNotStutter(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			b.run(t, func(t *testing.T) {
				st, err := b.fresh(t)().open()
				require.NoError(t, err)
				defer func() { require.NoError(t, st.Close()) }()
				bad := durable.Define("bad", func(ctx context.Context, _ int) (int, error) {
					_, err := durable.Step(ctx, "open", func(context.Context) (chan int, error) { return make(chan int), nil })
					return 0, err
				})
				_, err = durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{bad, bad}, Logger: slog.New(slog.DiscardHandler)})
				require.ErrorIs(t, err, durable.ErrInvalid)
				require.Empty(t, stutters(err, ""), err)
				eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{bad}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
				require.NoError(t, err)
				defer func() { require.NoError(t, eng.Close()) }()
				ctx := durable.NewContext(t.Context(), eng)
				h, err := bad.Start(ctx, "r", 1)
				require.NoError(t, err)
				_, err = h.Wait(ctx)
				require.ErrorContains(t, err, "step open: a value of type chan int cannot be kept")
				require.Equal(t, 1, strings.Count(err.Error(), "step open"), err)
				require.Equal(t, 1, strings.Count(err.Error(), "run r"), err)
				require.Empty(t, stutters(err, "r"), err)
				require.Equal(t, "r", h.String(), "a handle prints as the id of its run")
			})
		})
	}
}
