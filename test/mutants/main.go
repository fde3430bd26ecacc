// Command mutants puts known faults back, one at a time, and prints which of them the
// simulator (test/sim) finds, told nothing of them. A mutant is a patch beside this file:
// its first line says what goes wrong. It is applied to copies of the files that it
// touches, which "go test -overlay" puts in their places; the work tree stays as it is.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var (
	seeds = flag.Int("seeds", 20_000, "how many worlds to play for each mutant")
	first = flag.Uint64("first", 1, "the first seed")
	only  = flag.String("only", "", "play only the mutants whose names contain this")
	show  = flag.Bool("show", false, "print the world that shows each mutant")
)

func main() {
	flag.Parse()
	patches, err := filepath.Glob("test/mutants/*.patch")
	if err != nil || len(patches) == 0 {
		fail(fmt.Errorf("no mutants: start this in the root of the module (%v)", err))
	}
	missed, played := 0, 0
	fmt.Printf("%-28s %-7s %7s %8s %6s  %s\n", "mutant", "found", "worlds", "time", "lines", "as")
	for _, patch := range patches {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		if !strings.Contains(name, *only) {
			continue
		}
		played++
		v, err := play(patch)
		if err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
		said := "yes"
		if !v.found {
			missed++
			said = "NO"
		}
		fmt.Printf("%-28s %-7s %7s %8s %6d  %s\n", name, said, v.worlds, v.took.Round(time.Second), v.lines, v.as)
		if *show {
			fmt.Println(v.world)
		}
	}
	fmt.Printf("%d of %d mutants found\n", played-missed, played)
	if missed > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "mutants:", err)
	os.Exit(2)
}

// A verdict is what became of one mutant.
type verdict struct {
	found     bool
	worlds    string // that were played until then
	took      time.Duration
	lines     int // of the Go test that shows it
	as, world string
}

// play plays worlds on a mutant until one fails.
func play(patch string) (v verdict, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return v, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := mutate(patch, dir)
	if err != nil {
		return v, err
	}
	binary, last := filepath.Join(dir, "sim.test"), filepath.Join(dir, "last")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "-overlay", overlay, "./test/sim").CombinedOutput(); err != nil {
		return v, fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	cmd := exec.Command(binary, "-test.run", "^TestWorlds$", "-test.v", "-test.timeout", "0", "-seeds", fmt.Sprint(*seeds), "-first", fmt.Sprint(*first))
	cmd.Env = append(os.Environ(), "HOLDFAST_SIM_LAST="+last)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	v.took = time.Since(began)
	if v.worlds = "?"; counted.Match(out) {
		v.worlds = string(counted.FindSubmatch(out)[1])
	}
	if err == nil {
		return v, nil
	}
	v.found = true
	if m := shown.FindSubmatch(out); m != nil {
		v.as, v.world = string(m[1]), string(m[2])
	} else { // the process ended
		world, _ := os.ReadFile(last)
		v.as, v.world = "the process ends: "+firstLine(out), string(world)
	}
	v.lines = strings.Count(strings.TrimSpace(v.world), "\n") + 1
	return v, nil
}

var (
	counted = regexp.MustCompile(`(\d+) worlds, \d+ durable events`)
	shown   = regexp.MustCompile(`(?s)\n\s*// ([^\n]*)\n(\s*func TestWorld.*?\n\s*\}\)\n\s*\}\n)`)
)

func firstLine(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	return "it says nothing"
}

// mutate applies a patch to copies in dir of the files that it touches, and returns the
// file that tells the go command of them.
func mutate(patch, dir string) (overlay string, err error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^--- a/(.*)$`).FindAllSubmatch(text, -1) {
		file := string(m[1])
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		from, _ := filepath.Abs(file)
		replace[from] = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(replace[from]), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(replace[from], source, 0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(text)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not apply: %w\n%s", err, out)
	}
	for from, to := range replace {
		before, _ := os.ReadFile(from)
		if after, _ := os.ReadFile(to); bytes.Equal(before, after) {
			return "", fmt.Errorf("it changes nothing in %s", from)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o644)
}
