package durable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAStepThatHasReturnedIsNotRunAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var first, failing int
		var h hold
		wf := durable.Define("w", func(ctx context.Context, in int) (string, error) {
			a, err := durable.Step(ctx, "first", func(context.Context) (int, error) { first++; return in + first, nil })
			if err != nil {
				return "", err
			}
			failed := durable.Do(ctx, "failing", func(context.Context) error { failing++; return fmt.Errorf("failure %d", failing) })
			if err := durable.Do(ctx, "hold", h.body); err != nil {
				return "", err
			}
			return fmt.Sprint(a, " ", failed), nil
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 10)
		synctest.Wait()
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "11 step failing: failure 1", out)
		require.Equal(t, []int{1, 1, 2}, []int{first, failing, h.count()})
		require.Equal(t, []string{
			"workflow_created", "workflow_started", "step_completed first", "step_failed failing 1",
			"run_resumed", "step_started hold", "step_completed hold", "workflow_completed",
		}, w.story("r"))
	})
}

// What Step returns is what a replay returns, although the live value might
// hold more than its encoding keeps.
func TestLiveValuesAreThoseOfTheReplay(t *testing.T) {
	type inner struct {
		Name   string
		hidden int //nolint:unused // it must not survive in the live value alone
	}
	type nested struct {
		At      time.Time
		P       *inner
		Nil     *inner
		Empty   []int
		None    []int
		M       map[string]inner
		NoMap   map[string]int
		Omitted string  `json:"omitted,omitempty"`
		Dropped string  `json:"-"`
		F       float64 `json:"f"`
		Any     any
	}
	type plain struct {
		ID   int64
		Name string
		OK   bool
		Sub  struct{ N uint8 }
	}
	type label string
	monotonic := func() time.Time { return time.Now() } // with a monotonic reading and a location
	same(t, "int", 42)
	same(t, "big int64", int64(math.MaxInt64))
	same(t, "big uint64", uint64(math.MaxUint64))
	same(t, "int in an interface", any(7))
	same(t, "big int in an interface", any(int64(math.MaxInt64)))
	same(t, "struct in an interface", any(plain{ID: 1}))
	same(t, "nil interface", any(nil))
	same(t, "string", "plain ü \x00 \u2028 <&> \ufffd")
	same(t, "invalid UTF-8", "a\xffb")
	same(t, "named string", label("a\xc3"))
	same(t, "float", 0.1+0.2)
	same(t, "float32", float32(1)/3)
	same(t, "bytes", []byte{0, 255, 1})
	same(t, "nil bytes", []byte(nil))
	same(t, "empty slice", []string{})
	same(t, "nil slice", []string(nil))
	same(t, "array", [3]uint8{1, 2, 3})
	same(t, "map", map[int]string{1: "a\xff", 2: ""})
	same(t, "nil map", map[string]int(nil))
	same(t, "pointer", &inner{Name: "p", hidden: 3})
	same(t, "nil pointer", (*inner)(nil))
	same(t, "pointer to a nil pointer", func() **inner { var p *inner; return &p }())
	same(t, "plain struct", plain{ID: math.MinInt64, Name: "ü\xff", OK: true})
	same(t, "hidden field", inner{Name: "n", hidden: 7})
	same(t, "time", monotonic())
	same(t, "duration", time.Duration(math.MinInt64))
	same(t, "empty struct", struct{}{})
	same(t, "error-like struct", struct{ Err error }{})
	same(t, "nested", nested{
		At: monotonic(), P: &inner{"x", 1}, Empty: []int{}, M: map[string]inner{"k": {"v", 2}}, Dropped: "gone", F: 1e-300, Any: []int{1},
	})
}

func same[T any](t *testing.T, name string, v T) {
	t.Run(name, func(t *testing.T) {
		runs := 0
		live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (T, error) {
			return durable.Step(ctx, "value", func(context.Context) (T, error) { runs++; return v, nil })
		})
		require.NoError(t, live.err)
		require.NoError(t, replay.err)
		require.Equal(t, live.value, replay.value)
		require.Equal(t, fmt.Sprintf("%#v", comparable(live.value)), fmt.Sprintf("%#v", comparable(replay.value)))
		require.Equal(t, 1, runs)
	})
}

