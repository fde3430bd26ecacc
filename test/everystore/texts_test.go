package everystore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// hostileTexts are what a program may be given by its users and hands on.
var hostileTexts = map[string]string{
	"invalid UTF-8":   "pay \xff\xfe",
	"NUL":             "pay \x00 alice",
	"lone surrogate":  "pay \xed\xa0\x80 alice",
	"direction":       "pay \u202e01\u202c \u2066x",
	"a megabyte":      strings.Repeat("ü", 1<<19),
	"cut in a letter": strings.Repeat("x", 4<<10-1) + strings.Repeat("ü", 40<<10), // at each of the limits there are
}

// A textField is a place where text comes in. try puts it there, for a run with the
// given id; the error is that of the public call.
type textField struct {
	name string
	try  func(ctx context.Context, eng *durable.Engine, id, text string) error
}

// asTyped is an error of the user's with fields.
type asTyped struct{ Text string }

func (e *asTyped) Error() string { return e.Text }

// textWorkflow does with a text what the field says.
var textWorkflow = durable.Define("texts", func(ctx context.Context, in [2]string) (string, error) {
	text := in[1]
	nothing := func(context.Context) error { return nil }
	switch in[0] {
	case "prompt":
		_, err := durable.Await[bool](ctx, "ask", durable.Prompt(text))
		return "", err
	case "step name":
		return "", durable.Do(ctx, text, nothing)
	case "branch name":
		_, err := durable.Go(ctx, text, func(context.Context) (int, error) { return 1, nil }).Wait(ctx)
		return "", err
	case "wait name":
		_, err := durable.Await[bool](ctx, text, durable.Timeout(time.Millisecond))
		if errors.Is(err, durable.ErrTimeout) {
			err = nil
		}
		return "", err
	case "note key", "note value":
		return "", durable.Do(ctx, "step", func(ctx context.Context) error {
			if in[0] == "note key" {
				durable.Note(ctx, text, 1)
			} else {
				durable.Note(ctx, "k", text)
			}
			return nil
		})
	case "step error":
		return "", durable.Do(ctx, "step", func(context.Context) error { return errors.New(text) })
	case "typed error":
		return "", durable.Do(ctx, "step", func(context.Context) error { return &asTyped{text} })
	case "function error":
		return "", errors.New(text)
	case "panic":
		panic(text)
	case "undecodable":
		return "", durable.Do(ctx, "step", func(context.Context) error { return fmt.Errorf("%s", durable.Permanent(errors.New(text))) })
	case "attribute value":
		return "", durable.SetAttributes(ctx, map[string]string{"a": text})
	case "attribute name":
		return "", durable.SetAttributes(ctx, map[string]string{text: "a"})
	case "published key":
		return "", durable.Publish(ctx, text, 1)
	case "published value":
		return "", durable.Publish(ctx, "k", text)
	case "result":
		return text, nil
	}
	_, err := durable.Await[string](ctx, "go")
	return "", err
})

