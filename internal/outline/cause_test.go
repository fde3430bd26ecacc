package outline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// an ending is a workflow and how a verdict heads its run.
type ending struct {
	name string
	run  func(ctx context.Context) error
	head string
	more string // a part of what follows; empty: nothing is expected
}

func fails(text string) func(context.Context) error {
	return func(context.Context) error { return errors.New(text) }
}

func works(context.Context) error { return nil }

// failing is a step that fails after n attempts.
func failing(ctx context.Context, name, text string, n int) error {
	_, err := durable.Retry(ctx, name, durable.Policy{MaxAttempts: n, Initial: time.Millisecond}, func(context.Context) (int, error) { return 0, errors.New(text) })
	return err
}

// items is a Map of which those fail whose number is among bad.
func items(ctx context.Context, n int, bad ...int) error {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	_, err := durable.Map(ctx, "items", list, durable.MapOptions{KeepGoing: true}, func(ctx context.Context, i int) (int, error) {
		for _, b := range bad {
			if b == i {
				return 0, durable.Do(ctx, "resize", fails(fmt.Sprintf("picture %d is broken", i)))
			}
		}
		return i, nil
	})
	return err
}

func endings() []ending {
	child := durable.Define("child", func(ctx context.Context, _ int) (int, error) {
		return 0, durable.Do(ctx, "inner", fails("no stock"))
	})
	return []ending{
		{"a step", func(ctx context.Context) error { return failing(ctx, "charge", "bank down", 1) }, "charge failed: “bank down”", ""},
		{"a step, thrice", func(ctx context.Context) error { return failing(ctx, "charge", "bank down", 3) }, "charge failed 3 times; the last error was “bank down”", "All 3 attempts ended alike."},
		{"a step, wrapped", func(ctx context.Context) error {
			return fmt.Errorf("checkout: %w", failing(ctx, "charge", "bank down", 1))
		}, "charge failed: “bank down”", ""},
		{"a step, by its text", func(ctx context.Context) error {
			return fmt.Errorf("checkout: %v", failing(ctx, "charge", "bank down", 1))
		}, "charge failed: “bank down”", ""},
		{"a step, its error alone", func(ctx context.Context) error { return errors.Unwrap(failing(ctx, "charge", "bank down", 1)) }, "charge failed: “bank down”", ""},
		{"the function", fails("no goods today"), "The function returned an error: “no goods today”", ""},
		{"the function, after a step", func(ctx context.Context) error {
			return errors.Join(durable.Do(ctx, "reserve", works), errors.New("no goods today"))
		}, "The function returned an error: “no goods today”", ""},
		{"the function, after it caught a step", func(ctx context.Context) error {
			_ = failing(ctx, "mail", "mailbox full", 2)
			return errors.New("no goods today")
		}, "The function returned an error: “no goods today”", "It had gone on after mail failed: “mailbox full”."},
		{"a step, after another was caught", func(ctx context.Context) error {
			_ = failing(ctx, "mail", "mailbox full", 2)
			return failing(ctx, "charge", "bank down", 1)
		}, "charge failed: “bank down”", ""},
		{"a step, before another that was caught", func(ctx context.Context) error {
			err := failing(ctx, "charge", "bank down", 1)
			_ = failing(ctx, "mail", "mailbox full", 2)
			return err
		}, "charge failed: “bank down”", ""},
		{"two steps, the first first", func(ctx context.Context) error {
			return errors.Join(failing(ctx, "charge", "bank down", 1), failing(ctx, "mail", "mailbox full", 1))
		}, "charge failed: “bank down”", ""},
		{"a name within another", func(ctx context.Context) error {
			_ = failing(ctx, "charge", "bank down", 1)
			return fmt.Errorf("because %v", failing(ctx, "charge2", "bank is closed", 1))
		}, "charge2 failed: “bank is closed”", ""},
		{"a Map", func(ctx context.Context) error { return items(ctx, 40, 3, 7, 11) }, "items failed: 3 of 40 items failed, 37 are done", "The first of them, items[3], failed: “step items[3]/resize: picture 3 is broken”"},
		{"a Map, wrapped", func(ctx context.Context) error { return fmt.Errorf("gallery: %w", items(ctx, 4, 3)) }, "items failed: 1 of 4 items failed, 3 are done", ""},
		{"a Map that was caught", func(ctx context.Context) error {
			_ = items(ctx, 4, 3)
			return errors.New("too late")
		}, "The function returned an error: “too late”", ""},
		{"a step, after a Map that was caught", func(ctx context.Context) error {
			_ = items(ctx, 4, 3)
			return failing(ctx, "charge", "bank down", 1)
		}, "charge failed: “bank down”", ""},
		{"a branch", func(ctx context.Context) error {
			_, err := durable.Go(ctx, "side", func(ctx context.Context) (int, error) { return 0, failing(ctx, "charge", "bank down", 1) }).Wait(ctx)
			return err
		}, "side/charge failed: “bank down”", ""},
		{"a branch of its own accord", func(ctx context.Context) error {
			_, err := durable.Go(ctx, "side", func(context.Context) (int, error) { return 0, errors.New("no luck") }).Wait(ctx)
			return err
		}, "side failed: “no luck”", ""},
		{"a child", func(ctx context.Context) error {
			_, err := child.Run(ctx, "part", 1)
			return err
		}, "Its child run part ended as failed: “step inner: no stock”", ""},
		{"a panic", func(context.Context) error { panic("index out of range") }, "The function panicked: “panic: index out of range”", ""},
		{"a timeout of a wait", func(ctx context.Context) error {
			_, err := durable.Await[int](ctx, "answer", durable.Timeout(time.Second))
			return err
		}, "The function returned an error: “run a-timeout-of-a-wait: no signal for answer within 1s”", ""},
		{"an error of no text", fails(""), "Failed: ", ""},
		{"an error of many lines", fails("first\nsecond"), "The function returned an error: “first …”", ""},
		{"a permanent error", func(ctx context.Context) error {
			return durable.Do(ctx, "charge", func(context.Context) error { return durable.Permanent(errors.New("card stolen")) })
		}, "charge failed: “card stolen”", "It is final: pages do not offer to resume it; the terminal and the API do."},
	}
}