// comparable follows pointers, whose addresses differ.
func comparable(v any) any {
	if s := fmt.Sprintf("%#v", v); strings.Contains(s, "(0x") || strings.Contains(s, ":0x") {
		return ""
	}
	return v
}

// A live value must not share memory with what the body keeps hold of.
func TestALiveValueIsNotChangedByItsMaker(t *testing.T) {
	kept := map[string]int{"a": 1}
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (map[string]int, error) {
		m, err := durable.Step(ctx, "value", func(context.Context) (map[string]int, error) { return kept, nil })
		kept["a"] = 99
		return m, err
	})
	require.Equal(t, map[string]int{"a": 1}, live.value)
	require.Equal(t, live, replay)
}

var errStock = errors.New("out of stock")

type cardError struct {
	Code   int
	secret string
}

func (e *cardError) Error() string { return fmt.Sprintf("card refused with %d%s", e.Code, e.secret) }

type plainError struct{ Why string }

func (e plainError) Error() string { return "because " + e.Why }

// A tangled error's tree must not take anything down.
type nilCause struct{}

func (nilCause) Error() string   { return "with a nil cause" }
func (nilCause) Unwrap() []error { return []error{nil, errStock} }

type uncomparable struct{ What any }

func (u uncomparable) Error() string { return fmt.Sprint("uncomparable ", u.What) }

type nilPanics struct{ msg string }

func (e *nilPanics) Error() string { return e.msg }

func registered() durable.Options {
	return durable.Options{Errors: []durable.ErrorKind{
		durable.Sentinel("stock", errStock),
		durable.ErrorType[*cardError]("card"),
		durable.ErrorType[plainError]("plain"),
	}}
}

func TestErrorsKeepTheirMessageAndIdentityLiveAndOnReplay(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		check func(t *testing.T, err error)
	}{
		"plain":            {errors.New("boom"), nil},
		"invalid UTF-8":    {errors.New("bo\xffom"), nil},
		"empty message":    {errors.New(""), nil},
		"sentinel":         {errStock, func(t *testing.T, err error) { require.ErrorIs(t, err, errStock) }},
		"wrapped sentinel": {fmt.Errorf("shelf 3: %w", errStock), func(t *testing.T, err error) { require.ErrorIs(t, err, errStock) }},
		"standard":         {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), func(t *testing.T, err error) { require.ErrorIs(t, err, io.ErrUnexpectedEOF) }},
		"typed pointer": {fmt.Errorf("paying: %w", &cardError{Code: 7}), func(t *testing.T, err error) {
			var e *cardError
			require.ErrorAs(t, err, &e)
			require.Equal(t, 7, e.Code)
		}},
		"typed with a field that is not kept": {&cardError{Code: 7, secret: " (do not retry)"}, func(t *testing.T, err error) {
			var e *cardError
			require.ErrorAs(t, err, &e)
		}},
		"typed value": {plainError{"of you"}, func(t *testing.T, err error) {
			var e plainError
			require.ErrorAs(t, err, &e)
			require.Equal(t, plainError{"of you"}, e)
		}},
		"joined": {errors.Join(errors.New("one"), fmt.Errorf("two: %w", errStock), &cardError{Code: 3}), func(t *testing.T, err error) {
			require.ErrorIs(t, err, errStock)
			var e *cardError
			require.ErrorAs(t, err, &e)
		}},
		"permanent": {durable.Permanent(fmt.Errorf("x: %w", errStock)), func(t *testing.T, err error) {
			require.ErrorIs(t, err, errStock)
			var s *durable.StepError
			require.ErrorAs(t, err, &s)
			require.True(t, s.Permanent)
		}},
		"nil cause":        {nilCause{}, func(t *testing.T, err error) { require.ErrorIs(t, err, errStock) }},
		"uncomparable":     {uncomparable{[]int{1}}, nil},
		"nil pointer":      {(*nilPanics)(nil), nil},
		"own EncodeError":  {&durable.EncodeError{RunID: "x", Type: "T", Err: errStock}, nil},
		"not a registered": {&nilPanics{"custom"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			live, replay := liveAndReplayed(t, registered(), func(ctx context.Context) (int, error) {
				return durable.Step(ctx, "s", func(context.Context) (int, error) { return 0, c.err })
			})
			require.Error(t, live.err)
			require.Equal(t, live.err.Error(), replay.err.Error())
			if e, isNil := c.err.(*nilPanics); !isNil || e != nil {
				require.Equal(t, "step s: "+strings.ToValidUTF8(c.err.Error(), "\ufffd"), live.err.Error())
			}
			for _, err := range []error{live.err, replay.err} {
				var s *durable.StepError
				require.ErrorAs(t, err, &s)
				require.Equal(t, "s", s.Key)
				if c.check != nil {
					c.check(t, err)
				}
			}
			require.Equal(t, live.err, replay.err)
		})
	}
}

