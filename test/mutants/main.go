// Command mutants puts known faults back, one at a time, and prints which test finds each,
// and whether the simulator (test/sim) does, told nothing of them. A mutant is a patch
// beside this file: its first line says what goes wrong, the second which tests are to find
// it. It is applied to copies of the files that it touches, which "go test -overlay" puts in
// their places; the work tree stays as it is.
//
// The tests look at all mutants before the simulator looks at the first, because it takes
// longer. What they find is kept in a file, and nobody looks again while the code is the same.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var (
	seeds  = flag.Int("seeds", 20_000, "how many worlds to play for each mutant at most")
	within = flag.Duration("within", 2*time.Minute, "how long to play worlds for each mutant at most")
	first  = flag.Uint64("first", 1, "the first seed")
	only   = flag.String("only", "", "try only the mutants whose names match this regular expression")
	by     = flag.String("by", "both", "who is to find them: sim, tests or both")
	show   = flag.Bool("show", false, "print the world that shows each mutant")
	file   = flag.String("kept", ".mutants", "the file in which the looks are kept; empty: none")
)

func main() {
	flag.Parse()
	all, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !all {
		os.Exit(1)
	}
}

// run looks at the mutants, and reports whether each is found.
func run() (all bool, err error) {
	patches, err := filepath.Glob("test/mutants/*.patch")
	if err != nil || len(patches) == 0 {
		return false, fmt.Errorf("no mutants: start this in the root of the module (%v)", err)
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	var mutants []mutant
	for _, patch := range patches {
		m, err := read(patch)
		if err != nil {
			return false, err
		}
		if wanted.MatchString(m.name) {
			mutants = append(mutants, m)
		}
	}
	kept, err := openKept(*file)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, kept.close()) }()
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	clean := &binaries{dir: dir, built: map[string]string{}}
	var t totals
	for _, who := range []string{"tests", "sim"} {
		for _, m := range mutants {
			if *by != who && *by != "both" || who == "sim" && !m.simulated() {
				continue
			}
			l, known := kept.look(m, who)
			if !known {
				l = m.lookAt(who, clean)
				if err := kept.add(m, l); err != nil {
					return false, err
				}
			}
			l.print(m)
			t.add(m, l)
		}
	}
	return t.print(mutants), nil
}

// totals counts mutants: those that were played in the simulator, and of those the faults of
// the engine that people had found (their names begin with "a").
type totals struct {
	found                                          map[string]bool
	broken, byTests, played, bySim, engine, byBoth int
}

func (t *totals) add(m mutant, l look) {
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	if t.found == nil {
		t.found = map[string]bool{}
	}
	t.found[m.name] = t.found[m.name] || l.Found
	bySim, engine := l.By == "sim", strings.HasPrefix(m.name, "a")
	count(&t.broken, l.Broken != "")
	count(&t.byTests, !bySim && l.Found)
	count(&t.played, bySim)
	count(&t.bySim, bySim && l.Found)
	count(&t.engine, bySim && engine)
	count(&t.byBoth, bySim && engine && l.Found)
}

// print prints the totals, and reports whether each mutant is found.
func (t *totals) print(mutants []mutant) bool {
	found := 0
	for _, m := range mutants {
		if t.found[m.name] {
			found++
			continue
		}
		fmt.Printf("FOUND BY NOTHING: %s: %s\n", m.name, m.why)
	}
	fmt.Printf("proof: mutants=%d found=%d by_tests=%d played=%d by_the_simulator=%d of_engine=%d engine_by_the_simulator=%d\n",
		len(mutants), found, t.byTests, t.played, t.bySim, t.engine, t.byBoth)
	return found == len(mutants) && t.broken == 0
}

// A mutant is a patch.
type mutant struct {
	name  string
	why   string // what it does wrong
	tests string // that are to find it, as arguments of go test
	text  string
}

func read(patch string) (m mutant, err error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return m, err
	}
	m.name, m.text = strings.TrimSuffix(filepath.Base(patch), ".patch"), string(text)
	lines := strings.SplitN(m.text, "\n", 3)
	var named bool
	if m.why = lines[0]; len(lines) == 3 {
		m.tests, named = strings.CutPrefix(lines[1], "test: ")
	}
	if !named {
		return m, fmt.Errorf("%s: its second line does not name tests", m.name)
	}
	return m, nil
}

// simulated reports whether a mutant changes anything that the simulator executes: it has a
// store in memory.
func (m mutant) simulated() bool {
	for _, match := range touched.FindAllStringSubmatch(m.text, -1) {
		file := match[1]
		if !strings.HasPrefix(file, "store/sqlite/") && !strings.HasPrefix(file, "store/postgres/") && !strings.HasPrefix(file, "internal/sqlstore/") {
			return true
		}
	}
	return false
}

