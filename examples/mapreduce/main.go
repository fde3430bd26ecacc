// Mapreduce reads every file of the Go source tree on this machine (the standard
// library and its commands: more than 6,000 files), a durable Map over all of
// them, and reduces the measurements to a report. The program is killed at
// random moments and started again. The report must equal, byte for byte, the
// one that is computed without the library; no file may be read again once its
// outcome is recorded; and a kill may cost no more than the files that were
// being read at that moment.
//
//	go run ./examples/mapreduce -kills 20
//
// Read survey.go first: it is the workflow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// roleApp is the role of the process that works and is killed.
const roleApp = "app"

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelWarn)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if demo.Role() == roleApp {
		err = app(demo.UntilParentEnds(ctx), os.Args[1], os.Args[2])
	} else {
		err = command(ctx, os.Stdout, os.Args[1:])
	}
	if err != nil {
		log.Printf("mapreduce: %v", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("mapreduce", flag.ContinueOnError)
	kills := flags.Int("kills", 5, "how often to kill the program")
	seed := flags.Uint64("seed", rand.Uint64(), "of the moments of the kills")
	file := flags.String("o", "", "write the whole report to this `file`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	dir, err := os.MkdirTemp("", "holdfast-mapreduce-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	report, err := prove(ctx, out, dir, strings.TrimSpace(string(goroot)), *kills, *seed)
	if err != nil {
		return fmt.Errorf("seed %d: %w", *seed, err)
	}
	if *file != "" {
		return os.WriteFile(*file, []byte(report), 0o600)
	}
	return nil
}

// prove computes the report both ways, compares, and checks the book.
func prove(ctx context.Context, out io.Writer, dir, root string, kills int, seed uint64) (string, error) {
	files, err := sources(root)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(out, "%d files in %s, %d kills, seed %d\n", len(files), root, kills, seed)
	began := time.Now()
	want, err := plain(root, files)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(out, "without the library: %s\n", time.Since(began).Round(time.Millisecond))

	began = time.Now()
	if err := withKills(ctx, dir, root, files, kills, seed); err != nil {
		return "", err
	}
	fmt.Fprintf(out, "durably, with kills: %s\n", time.Since(began).Round(time.Millisecond))

	got, err := os.ReadFile(filepath.Join(dir, reportName))
	if err != nil {
		return "", err
	}
	book, err := os.ReadFile(filepath.Join(dir, bookName))
	if err != nil {
		return "", err
	}
	t, err := tally(string(book))
	if err != nil {
		return "", err
	}
	return string(got), verdict(out, t, len(files), kills, string(got), want)
}

// withKills runs the program to its end, and logs what each kill found recorded.
func withKills(ctx context.Context, dir, root string, files []string, kills int, seed uint64) error {
	path := filepath.Join(dir, bookName)
	book, err := demo.OpenBook(path)
	if err != nil {
		return err
	}
	defer book.Close()
	done := map[string]bool{}
	audit := func() error {
		now, err := finished(ctx, dir, files)
		if err != nil {
			return err
		}
		for _, file := range files {
			switch {
			case done[file] && !now[file]:
				return fmt.Errorf("the outcome of %s was recorded and is lost", file)
			case now[file] && !done[file]:
				if err := book.Write(recorded, file); err != nil {
					return err
				}
			}
		}
		done = now
		return nil
	}
	k := &demo.Killer{
		Role: roleApp, Args: []string{dir, root}, Book: path,
		Rand: rand.New(rand.NewPCG(seed, 0)),
		Left: func() (int, error) { return len(files) - len(done), nil },
		Killed: func() error {
			if err := audit(); err != nil {
				return err
			}
			return book.Write(killed)
		},
	}
	if _, err := k.Run(ctx, kills); err != nil {
		return err
	}
	return audit()
}

func verdict(out io.Writer, t Tally, files, kills int, got, want string) error {
	table, _, _ := strings.Cut(got, "\n\n")
	lines := strings.Split(table, "\n")
	fmt.Fprintf(out, "\n%s\n%s\n\n", lines[0], lines[len(lines)-1])
	fmt.Fprintf(out, "kills      %d\n", t.Kills)
	fmt.Fprintf(out, "files      %d recorded of %d\n", t.Files, files)
	fmt.Fprintf(out, "reads      %d, of which %d again because a kill met them in flight, at most %d a kill\n", t.Reads, t.Again, t.Flight)
	switch {
	case t.Files != files:
		return fmt.Errorf("%d files were recorded, not %d", t.Files, files)
	case t.Reads != files+t.Again:
		return fmt.Errorf("%d reads of %d files, of which %d were made again", t.Reads, files, t.Again)
	case got != want:
		return fmt.Errorf("the report differs from the one computed without the library:\n%s", firstDifference(got, want))
	case t.Kills != kills:
		return fmt.Errorf("only %d of %d kills came before the work was done: ask for fewer", t.Kills, kills)
	}
	fmt.Fprintf(out, "identical  %d bytes, the same as computed without the library\n", len(got))
	return nil
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\ngot  %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}