// The run's own error goes through the same record, seen by Wait live, by Wait
// on a finished run, and by another process.
func TestAFailedRunGivesItsErrorToWhoeverWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, fmt.Errorf("no: %w", errors.Join(errStock, &cardError{Code: 5}))
		})
		o := registered()
		o.Workflows = []durable.Definition{wf}
		w.open(t, o)
		_, live := run(t, w, wf, "r", 0)
		_, again := wait(t, w, wf, "r")
		w.open(t, o)
		_, elsewhere := wait(t, w, wf, "r")
		for _, err := range []error{live, again, elsewhere} {
			require.ErrorIs(t, err, errStock)
			require.ErrorIs(t, err, durable.ErrRunFailed)
			require.NotErrorIs(t, err, durable.ErrRunCancelled)
			var c *cardError
			require.ErrorAs(t, err, &c)
			require.Equal(t, 5, c.Code)
			var r *durable.RunError
			require.ErrorAs(t, err, &r)
			require.True(t, r.Recoverable)
			require.Equal(t, live.Error(), err.Error())
		}
		row := w.row("r")
		require.Equal(t, store.Failed, row.Status)
		require.Equal(t, durable.CodeError, row.Code)
		require.NotZero(t, row.EndedAt)
	})
}

func TestAPanicInABodyFailsTheStepAndKeepsItsStack(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		return durable.Step(ctx, "s", func(context.Context) (int, error) { panic(fmt.Sprintf("at %s", "the wall")) })
	})
	require.Equal(t, live, replay)
	for _, err := range []error{live.err, replay.err} {
		var p *durable.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "at the wall", p.Value)
		require.Contains(t, p.Stack, "steps_test.go")
		require.EqualError(t, err, "step s: panic: at the wall")
	}
}

func TestAPanicInAWorkflowFailsTheRunAndNotTheProcess(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"nil pointer": func(context.Context) error { var m *world; m.lease = 1; return nil },
		"error whose Error panics": func(context.Context) error {
			return (*cardError)(nil)
		},
		"error whose Unwrap panics":      func(context.Context) error { return badUnwrap{} },
		"error whose Is panics":          func(context.Context) error { return badIs{} },
		"error whose MarshalJSON panics": func(context.Context) error { return badJSON{} },
		"panic with nil":                 func(context.Context) error { panic(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, body(ctx) })
				o := with(wf)
				o.Errors = []durable.ErrorKind{durable.ErrorType[badJSON]("badjson")}
				w.open(t, o)
				_, err := run(t, w, wf, "r", 0)
				require.ErrorIs(t, err, durable.ErrRunFailed)
				require.Equal(t, store.Failed, w.row("r").Status)
				// In a body it is contained just so.
				wf2 := durable.Define("w2", func(ctx context.Context, _ int) (int, error) {
					return 0, durable.Do(ctx, "s", body)
				})
				o.Workflows = []durable.Definition{wf2}
				w.open(t, o)
				_, err = run(t, w, wf2, "r2", 0)
				require.ErrorIs(t, err, durable.ErrRunFailed)
				require.Equal(t, store.Failed, w.row("r2").Status)
			})
		})
	}
}

type badUnwrap struct{}

func (badUnwrap) Error() string { return "bad unwrap" }
func (badUnwrap) Unwrap() error { panic("unwrap") }

type badIs struct{}

func (badIs) Error() string   { return "bad is" }
func (badIs) Is(error) bool   { panic("is") }
func (badIs) As(any) bool     { panic("as") }
func (badJSON) Error() string { return "bad json" }

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("json") }

