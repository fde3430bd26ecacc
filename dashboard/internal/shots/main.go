// Command shots takes the screenshots of the dashboard for docs/dashboard.md, of
// real pages with real data, with the installed Chromium:
//
//	go run ./dashboard/internal/shots -out docs/dashboard
//
// With -serve it serves the same data instead, for a browser.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func main() {
	out := flag.String("out", "docs/dashboard", "directory for the pictures")
	serve := flag.String("serve", "", "address to serve the data at, instead")
	flag.Parse()
	if err := run(*out, *serve); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func run(out, serve string) error {
	ctx := context.Background()
	data := memory.Open()
	eng, stop, err := demo(ctx, data)
	if err != nil {
		return err
	}
	defer stop()
	stopLines := func() {}
	defer func() { stopLines() }()
	fill := func() (err error) {
		stopLines, err = lines(ctx, data.Handle())
		return err
	}
	o := dashboard.Options{ShowPayloads: true, Redact: redact, User: func(context.Context) string { return "jo@shop" }}
	if serve != "" {
		if err := fill(); err != nil {
			return err
		}
		return dashboard.ListenAndServe(ctx, serve, eng, o)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: dashboard.Handler(eng, o), ReadHeaderTimeout: 5 * time.Second}
	defer srv.Close()
	go func() { _ = srv.Serve(l) }()
	base := "http://" + l.Addr().String()
	if err := shoot(ctx, base, out, pages); err != nil {
		return err
	}
	if err := fill(); err != nil { // only now: these runs would fill the list of all runs
		return err
	}
	return shoot(ctx, base, out, linePages)
}
