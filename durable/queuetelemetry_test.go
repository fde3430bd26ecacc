package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
)

func TestMetricsSayHowLongTheLineOfAQueueIsAndHowOld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := durable.Define("hold", func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, time.Hour) })
		reader := sdk.NewManualReader()
		o := with(hold)
		o.Queues = []durable.Queue{{Name: "emails", Max: 1}, {Name: "idle"}}
		o.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
		w.boot(t, o)
		for _, id := range []string{"a", "b", "c"} {
			_, err := hold.Start(w.ctx(), id, 0, durable.OnQueue("emails"))
			require.NoError(t, err)
		}
		_, err := hold.Start(w.ctx(), "later", 0, durable.OnQueue("emails"), durable.Delay(24*time.Hour))
		require.NoError(t, err)
		_, err = hold.Start(w.ctx(), "made up", 0, durable.OnQueue("of a name that somebody made up"))
		require.NoError(t, err)
		pass(time.Minute)
		v := collected(t, reader)
		require.Equal(t, 2.0, v["durable.queue.depth{run} durable.queue.name=emails"], "one holds the place, and one comes later")
		require.InDelta(t, 60, v["durable.queue.ages durable.queue.name=emails"], 1)
		require.Equal(t, 0.0, v["durable.queue.depth{run} durable.queue.name=idle"])
		require.Equal(t, 0.0, v["durable.queue.ages durable.queue.name=idle"])
		require.NotContains(t, v, "durable.queue.depth{run} durable.queue.name=of a name that somebody made up", "there may be any number of those")
		require.Equal(t, 3.0, v["durable.queue.depth{run} "], "all that are pending")
	})
}

func TestTheSpansOfAQueuedRunSayWhichQueueCarriedIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewInMemoryExporter()
		mail := durable.Define("mail", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Sleep(ctx, time.Hour)
		})
		o := with(mail)
		o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		w.boot(t, o)
		_, err := mail.Start(w.ctx(), "r", 0, durable.OnQueue("emails"), durable.Partition("acme"))
		require.NoError(t, err)
		pass(time.Minute)
		w.reboot(t, o)
		pass(2 * time.Hour)
		_, err = mail.Start(w.ctx(), "alone", 0)
		require.NoError(t, err)
		synctest.Wait()

		segments := 0
		for _, s := range spans.GetSpans() {
			said := map[string]string{}
			for _, a := range s.Attributes {
				said[string(a.Key)] = a.Value.String()
			}
			carried := map[string]string{
				"messaging.system": said["messaging.system"], "messaging.operation.type": said["messaging.operation.type"], "messaging.operation.name": said["messaging.operation.name"],
				"messaging.destination.name": said["messaging.destination.name"], "messaging.destination.partition.id": said["messaging.destination.partition.id"], "messaging.message.id": said["messaging.message.id"],
			}
			queued := func(name, typ string) map[string]string {
				return map[string]string{
					"messaging.system": "durable", "messaging.operation.type": typ, "messaging.operation.name": name,
					"messaging.destination.name": "emails", "messaging.destination.partition.id": "acme", "messaging.message.id": "r",
				}
			}
			switch {
			case said["durable.run.id"] != "r":
				require.NotContains(t, said, "messaging.system", "%s of a run without queue", s.Name)
			case s.Name == "start mail":
				require.Equal(t, trace.SpanKindProducer, s.SpanKind)
				require.Equal(t, queued("enqueue", "send"), carried)
			case s.Name == "segment mail":
				require.Equal(t, trace.SpanKindConsumer, s.SpanKind)
				if segments++; segments == 1 {
					require.Equal(t, queued("begin", "process"), carried)
				} else {
					require.NotContains(t, said, "messaging.system", "only the first one came through the queue")
				}
			}
		}
		require.Equal(t, 2, segments)
	})
}