func textFields() []textField {
	var fields []textField
	for _, name := range []string{
		"prompt", "step name", "branch name", "wait name", "note key", "note value", "step error", "typed error", "function error", "panic", "undecodable",
		"attribute value", "attribute name", "published key", "published value", "result", "input",
	} {
		fields = append(fields, textField{name, func(ctx context.Context, eng *durable.Engine, id, text string) error {
			_, err := textWorkflow.Start(durable.NewContext(ctx, eng), id, [2]string{name, text})
			return err
		}})
	}
	start := func(name string, o func(text string) durable.StartOption) {
		fields = append(fields, textField{name, func(ctx context.Context, eng *durable.Engine, id, text string) error {
			_, err := textWorkflow.Start(durable.NewContext(ctx, eng), id, [2]string{}, o(text))
			return err
		}})
	}
	start("start attribute", func(text string) durable.StartOption {
		return durable.Attributes(map[string]string{"a": text})
	})
	start("header key", func(text string) durable.StartOption { return durable.Header(text, "v") })
	start("header value", func(text string) durable.StartOption { return durable.Header("k", text) })
	start("exclusive key", func(text string) durable.StartOption { return durable.Exclusive(text) })
	start("first signal", func(text string) durable.StartOption { return durable.WithSignal(text, "v") })
	fields = append(fields, textField{"run id", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		if _, err := textWorkflow.Start(durable.NewContext(ctx, eng), id+text, [2]string{}); err != nil {
			return err
		}
		_, err := textWorkflow.Start(durable.NewContext(ctx, eng), id, [2]string{})
		return err
	}})
	act := func(name string, do func(ctx context.Context, eng *durable.Engine, id, text string) error) {
		fields = append(fields, textField{name, func(ctx context.Context, eng *durable.Engine, id, text string) error {
			if _, err := textWorkflow.Start(durable.NewContext(ctx, eng), id, [2]string{}); err != nil {
				return err
			}
			return do(ctx, eng, id, text)
		}})
	}
	act("signal name", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		return eng.Signal(ctx, id, text, 1)
	})
	act("signal id", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		return eng.Signal(ctx, id, "other", 1, durable.SignalID(text))
	})
	act("signal value", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		return eng.Signal(ctx, id, "go", text)
	})
	act("cancel reason", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		return eng.Cancel(ctx, id, text)
	})
	fields = append(fields, textField{"reason of a cancel before the run begins", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		if _, err := textWorkflow.Start(durable.NewContext(ctx, eng), id, [2]string{}, durable.Delay(time.Hour)); err != nil {
			return err
		}
		return eng.Cancel(ctx, id, text)
	}})
	act("pause reason", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		return eng.Pause(ctx, id, text)
	})
	act("jump reason", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		_, err := operate.On(eng).Jump(ctx, id, 1, operate.JumpOptions{Reason: text, By: text})
		return err
	})
	act("fork id", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		_, err := operate.On(eng).Fork(ctx, id, operate.ForkOptions{ID: id + "~" + text})
		return err
	})
	fields = append(fields, textField{"edit reason", func(ctx context.Context, eng *durable.Engine, id, text string) error {
		run, err := textWorkflow.Start(durable.NewContext(ctx, eng), id, [2]string{"step error", "no"})
		if err != nil {
			return err
		}
		if _, err := run.Wait(ctx); err == nil {
			return errors.New("it has not failed")
		}
		_, err = operate.On(eng).Edit(ctx, id, "step", json.RawMessage(`{}`), operate.EditOptions{Reason: text, By: text, Force: true})
		return err
	}})
	return fields
}

// Each text that comes in is refused before anything is written, or kept in a form
// that every store can keep, the same in the row and in the log.
func TestATextThatComesInIsRefusedOrKeptAlikeByEveryStore(t *testing.T) {
	said := map[string]map[string]bool{} // by field and text, and by store: whether it was kept
	onEach(t, func(t *testing.T, b backend, d *data) {
		ctx := context.Background()
		eng, err := durable.Open(ctx, d.outside, durable.Options{
			Name: "web \x00\xff", BootReason: "boot \x00\xff", Workflows: []durable.Definition{textWorkflow}, Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		_, err = eng.Recover(ctx)
		require.NoError(t, err)
		n := 0
		for _, f := range textFields() {
			for kind, text := range hostileTexts {
				n++
				id := fmt.Sprintf("run-%d", n)
				err := f.try(ctx, eng, id, text)
				if err != nil && !errors.Is(err, durable.ErrInvalid) && !errors.Is(err, store.ErrTooLarge) {
					t.Errorf("%s of %s: %v", f.name, kind, brief(err))
					continue
				}
				what := f.name + " of " + kind
				if said[what] == nil {
					said[what] = map[string]bool{}
				}
				said[what][b.name] = err == nil
				if err != nil {
					continue
				}
				settled(t, d, id)
				v, err := operate.On(eng).Verify(ctx, id)
				if err != nil || len(v.Findings) > 0 {
					t.Errorf("%s of %s: it is damaged: %v %v", f.name, kind, brief(err), brief(v.Findings))
				}
				var file bytes.Buffer
				if err := operate.On(eng).Export(ctx, id, &file); err != nil {
					t.Errorf("%s of %s: it cannot be exported: %v", f.name, kind, brief(err))
				}
				h, err := d.outside.Load(ctx, id, store.Cursor{NoEvents: true})
				require.NoError(t, err)
				if got := store.CleanText(h.Run.Reason); got != h.Run.Reason {
					t.Errorf("%s of %s: the row says %.80q", f.name, kind, h.Run.Reason)
				}
			}
		}
	})
	for what, kept := range said {
		for name, k := range kept {
			if k != kept["memory"] {
				t.Errorf("%s: kept by memory: %t, by %s: %t", what, kept["memory"], name, k)
			}
		}
	}
}

func brief(v any) string { return fmt.Sprintf("%.300q", fmt.Sprint(v)) }

// settled waits until a run has ended, or waits for somebody.
func settled(t *testing.T, d *data, id string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		h, err := d.outside.Load(context.Background(), id, store.Cursor{NoEvents: true})
		require.NoError(t, err)
		if s := h.Run.Status; s.Terminal() || s == store.Waiting || s == store.Interrupted {
			return
		}
		require.Less(t, time.Since(began), patience, "%s is %s", id, h.Run.Status)
	}
}