// A look is what the tests, or the simulator, have found in a mutant.
type look struct {
	By     string // tests or sim
	Found  bool
	As     string // the first test that failed, or what the simulator says
	Worlds string // that were played until then
	Took   time.Duration
	Lines  int // of the program that shows it
	World  string
	Alarm  string // what they say of the code without the mutant; empty: nothing
	Broken string // why nobody could look
}

func (l look) print(m mutant) {
	fmt.Printf("%s: %s\n", m.name, m.why)
	played := l.By == "sim"
	switch who := map[bool]string{false: "tests:    ", true: "simulator:"}[played]; {
	case l.Broken != "":
		fmt.Printf("    %s BROKEN: %s\n", who, l.Broken)
	case l.Alarm != "":
		fmt.Printf("    %s a FALSE ALARM, which the code without the mutant raises, too: %s\n", who, l.Alarm)
	case l.Found && played:
		fmt.Printf("    %s found in world %s, after %s, by a program of %d lines: %s\n", who, l.Worlds, l.Took.Round(time.Second), l.Lines, l.As)
	case l.Found:
		fmt.Printf("    %s found by %s (go test %s)\n", who, l.As, m.tests)
	case played:
		fmt.Printf("    %s NOT found in %s worlds, in %s\n", who, l.Worlds, l.Took.Round(time.Second))
	default:
		fmt.Printf("    %s NOT found by go test %s\n", who, m.tests)
	}
	if *show {
		fmt.Println(l.World)
	}
}

// lookAt has the tests or the simulator look at a mutant. One that cannot be looked at holds
// up none of the others.
func (m mutant) lookAt(who string, clean *binaries) look {
	l := look{By: who}
	began := time.Now()
	err := func() (err error) {
		dir, err := os.MkdirTemp("", "mutant")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		replace, err := m.apply(dir)
		if err != nil {
			return err
		}
		if who == "sim" {
			return l.play(dir, replace, clean)
		}
		return l.test(m.tests, dir, replace, clean)
	}()
	if err != nil {
		l.Found, l.Broken = false, err.Error()
	}
	if l.Took == 0 {
		l.Took = time.Since(began)
	}
	return l
}

// Neither a vet of the mutant nor the tables of a debugger are of use to anybody here, and both
// take time. A mutant is compiled with each package above it and their tests, which takes a third
// of the time without optimizing. The simulator is optimized: it plays for longer than that.
var (
	quick   = []string{"-vet=off", "-ldflags=-s -w"}
	quicker = append(quick[:2:2], "-gcflags=github.com/holdfast-dev/holdfast/...=-N -l")
)

// test has the named tests look at the mutant, and at the code without it if one fails.
func (l *look) test(tests, dir string, replace map[string]string, clean *binaries) error {
	pkg, run, some := strings.Cut(tests, " -run ")
	flags := []string{"-test.failfast", "-test.timeout", "5m"}
	if some {
		flags = append(flags, "-test.run", run)
	}
	binary := filepath.Join(dir, "tests.test")
	pruned := maps.Clone(replace)
	if !some || prune(pkg, run, filepath.Join(dir, "pruned"), pruned) != nil || compile(binary, dir, pruned, pkg, quicker) != nil {
		if err := compile(binary, dir, replace, pkg, quicker); err != nil {
			return err
		}
	}
	said, failed := start(binary, pkg, flags, overlaid(dir)...)
	if strings.Contains(said, "no tests to run") {
		return fmt.Errorf("go test %s runs no tests", tests)
	}
	if l.Found = failed; !failed {
		return nil
	}
	l.As = failure(said)
	binary, err := clean.of(pkg, quicker)
	if err != nil {
		return err
	}
	if said, failed := start(binary, pkg, flags); failed {
		l.Found, l.Alarm = false, failure(said)
	}
	return nil
}

