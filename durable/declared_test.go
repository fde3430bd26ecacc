package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// A program that is run for its terminal alone, or that only starts runs, may be an old build, or
// lack half of its configuration.
func TestAnEngineThatIsNotRecoveredChangesNoDeclarationOfTheRunningProgram(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		declares := func(most int, every time.Duration) durable.Options {
			o := declared(flow, flow.Schedule("s", durable.Every(every), 0))
			o.Queues = []durable.Queue{{Name: "mails", Max: most}}
			return o
		}
		w.boot(t, declares(5, time.Hour))
		stored := func() (most int, timetable string) {
			op := operate.On(w.eng)
			q, err := op.Queues(context.Background(), "mails")
			require.NoError(t, err)
			require.Len(t, q, 1)
			return q[0].Max, w.schedule("s").Timetable
		}
		w.open(t, declares(1, time.Minute))
		pass(time.Minute)
		most, timetable := stored()
		require.Equal(t, 5, most)
		require.Equal(t, "every 1h0m0s", timetable)
		require.Empty(t, w.log.find("before"), "nothing was replaced: %s", w.log)
		require.Len(t, w.log.find("the queues and schedules that this program declares are not stored"), 1)

		_, err := w.eng.Recover(context.Background())
		require.NoError(t, err)
		most, timetable = stored()
		require.Equal(t, 1, most, "an engine that executes says what the limits are")
		require.Equal(t, "every 1m0s", timetable)
		require.Len(t, w.log.find("a queue was declared with other limits before"), 1)
		require.Len(t, w.log.find("a schedule was declared differently before"), 1)
	})
}

func TestASecondRecoverDoesNotDeclareAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		with := func(most int) durable.Options {
			return durable.Options{Queues: []durable.Queue{{Name: "mails", Max: most}}}
		}
		w.boot(t, with(5))
		first := w.eng
		w.boot(t, with(1))
		_, err := first.Recover(context.Background())
		require.NoError(t, err)
		q, err := operate.On(w.eng).Queues(context.Background(), "mails")
		require.NoError(t, err)
		require.Equal(t, 1, q[0].Max, "two programs do not take turns")
	})
}

// The code of an engine that nobody recovered may be an old one, which would start its version.
func TestOnlyAnEngineThatIsRecoveredFiresSchedules(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
		w.crash()
		w.open(t, declared(flow))
		pass(time.Hour + time.Minute)
		require.Empty(t, w.scheduled("s"))
		_, err := w.eng.Recover(context.Background())
		require.NoError(t, err)
		pass(time.Minute)
		require.Equal(t, []string{"2000-01-01T01:00:00Z"}, w.scheduled("s"))
	})
}

func TestAnEngineThatIsClosedDeclaresNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.open(t, durable.Options{Queues: []durable.Queue{{Name: "mails", Max: 5}}})
		require.NoError(t, w.eng.Close())
		_, err := w.eng.Recover(context.Background())
		require.ErrorIs(t, err, durable.ErrClosed)
		w.open(t, durable.Options{})
		_, err = operate.On(w.eng).Queues(context.Background(), "mails")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

func TestARecoverThatWaitsForAnotherOneEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		eng := w.open(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
		silent := make(chan struct{})
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "put schedule" {
				<-silent
			}
			return forward()
		})
		first := make(chan error, 1)
		go func() {
			_, err := eng.Recover(context.Background())
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		second := make(chan error, 1)
		go func() {
			_, err := eng.Recover(ctx)
			second <- err
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case err := <-second:
			require.ErrorIs(t, err, context.Canceled)
		default:
			t.Error("it waits for the store that does not answer another call")
		}
		close(silent)
		require.NoError(t, <-first)
	})
}
