// Command mutants puts known faults back, one at a time, and prints which test finds each,
// and whether the simulator (test/sim) does, told nothing of them. A mutant is a patch
// beside this file: its first line says what goes wrong, the second which tests are to find
// it. It is applied to copies of the files that it touches, which "go test -overlay" puts in
// their places; the work tree stays as it is.
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
	seeds  = flag.Int("seeds", 20_000, "how many worlds to play for each mutant at most")
	within = flag.Duration("within", 10*time.Minute, "how long to play worlds for each mutant at most")
	first  = flag.Uint64("first", 1, "the first seed")
	only   = flag.String("only", "", "try only the mutants whose names match this regular expression")
	by     = flag.String("by", "both", "who is to find them: sim, tests or both")
	show   = flag.Bool("show", false, "print the world that shows each mutant")
)

func main() {
	flag.Parse()
	patches, err := filepath.Glob("test/mutants/*.patch")
	if err != nil || len(patches) == 0 {
		fail(fmt.Errorf("no mutants: start this in the root of the module (%v)", err))
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		fail(err)
	}
	var t totals
	defer func() { _ = os.RemoveAll(clean.dir) }()
	for _, patch := range patches {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		if !wanted.MatchString(name) {
			continue
		}
		v, err := try(patch)
		if err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
		v.print(name)
		t.add(name, v)
	}
	fmt.Printf("proof: mutants=%d found=%d by_tests=%d played=%d by_the_simulator=%d of_engine=%d engine_by_the_simulator=%d\n",
		t.all, t.found, t.byTests, t.played, t.bySim, t.engine, t.engineBySim)
	if t.found < t.all {
		os.Exit(1)
	}
}

// totals counts mutants: of all, those that were played in the simulator, and of those the
// faults of the engine that people had found (their names begin with "a").
type totals struct{ all, found, byTests, played, bySim, engine, engineBySim int }

func (t *totals) add(name string, v verdict) {
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	count(&t.all, true)
	count(&t.found, v.bySim || v.byTests)
	count(&t.byTests, v.byTests)
	count(&t.played, v.played)
	count(&t.bySim, v.bySim)
	count(&t.engine, v.played && strings.HasPrefix(name, "a"))
	count(&t.engineBySim, v.bySim && strings.HasPrefix(name, "a"))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "mutants:", err)
	os.Exit(2)
}

// A verdict is what became of one mutant.
type verdict struct {
	why     string // what it does wrong
	tests   string // that are to find it, as arguments of go test
	tested  bool
	byTests bool
	failed  string // the first test that did

	played    bool
	bySim     bool
	worlds    string // that were played until then
	took      time.Duration
	lines     int // of the program that shows it
	as, world string
	code      string // of the world, for -world
	alarm     string // what the simulator says of that world without the mutant; empty: nothing
}

func (v *verdict) print(name string) {
	fmt.Printf("%s: %s\n", name, v.why)
	switch {
	case v.byTests:
		fmt.Printf("    tests:     found by %s (go test %s)\n", v.failed, v.tests)
	case v.tested:
		fmt.Printf("    tests:     NOT found by go test %s\n", v.tests)
	}
	switch {
	case v.alarm != "":
		fmt.Printf("    simulator: a FALSE ALARM, which the code without the mutant raises, too: %s\n", v.alarm)
	case v.bySim:
		fmt.Printf("    simulator: found in world %s, after %s, by a program of %d lines: %s\n", v.worlds, v.took.Round(time.Second), v.lines, v.as)
	case v.played:
		fmt.Printf("    simulator: NOT found in %s worlds, in %s\n", v.worlds, v.took.Round(time.Second))
	}
	if !v.byTests && !v.bySim {
		fmt.Println("    FOUND BY NOTHING")
	}
	if *show {
		fmt.Println(v.world)
	}
}

// try has tests and the simulator look at a mutant.
func try(patch string) (v verdict, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return v, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, overlay, err := mutate(patch, dir)
	if err != nil {
		return v, err
	}
	lines := strings.SplitN(text, "\n", 3)
	v.why = lines[0]
	var named bool
	if v.tests, named = strings.CutPrefix(lines[1], "test: "); !named {
		return v, fmt.Errorf("its second line does not name tests")
	}
	if *by != "sim" {
		if err := v.test(overlay); err != nil {
			return v, err
		}
	}
	if *by != "tests" && simulated(text) {
		return v, v.play(dir, overlay)
	}
	return v, nil
}

// simulated reports whether a mutant changes anything that the simulator executes: it has a
// store in memory.
func simulated(patch string) bool {
	for _, m := range touched.FindAllStringSubmatch(patch, -1) {
		file := m[1]
		if !strings.HasPrefix(file, "store/sqlite/") && !strings.HasPrefix(file, "store/postgres/") && !strings.HasPrefix(file, "internal/sqlstore/") {
			return true
		}
	}
	return false
}

