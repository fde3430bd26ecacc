// Stdlib measures every package of the Go standard library on this machine, one
// durable step per package, while the program is killed at random moments and
// started again. The report must equal, byte for byte, the one that is computed
// without the library, and no package may be measured again except those that a
// kill hit in flight.
//
//	go run ./examples/stdlib -kills 20
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// roleVariable marks the process of this program that works and is killed.
const (
	roleVariable = "HOLDFAST_STDLIB_ROLE"
	roleApp      = "app"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if os.Getenv(roleVariable) == roleApp {
		go exitWithParent()
		err = app(ctx, os.Args[1], os.Args[2])
	} else {
		err = command(ctx, os.Stdout, os.Args[1:])
	}
	if err != nil {
		log.Printf("stdlib: %v", err)
		os.Exit(1)
	}
}

func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func command(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("stdlib", flag.ContinueOnError)
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
	dir, err := os.MkdirTemp("", "holdfast-stdlib-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	report, err := survey(ctx, out, dir, strings.TrimSpace(string(goroot)), *kills, *seed)
	if err != nil {
		return fmt.Errorf("seed %d: %w", *seed, err)
	}
	if *file != "" {
		return os.WriteFile(*file, []byte(report), 0o600)
	}
	return nil
}

// survey computes the report both ways, compares, and checks the journal.
func survey(ctx context.Context, out io.Writer, dir, root string, kills int, seed uint64) (string, error) {
	pkgs, err := packages(root)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(out, "%d packages in %s, %d kills, seed %d\n", len(pkgs), root, kills, seed)
	began := time.Now()
	want, err := plain(root)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(out, "without the library: %s\n", time.Since(began).Round(time.Millisecond))

	journal, err := openJournal(filepath.Join(dir, journalName))
	if err != nil {
		return "", err
	}
	defer journal.Close()
	began = time.Now()
	k := &killer{dir: dir, root: root, total: len(pkgs), kills: kills, rng: rand.New(rand.NewPCG(seed, 0)), journal: journal}
	if err := k.run(ctx); err != nil {
		return "", err
	}
	fmt.Fprintf(out, "durably, with kills: %s\n", time.Since(began).Round(time.Millisecond))

	got, err := os.ReadFile(filepath.Join(dir, reportName))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		return "", err
	}
	t, err := tally(string(text))
	if err != nil {
		return "", err
	}
	return string(got), verdict(out, t, len(pkgs), kills, string(got), want)
}

func verdict(out io.Writer, t Tally, packages, kills int, got, want string) error {
	lines := strings.Split(strings.TrimSpace(got), "\n")
	fmt.Fprintf(out, "\n%s\n%s\n\n", lines[0], lines[len(lines)-1])
	fmt.Fprintf(out, "kills            %d\n", t.Kills)
	fmt.Fprintf(out, "packages         %d recorded of %d\n", t.Packages, packages)
	fmt.Fprintf(out, "step bodies      %d, of which %d ran again because a kill met them in flight\n", t.Bodies, t.Again)
	switch {
	case t.Packages != packages:
		return fmt.Errorf("%d packages were recorded, not %d", t.Packages, packages)
	case got != want:
		return fmt.Errorf("the report differs from the one computed without the library:\n%s", firstDifference(got, want))
	case t.Kills != kills:
		return fmt.Errorf("only %d of %d kills came before the work was done: ask for fewer", t.Kills, kills)
	}
	fmt.Fprintf(out, "report           %d bytes, identical to the one computed without the library\n", len(got))
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