// What heads a run names what ended it, and nothing that the function had dealt with.
func TestTheVerdictNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := memory.Open()
		list := endings()
		child := durable.Define("child", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "inner", fails("no stock"))
		})
		all := durable.Define("ends", func(ctx context.Context, n int) (int, error) { return 0, list[n].run(ctx) })
		var lines bytes.Buffer // a handler writes one at a time
		eng, err := durable.Open(t.Context(), crashstore.Notifier{Store: crashstore.New(data.Handle())}, durable.Options{Name: "web-1", Workflows: []durable.Definition{all, child}, Logger: slog.New(slog.NewJSONHandler(&lines, nil))})
		require.NoError(t, err)
		verdicts := map[string]string{}
		_, err = eng.Recover(t.Context())
		require.NoError(t, err)
		for i, e := range list {
			id := strings.ReplaceAll(strings.ReplaceAll(e.name, " ", "-"), ",", "")
			run, err := all.Start(durable.NewContext(t.Context(), eng), id, i)
			require.NoError(t, err)
			_, _ = run.Wait(t.Context())
			h, err := data.Load(t.Context(), id, store.Cursor{All: true})
			require.NoError(t, err)
			o, err := outline.Of(outline.Input{Run: h.Run, Branches: h.Branches, Executors: []store.Executor{}, Now: store.Time(time.Now().UnixMicro())}, h.Events)
			require.NoError(t, err)
			if got := o.Verdict.Head.String(); got != e.head {
				t.Errorf("%s:\n got %s\nwant %s", e.name, got, e.head)
			}
			if e.more != "" && !strings.Contains(o.Verdict.Text(), e.more) {
				t.Errorf("%s:\n got %s\nwant %s", e.name, o.Verdict.Text(), e.more)
			}
			verdicts[id] = o.Verdict.Text()
		}
		require.NoError(t, eng.Close())
		logged := map[string]string{}
		for line := range strings.Lines(lines.String()) {
			var at struct{ Msg, Run, Verdict string }
			require.NoError(t, json.Unmarshal([]byte(line), &at))
			if at.Msg == "durable: run failed" && verdicts[at.Run] != "" {
				logged[at.Run] = at.Verdict
			}
		}
		require.Equal(t, verdicts, logged, "the log says the same")
	})
}

// With OmitTexts a log line about an end has no words of errors.
func TestTheVerdictInTheLogHasNoWordsOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, failing(ctx, "charge", "card 4111", 2) })
		eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, OmitTexts: true, Logger: slog.New(slog.NewJSONHandler(&lines, nil))})
		require.NoError(t, err)
		_, err = eng.Recover(t.Context())
		require.NoError(t, err)
		run, err := wf.Start(durable.NewContext(t.Context(), eng), "r", 0)
		require.NoError(t, err)
		_, _ = run.Wait(t.Context())
		require.NoError(t, eng.Close())
		require.Contains(t, lines.String(), `"verdict":"charge failed twice; the last error was “…”. All 2 attempts ended alike."`)
		require.NotContains(t, lines.String(), "4111")
	})
}