// test has the named tests look at the mutant.
func (v *verdict) test(overlay string) error {
	args := append([]string{"test", "-overlay", overlay, "-count=1", "-timeout", "5m"}, strings.Fields(v.tests)...)
	out, err := exec.Command("go", args...).CombinedOutput()
	v.tested, v.byTests = true, err != nil
	switch m := failedTest.FindSubmatch(out); {
	case bytes.Contains(out, []byte("[build failed]")):
		return fmt.Errorf("it does not compile: %s", out)
	case bytes.Contains(out, []byte("no tests to run")):
		return fmt.Errorf("go test %s runs no tests", v.tests)
	case m != nil:
		v.failed = string(m[1])
	case v.byTests:
		v.failed = "the end of the process: " + firstLine(out)
	}
	return nil
}

// play plays worlds on a mutant until one fails.
func (v *verdict) play(dir, overlay string) error {
	binary, last := filepath.Join(dir, "sim.test"), filepath.Join(dir, "last")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "-overlay", overlay, "./test/sim").CombinedOutput(); err != nil {
		return fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	cmd := exec.Command(binary, "-test.run", "^TestWorlds$", "-test.v", "-test.timeout", "0",
		"-seeds", fmt.Sprint(*seeds), "-first", fmt.Sprint(*first), "-within", within.String())
	cmd.Env = append(os.Environ(), "HOLDFAST_SIM_LAST="+last)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	v.played, v.bySim, v.took = true, err != nil, time.Since(began)
	if v.worlds = "?"; counted.Match(out) {
		v.worlds = string(counted.FindSubmatch(out)[1])
	}
	if err == nil {
		return nil
	}
	if m := shown.FindSubmatch(out); m != nil {
		v.as, v.world = string(m[1]), string(m[2])
	} else { // the process ended
		world, _ := os.ReadFile(last)
		if _, n, ok := strings.Cut(string(world), "seed "); ok {
			v.worlds, _, _ = strings.Cut(n, "\n")
		}
		v.as, v.world = "the process ends: "+firstLine(out), string(world)
	}
	if m := coded.FindSubmatch(out); m != nil {
		v.code = string(m[1])
		if v.alarm, err = clean.play(v.code); err != nil {
			return err
		}
		v.bySim = v.alarm == ""
	}
	_, program, _ := strings.Cut(v.world, "Program:")
	program, _, _ = strings.Cut(program, "Faults:")
	program, _, _ = strings.Cut(program, "Acts:")
	v.lines = strings.Count(strings.TrimSpace(program), "\n") + 1
	return nil
}

// clean is the simulator of the code as it is.
var clean simulator

// A simulator is a test binary that is built when it is needed.
type simulator struct{ dir, binary string }

// play plays a world a few times, and returns the first failure; empty: there was none.
func (s *simulator) play(code string) (failure string, err error) {
	if s.binary == "" {
		if s.dir, err = os.MkdirTemp("", "mutant"); err != nil {
			return "", err
		}
		s.binary = filepath.Join(s.dir, "sim.test")
		if out, err := exec.Command("go", "test", "-c", "-o", s.binary, "./test/sim").CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w\n%s", err, out)
		}
	}
	out, err := exec.Command(s.binary, "-test.run", "^TestWorlds$", "-test.count", "5", "-world", code).CombinedOutput()
	if err == nil {
		return "", nil
	}
	if m := said.FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	return "", fmt.Errorf("the code as it is does not play the world %s: %w\n%s", code, err, out)
}

var (
	coded      = regexp.MustCompile(`again, shrunk: -world (\S+)`)
	said       = regexp.MustCompile(`_test\.go:\d+: ([^\n]*)`)
	touched    = regexp.MustCompile(`(?m)^--- a/(.*)$`)
	failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	counted    = regexp.MustCompile(`(\d+) worlds, \d+ durable events`)
	shown      = regexp.MustCompile(`(?s)\n\s*// ([^\n]*)\n(\s*func TestWorld.*?\n\s*\}\)\n\s*\}\n)`)
)

func firstLine(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	return "it says nothing"
}

// mutate applies a patch to copies in dir of the files that it touches. It returns the
// patch, and the file that tells the go command of the copies.
func mutate(patch, dir string) (said, overlay string, err error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return "", "", err
	}
	replace := map[string]string{}
	for _, m := range touched.FindAllSubmatch(text, -1) {
		file := string(m[1])
		source, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		from, _ := filepath.Abs(file)
		replace[from] = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(replace[from]), 0o755); err != nil {
			return "", "", err
		}
		if err := os.WriteFile(replace[from], source, 0o644); err != nil {
			return "", "", err
		}
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(text)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("it does not apply: %w\n%s", err, out)
	}
	for from, to := range replace {
		before, _ := os.ReadFile(from)
		if after, _ := os.ReadFile(to); bytes.Equal(before, after) {
			return "", "", fmt.Errorf("it changes nothing in %s", from)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return string(text), overlay, os.WriteFile(overlay, data, 0o644)
}