// compile compiles the tests of a package with some of the files replaced.
func compile(binary, dir string, replace map[string]string, pkg string, flags []string) error {
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := overlayIn(dir)
	if err := os.WriteFile(overlay, data, 0o644); err != nil {
		return err
	}
	args := append([]string{"test", "-c", "-o", binary, "-overlay", overlay}, flags...)
	if out, err := exec.Command("go", append(args, pkg)...).CombinedOutput(); err != nil {
		return fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	return nil
}

func overlayIn(dir string) string { return filepath.Join(dir, "overlay.json") }

// overlaid is the environment in which the programs that a test builds have the mutant, too.
func overlaid(dir string) []string {
	return []string{"GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlayIn(dir))}
}

// start executes the tests of a package.
func start(binary, pkg string, flags []string, env ...string) (said string, failed bool) {
	cmd := exec.Command(binary, flags...)
	cmd.Dir, cmd.Env = pkg, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err != nil
}

// failure names the test that failed first: go test lists it below those that it is part of.
func failure(said string) string {
	name := ""
	for _, m := range failedTest.FindAllStringSubmatch(said, -1) {
		if name == "" || strings.HasPrefix(m[1], name+"/") {
			name = m[1]
		}
	}
	if name != "" {
		return name
	}
	return "the end of the process: " + firstLine(said)
}

const sim = "./test/sim"

// play plays worlds on a mutant until one fails.
func (l *look) play(dir string, replace map[string]string, clean *binaries) error {
	binary, last := filepath.Join(dir, "sim.test"), filepath.Join(dir, "last")
	if err := compile(binary, dir, replace, sim, quick); err != nil {
		return err
	}
	cmd := exec.Command(binary, "-test.run", "^TestWorlds$", "-test.v", "-test.timeout", "0",
		"-seeds", fmt.Sprint(*seeds), "-first", fmt.Sprint(*first), "-within", within.String())
	cmd.Env = append(os.Environ(), "HOLDFAST_SIM_LAST="+last)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	l.Found, l.Took = err != nil, time.Since(began)
	if l.Worlds = "?"; counted.Match(out) {
		l.Worlds = string(counted.FindSubmatch(out)[1])
	}
	if err == nil {
		return nil
	}
	if m := shown.FindSubmatch(out); m != nil {
		l.As, l.World = string(m[1]), string(m[2])
	} else { // the process ended
		world, _ := os.ReadFile(last)
		if _, n, ok := strings.Cut(string(world), "seed "); ok {
			l.Worlds, _, _ = strings.Cut(n, "\n")
		}
		l.As, l.World = "the process ends: "+firstLine(string(out)), string(world)
	}
	if m := coded.FindSubmatch(out); m != nil {
		if l.Alarm, err = playClean(clean, string(m[1])); err != nil {
			return err
		}
		l.Found = l.Alarm == ""
	}
	_, program, _ := strings.Cut(l.World, "Program:")
	program, _, _ = strings.Cut(program, "Faults:")
	program, _, _ = strings.Cut(program, "Acts:")
	l.Lines = strings.Count(strings.TrimSpace(program), "\n") + 1
	return nil
}

// playClean plays a world a few times on the code as it is, and returns the first failure;
// empty: there was none.
func playClean(clean *binaries, world string) (failure string, err error) {
	binary, err := clean.of(sim, quick)
	if err != nil {
		return "", err
	}
	out, err := exec.Command(binary, "-test.run", "^TestWorlds$", "-test.count", "5", "-world", world).CombinedOutput()
	if err == nil {
		return "", nil
	}
	if m := said.FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	return "", fmt.Errorf("the code as it is does not play the world %s: %w\n%s", world, err, out)
}

// binaries are the tests of the code as it is, each built when it is needed.
type binaries struct {
	dir   string
	built map[string]string // by package and flags
}

func (b *binaries) of(pkg string, flags []string) (string, error) {
	key := fmt.Sprint(pkg, flags)
	if binary := b.built[key]; binary != "" {
		return binary, nil
	}
	binary := filepath.Join(b.dir, fmt.Sprint(len(b.built), ".test"))
	if err := compile(binary, b.dir, nil, pkg, flags); err != nil {
		return "", err
	}
	b.built[key] = binary
	return binary, nil
}

var (
	coded      = regexp.MustCompile(`again, shrunk: -world (\S+)`)
	said       = regexp.MustCompile(`_test\.go:\d+: ([^\n]*)`)
	touched    = regexp.MustCompile(`(?m)^--- a/(.*)$`)
	failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	counted    = regexp.MustCompile(`(\d+) worlds, \d+ durable events`)
	shown      = regexp.MustCompile(`(?s)\n\s*// ([^\n]*)\n(\s*func TestWorld.*?\n\s*\}\)\n\s*\}\n)`)
)

func firstLine(said string) string {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	return "it says nothing"
}

// apply applies a patch to copies in dir of the files that it touches, and returns which take
// the places of which.
func (m mutant) apply(dir string) (replace map[string]string, err error) {
	replace = map[string]string{}
	for _, match := range touched.FindAllStringSubmatch(m.text, -1) {
		file := match[1]
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		from, _ := filepath.Abs(file)
		replace[from] = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(replace[from]), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(replace[from], source, 0o644); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(m.text)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("it does not apply: %w\n%s", err, out)
	}
	for from, to := range replace {
		before, _ := os.ReadFile(from)
		if after, _ := os.ReadFile(to); bytes.Equal(before, after) {
			return nil, fmt.Errorf("it changes nothing in %s", from)
		}
	}
	return replace, nil
}
