// Bench measures the library against the best that a user could write by hand: raw
// inserts into a table of the same shape, in the same database, in the same minute.
// docs/performance.md says how to read it.
//
//	go run ./bench [-quick] [-json] [-only SEQ,FAN] [-stores sqlite,postgres,memory]
//	go run ./bench -compare OLD.json [-from NEW.json]   which cases have moved
//	go run ./bench -plot DIR [-from NEW.json]           the curves as pictures
//	go run ./bench -scale [-quick] [-json] [-only beat,page] [-stores sqlite,postgres]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A size says how much is measured.
type size struct {
	pairs    int // blocks of each side
	fanPairs int // of FAN, whose blocks are longer
	rounds   int // of cases without a floor
	idle     int // seconds
	idleCPU  int // seconds
	items    int // of MAP
	careRuns int // of CARE, a round
	// of RECOVER
	recoverRuns, recoverRounds int
	// of STATE; 1,000 but in tests
	stateSteps int

	sleepers   sleepers
	signals    int // of a round
	awayRounds int // of signals from another process, which have breaks between them

	queues queues
	depths depths
	fires  fires
	crowds crowds

	dash dashes

	sweeps sweeps
}

// Fewer than fifteen pairs give no bootstrap interval worth printing.
var (
	quick = size{
		pairs: 40, fanPairs: 15, rounds: 11, idle: 30, idleCPU: 10, items: 10_000, careRuns: 200, stateSteps: stateSteps, recoverRuns: 1000, recoverRounds: 5,
		sleepers: sleepers{Runs: 100_000, Due: 1000, Wakes: 3, Idle: 30, Slack: 10 * time.Second}, signals: 100, awayRounds: 5,
		queues: queues{Runs: 10_000, Single: 200, Rounds: 3}, depths: depths{Shallow: 1000, Queued: 1_000_000, Delayed: 1_000_000, Partitions: 1000, Pairs: 40}, fires: fires{Few: 10, Many: 10_000, Pairs: 200},
		crowds: crowds{Of: []int{1, 2, 4}, Rounds: 3, Window: 2 * time.Second},
		dash:   dashes{Runs: 100_000, Steps: 10_000, Clients: 200, Pairs: 9, Spell: 1100 * time.Millisecond, Burst: 400 * time.Millisecond},
		sweeps: sweeps{Pairs: 9, Crowds: []int{1, 4, 16, 64, 256}, Steps: 1024, Lengths: []int{100, 1000, 10_000}, Payloads: []int{16, 1 << 10, 16 << 10, 256 << 10}, Bytes: 2 << 20, Runs: []int{1000, 10_000, 100_000}},
	}
	// full ends within half an hour. A store of a million runs is measured by -scale.
	full = size{
		pairs: 200, fanPairs: 31, rounds: 15, idle: 60, idleCPU: 60, items: 10_000, careRuns: 400, stateSteps: stateSteps, recoverRuns: 1000, recoverRounds: 7,
		sleepers: sleepers{Runs: 100_000, Due: 1000, Wakes: 3, Idle: 30, Slack: 10 * time.Second}, signals: 100, awayRounds: 9,
		queues: queues{Runs: 10_000, Single: 400, Rounds: 5}, depths: depths{Shallow: 1000, Queued: 1_000_000, Delayed: 1_000_000, Partitions: 1000, Pairs: 40}, fires: fires{Few: 10, Many: 10_000, Pairs: 400},
		crowds: crowds{Of: []int{1, 2, 4, 8}, Rounds: 3, Window: 2 * time.Second},
		dash:   dashes{Runs: 100_000, Steps: 10_000, Clients: 200, Pairs: 15, Spell: 1100 * time.Millisecond, Burst: 400 * time.Millisecond},
		sweeps: sweeps{Pairs: 9, Crowds: []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, Steps: 1024, Lengths: []int{100, 1000, 10_000, 100_000}, Payloads: []int{16, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}, Bytes: 2 << 20, Runs: []int{1000, 10_000, 100_000}},
	}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // what was made is removed
	defer stop()
	do := func() error { return command(ctx, os.Stdout, os.Args[1:]) }
	if env := os.Getenv(childEnv); env != "" {
		do = func() error { return obey(ctx, env, os.Stdin, os.Stdout) }
	}
	if err := do(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	isQuick := flags.Bool("quick", false, "fewer and smaller rounds: about eight minutes; most of that are SLEEP, SIGNAL and DASH")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
	only := flags.String("only", "", "run only these `cases`, separated by commas: "+strings.Join(caseNames(), ", "))
	stores := flags.String("stores", "sqlite,postgres,memory", "measure only these `stores`")
	isScale := flags.Bool("scale", false, "measure what depends on the size of the store instead, with up to a million runs; -only then has words of the names of curves")
	from := flags.String("from", "", "take the results from this `file`, which -json has printed, and measure nothing")
	compareTo := flags.String("compare", "", "print which cases have moved beyond their intervals since this `file`, which -json has printed")
	plots := flags.String("plot", "", "write the curves as SVG to this `directory`")
	flags.StringVar(&profiles, "profile", "", "write profiles of the CPU time of all processes to this `directory`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	on, err := choose(*stores, []string{"sqlite", "postgres", "memory"})
	if err != nil {
		return err
	}
	if *isScale {
		sizes, words := []int{1000, 100_000, 1_000_000}, []string(nil)
		if *isQuick {
			sizes = sizes[:2]
		}
		if *only != "" {
			words = strings.Split(*only, ",")
		}
		slog.SetDefault(slog.New(slog.DiscardHandler))
		return profiled(profiles, "bench", func() error { return scale(ctx, out, on, sizes, scaleTries, words, *asJSON) })
	}
	wanted, err := choose(*only, caseNames())
	if err != nil {
		return err
	}
	n := full
	if *isQuick {
		n = quick
	}
	var old []result
	if *compareTo != "" {
		if old, err = readJSON(*compareTo); err != nil { // before minutes of measuring
			return err
		}
	}
	var results []result
	if *from != "" {
		results, err = readJSON(*from)
	} else {
		// The engine's log lines do not belong in the output of a measurement.
		slog.SetDefault(slog.New(slog.DiscardHandler))
		err = profiled(profiles, "bench", func() error {
			results, err = measure(ctx, on, wanted, n)
			return err
		})
	}
	if err != nil && len(results) == 0 {
		return err
	}
	// What was measured until it failed, or was interrupted, took long, too.
	return errors.Join(say(out, results, old, *plots, *compareTo != "", *asJSON), err)
}

// say plots the results, compares them with old ones, or prints them.
func say(out io.Writer, results, old []result, plots string, comparing, asJSON bool) error {
	if plots != "" {
		if err := plot(plots, results); err != nil {
			return err
		}
	}
	switch {
	case comparing && asJSON:
		return errors.Join(printJSON(out, results), compare(os.Stderr, old, results))
	case comparing:
		return compare(out, old, results)
	case asJSON:
		return printJSON(out, results)
	}
	return printTable(out, results)
}

// choose splits a list given by the user; empty means all.
func choose(list string, all []string) ([]string, error) {
	if list == "" {
		return all, nil
	}
	names := strings.Split(list, ",")
	for _, n := range names {
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("%q is none of %s", n, strings.Join(all, ", "))
		}
	}
	return names, nil
}

// measure runs the selected cases on every target. It reports progress on stderr,
// because it takes a while. With an error it returns what was measured before.
func measure(ctx context.Context, stores, wanted []string, n size) ([]result, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	targets, closeAll, err := openTargets(dir, stores)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	var results []result
	for _, c := range cases {
		if !slices.Contains(wanted, c.name) {
			continue
		}
		for _, t := range targets {
			if !c.on(t) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return results, err
			}
			fmt.Fprintf(os.Stderr, "%s on %s %s ... ", c.name, t.name, t.mode)
			began := time.Now()
			rs, err := c.run(ctx, t, n)
			fmt.Fprintf(os.Stderr, "%.0f s\n", time.Since(began).Seconds())
			if err != nil {
				return results, fmt.Errorf("%s on %s %s: %w", c.name, t.name, t.mode, err)
			}
			for _, r := range rs {
				r.Store, r.Mode = t.name, t.mode
				results = append(results, r)
			}
		}
	}
	return results, nil
}