func TestGoexitIsAFailureAndNoZeroValue(t *testing.T) {
	for name, where := range map[string]func(ctx context.Context) (int, error){
		"in a body": func(ctx context.Context) (int, error) {
			return durable.Step(ctx, "s", func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
		},
		"in the workflow": func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return where(ctx) })
				w.serve(t, wf)
				_, err := run(t, w, wf, "r", 0)
				require.ErrorIs(t, err, durable.ErrGoexit)
				require.ErrorIs(t, err, durable.ErrRunFailed)
				require.Equal(t, store.Failed, w.row("r").Status)
			})
		})
	}
}

func TestAResultThatCannotBeKeptIsNamedOnTheFirstRun(t *testing.T) {
	type withChannel struct{ C chan int }
	for name, c := range map[string]struct {
		call func(ctx context.Context) error
		typ  string
	}{
		"channel": {func(ctx context.Context) error {
			_, err := durable.Step(ctx, "make", func(context.Context) (withChannel, error) { return withChannel{make(chan int)}, nil })
			return err
		}, "durable_test.withChannel"},
		"function": {func(ctx context.Context) error {
			_, err := durable.Step(ctx, "make", func(context.Context) (func(), error) { return func() {}, nil })
			return err
		}, "func()"},
		"not a number": {func(ctx context.Context) error {
			_, err := durable.Step(ctx, "make", func(context.Context) (float64, error) { return math.NaN(), nil })
			return err
		}, "float64"},
		"an error as value": {func(ctx context.Context) error {
			_, err := durable.Step(ctx, "make", func(context.Context) (error, error) { return errStock, nil })
			return err
		}, "error"},
		"retried": {func(ctx context.Context) error {
			_, err := durable.Retry(ctx, "make", durable.Policy{}, func(context.Context) (chan int, error) { return nil, nil })
			return err
		}, "chan int"},
		"with a reader inside": {func(ctx context.Context) error {
			_, err := durable.Step(ctx, "make", func(context.Context) (struct{ R io.Reader }, error) {
				return struct{ R io.Reader }{strings.NewReader("x")}, nil
			})
			return err
		}, "struct { R io.Reader }"},
	} {
		t.Run(name, func(t *testing.T) {
			live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) { return 0, c.call(ctx) })
			for _, err := range []error{live.err, replay.err} {
				var enc *durable.EncodeError
				require.ErrorAs(t, err, &enc)
				require.Equal(t, "make", enc.Key)
				require.Equal(t, c.typ, enc.Type)
				require.ErrorContains(t, err, "make")
				require.ErrorContains(t, err, c.typ)
			}
			require.Equal(t, live.err.Error(), replay.err.Error())
		})
	}
}

func TestAResultThatIsTooLargeFailsTheStepAndSaysTheLimit(t *testing.T) {
	size := store.DefaultLimits().Payload
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (string, error) {
		return durable.Step(ctx, "big", func(context.Context) (string, error) { return strings.Repeat("x", size), nil })
	})
	for _, err := range []error{live.err, replay.err} {
		require.ErrorIs(t, err, store.ErrTooLarge)
		require.ErrorContains(t, err, "big")
		require.ErrorContains(t, err, "the limit is")
	}
	require.Equal(t, live.err.Error(), replay.err.Error())
}

func TestAnOutputOrAnErrorThatCannotBeKeptStillEndsTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (chan int, error) { return nil, nil })
		big := durable.Define("big", func(context.Context, int) (string, error) {
			return strings.Repeat("x", store.DefaultLimits().Payload), nil
		})
		bigError := durable.Define("bigError", func(context.Context, int) (int, error) {
			return 0, plainError{strings.Repeat("x", store.DefaultLimits().Payload)}
		})
		bigStep := durable.Define("bigStep", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "s", func(context.Context) error {
				return errors.Join(plainError{strings.Repeat("x", store.DefaultLimits().Payload)}, plainError{strings.Repeat("x", store.DefaultLimits().Payload)})
			})
		})
		o := registered()
		o.Workflows = []durable.Definition{wf, big, bigError, bigStep}
		w.open(t, o)
		_, err := run(t, w, wf, "r", 0)
		require.ErrorIs(t, err, durable.ErrRunFailed)
		require.ErrorContains(t, err, "chan int")
		_, err = run(t, w, big, "r2", 0)
		require.ErrorIs(t, err, store.ErrTooLarge)
		_, err = run(t, w, bigError, "r3", 0)
		require.ErrorIs(t, err, durable.ErrRunFailed)
		_, err = run(t, w, bigStep, "r4", 0)
		require.ErrorIs(t, err, durable.ErrRunFailed)
		for _, id := range []string{"r", "r2", "r3", "r4"} {
			require.Equal(t, store.Failed, w.row(id).Status, id)
		}
		require.Contains(t, w.story("r4"), "step_failed s 1")
	})
}

func TestACheckpointThatCannotBeReadParksTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *store.Event)
		sealed bool
		code   string
		says   string
	}{
		"of another type": {func(e *store.Event) {}, true, durable.CodeUndecodable, "int"},
		"flipped byte, sum of the event made anew": {func(e *store.Event) { e.Payload[len(e.Payload)-1] ^= 1 },
			true, durable.CodeDamaged, "checksum"},
		"flipped byte": {func(e *store.Event) { e.Payload[len(e.Payload)-1] ^= 1 },
			false, durable.CodeDamaged, "damaged"},
		"cut short": {func(e *store.Event) { e.Payload = e.Payload[:5] },
			true, durable.CodeDamaged, "damaged"},
		"from the future": {func(e *store.Event) { e.Payload = []byte("hf9 " + string(e.Payload[4:])) },
			true, durable.CodeUndecodable, "format 9"},
		"of an event this program does not know": {func(e *store.Event) { e.Type = "telepathy" },
			true, durable.CodeUndecodable, "telepathy"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				define := func(text bool) *durable.Workflow[int, int] {
					return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						var err error
						if text {
							_, err = durable.Step(ctx, "value", func(context.Context) (string, error) { return "a text", nil })
						} else {
							_, err = durable.Step(ctx, "value", func(context.Context) (int, error) { t.Error("ran again"); return 1, nil })
						}
						if err != nil {
							return 0, err // also if it is swallowed nothing goes on: see below
						}
						return 7, durable.Do(ctx, "hold", h.body)
					})
				}
				text := define(true)
				w.serve(t, text)
				start(t, w, text, "r", 0)
				synctest.Wait()
				w.crash()
				w.expire()
				rebuild(t, w, "r", c.sealed, func(e *store.Event) {
					if e.Type == store.StepCompleted {
						c.change(e)
					}
				})
				code := define(name != "of another type")
				rep := w.boot(t, with(code))
				_, err := wait(t, w, code, "r")
				require.ErrorContains(t, err, c.says)
				require.ErrorIs(t, err, durable.ErrInterrupted)
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, c.code, row.Code, "%v", rep)
				require.Contains(t, row.Reason, c.says)
				require.Equal(t, 1, h.count())

				// Nothing was changed but the note that it stopped, and the next
				// boot reports it with the call that goes on.
				rep = w.boot(t, with(code))
				require.Len(t, rep.Stuck, 1)
				require.Equal(t, c.code, rep.Stuck[0].Code)
				next := `operate.On(engine).Resume(ctx, "r")`
				if c.code == durable.CodeDamaged {
					next = `operate.On(engine).Verify(ctx, "r") finds, then operate.On(engine).Repair`
				}
				require.Contains(t, rep.Stuck[0].Next, next)
			})
		})
	}
}

// A workflow that swallows the error of an unreadable checkpoint must not run on
// over it.
func TestAParkedRunMakesNoFurtherCalls(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		after := 0
		define := func(swallow bool) *durable.Workflow[int, int] {
			return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				if swallow {
					_, _ = durable.Step(ctx, "value", func(context.Context) (int, error) { return 1, nil })
					for {
						_ = durable.Do(ctx, "after", func(context.Context) error { after++; return nil })
					}
				}
				_, _ = durable.Step(ctx, "value", func(context.Context) (string, error) { return "x", nil })
				return 0, durable.Do(ctx, "hold", h.body)
			})
		}
		first := define(false)
		w.serve(t, first)
		start(t, w, first, "r", 0)
		synctest.Wait()
		second := define(true)
		w.reboot(t, with(second))
		_, err := wait(t, w, second, "r")
		var und *durable.UndecodableError
		require.ErrorAs(t, err, &und)
		require.Equal(t, "value", und.Key)
		require.Equal(t, "string", und.Recorded)
		require.Equal(t, "int", und.Wanted)
		require.Zero(t, after)
		require.Equal(t, durable.CodeUndecodable, w.row("r").Code)
	})
}
