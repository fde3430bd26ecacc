package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// hiddenText is a value that is kept encrypted, and hiddenNumber one of a number.
const (
	hiddenText   = "the-secret-of-Ada"
	hiddenNumber = 987654321
)

type cardBefore struct {
	Card string
	Pin  int64
}

type cardAsTime struct {
	Card time.Time
	Pin  int64
}

type cardWithSmallPin struct {
	Card string
	Pin  int8
}

// quoting says in its error, or its panic, what it was given.
type quoting string

func (*quoting) UnmarshalJSON(b []byte) error {
	return &quotingError{Got: string(b)}
}

type quotingError struct{ Got string }

func (e *quotingError) Error() string { return "no card: " + e.Got }

type cardAsPicky struct {
	Card quoting
	Pin  int64
}

type loud string

func (*loud) UnmarshalJSON(b []byte) error { panic("what is " + string(b)) }

type cardAsLoud struct {
	Card loud
	Pin  int64
}

// A value that cannot be read is told by type and place: what decodes it may quote it.
func TestAnErrorOfDecodingDoesNotSayTheValue(t *testing.T) {
	for name, read := range map[string]func(ctx context.Context) error{
		"a time": func(ctx context.Context) error {
			_, err := durable.Step(ctx, "read", func(context.Context) (cardAsTime, error) { return cardAsTime{}, nil })
			return err
		},
		"a number that is too large": func(ctx context.Context) error {
			_, err := durable.Step(ctx, "read", func(context.Context) (cardWithSmallPin, error) { return cardWithSmallPin{}, nil })
			return err
		},
		"a decoder of the user's": func(ctx context.Context) error {
			_, err := durable.Step(ctx, "read", func(context.Context) (cardAsPicky, error) { return cardAsPicky{}, nil })
			return err
		},
		"a decoder of the user's that panics": func(ctx context.Context) error {
			_, err := durable.Step(ctx, "read", func(context.Context) (cardAsLoud, error) { return cardAsLoud{}, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			first := durable.Define("w", func(ctx context.Context, _ string) (string, error) {
				if _, err := durable.Step(ctx, "read", func(context.Context) (cardBefore, error) { return cardBefore{hiddenText, hiddenNumber}, nil }); err != nil {
					return "", err
				}
				return durable.Await[string](ctx, "ok")
			})
			next := durable.Define("w", func(ctx context.Context, _ string) (string, error) {
				if err := read(ctx); err != nil {
					return "", err
				}
				return durable.Await[string](ctx, "ok")
			})
			w := hiddenWorld(t)
			w.open(first)
			w.start(first, "r")
			w.until("r", store.Waiting)
			w.close()
			w.open(next)
			require.NoError(t, w.eng.Signal(ctx, "r", "ok", "go"))
			reason := w.until("r", store.Interrupted).Reason
			require.Contains(t, reason, "the checkpoint of read holds a durable_test.cardBefore and cannot be read as durable_test.")
			_, err := operate.On(w.eng).Resume(ctx, "r", operate.ResumeOptions{DryRun: true})
			var und *durable.UndecodableError
			require.ErrorAs(t, err, &und)
			w.hides(err)
			if name == "a decoder of the user's" {
				var inner *quotingError
				require.ErrorAs(t, err, &inner, "in memory it is there for whoever asks")
			}
		})
	}
}

func TestASignalOfAnotherTypeDoesNotSayItsValue(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ string) (string, error) {
		v, err := durable.Await[time.Time](ctx, "ok")
		return v.String(), err
	})
	w := hiddenWorld(t)
	w.open(wf)
	w.start(wf, "r")
	w.until("r", store.Waiting)
	require.NoError(t, w.eng.Signal(t.Context(), "r", "ok", hiddenText))
	require.Contains(t, w.until("r", store.Failed).Reason, "the signal for ok holds a string and cannot be read as time.Time")
	w.hides(nil)
}

// unkeepable cannot be encoded, and says what it is.
type unkeepable struct{ Card string }

func (u unkeepable) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("%s is not to be kept", u.Card)
}

func TestAValueThatCannotBeKeptIsNotSaid(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ string) (string, error) {
		_, err := durable.Step(ctx, "make", func(context.Context) (unkeepable, error) { return unkeepable{hiddenText}, nil })
		return "", err
	})
	w := hiddenWorld(t)
	w.open(wf)
	w.start(wf, "r")
	require.Contains(t, w.until("r", store.Failed).Reason, "cannot be kept")
	w.hides(nil)
}

func TestAnInputOfAStepThatCannotBeHashedIsNotSaid(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ string) (string, error) {
		return durable.Step(ctx, "pay", func(context.Context) (string, error) { return "paid", nil }, durable.WithInput(unkeepable{hiddenText}))
	})
	w := hiddenWorld(t)
	w.open(wf)
	w.start(wf, "r")
	require.Contains(t, w.until("r", store.Failed).Reason, "pay")
	w.hides(nil)
}

// hidden is a store in a file, all of whose values are encrypted, and what the engine
// on it logs.
type hidden struct {
	t   *testing.T
	dir string
	log bytes.Buffer
	st  store.Store
	eng *durable.Engine
}

func hiddenWorld(t *testing.T) *hidden { return &hidden{t: t, dir: t.TempDir()} }

func (w *hidden) open(d durable.Definition) {
	w.t.Helper()
	st, err := sqlite.Open(filepath.Join(w.dir, "runs.db"))
	require.NoError(w.t, err)
	w.st = st
	w.eng, err = durable.Open(context.Background(), w.st, durable.Options{
		Workflows: []durable.Definition{d}, Encrypt: durable.StaticKeys("k1", map[string][]byte{"k1": bytes.Repeat([]byte("k"), 32)}),
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)), Grace: -1,
	})
	require.NoError(w.t, err)
	_, err = w.eng.Recover(context.Background())
	require.NoError(w.t, err)
}

func (w *hidden) start(d *durable.Workflow[string, string], id string) {
	w.t.Helper()
	_, err := d.Start(durable.NewContext(w.t.Context(), w.eng), id, "in")
	require.NoError(w.t, err)
}

func (w *hidden) until(id string, s store.Status) (i durable.Info) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		var err error
		i, err = w.eng.Get(w.t.Context(), id)
		return err == nil && i.Status == s
	}, 20*time.Second, 5*time.Millisecond, "%s is %s", id, i.Status)
	return i
}

func (w *hidden) close() {
	w.t.Helper()
	require.NoError(w.t, w.eng.Close())
	require.NoError(w.t, w.st.Close())
}

// hides checks that the values stand nowhere: neither in what was returned, nor in
// what is recorded or logged.
func (w *hidden) hides(returned error) {
	w.t.Helper()
	info, err := w.eng.Get(w.t.Context(), "r")
	require.NoError(w.t, err)
	shown := map[string]string{"the error": fmt.Sprint(returned), "the reason": info.Reason}
	w.close()
	shown["the log"] = w.log.String()
	file, err := os.ReadFile(filepath.Join(w.dir, "runs.db")) // closed: there is no other
	require.NoError(w.t, err)
	shown["the database"] = string(file)
	for where, text := range shown {
		require.NotContains(w.t, text, hiddenText, where)
		require.NotContains(w.t, text, fmt.Sprint(hiddenNumber), where)
	}
}
