// Telemetry shows what an engineer sees of a run that was executed by three processes:
// one trace, with every attempt in it. Two of the processes kill themselves with
// SIGKILL in the middle of a step. Spans and metrics go over OTLP/HTTP to the collector
// of OTEL_EXPORTER_OTLP_ENDPOINT or, without one, to a small receiver in this program,
// which prints what it got.
//
//	go run ./examples/telemetry
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 go run ./examples/telemetry
//
// Read setup.go first: it is all that a program needs for tracing. The workflow in
// order.go has no tracing code, except for a span of its own.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
)

// lifeVariable says which life of the shop a process of this program is, from 1. The
// process that the user starts has none and directs the others.
const lifeVariable = "HOLDFAST_TELEMETRY_LIFE"

const orderID = "order-42"

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelWarn)
	data := flag.String("data", "", "keep the shop's store in this `directory`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if life := os.Getenv(lifeVariable); life != "" {
		n, _ := strconv.Atoi(life) // made by demo
		err = shop(ctx, *data, n)
	} else {
		err = demo(ctx, os.Stdout, *data)
	}
	if err != nil {
		log.Printf("telemetry: %v", err)
		os.Exit(1)
	}
}
