package docs_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const startPage = "docs/getting-started.md"

var (
	startStep    = regexp.MustCompile(`(?m)^## ([1-9])\. `)
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
)

// The page of the first hour shows five programs, and for each what is typed and
// what is printed. The programs are those of examples/start, and they print exactly
// that.
func TestGettingStartedIsRun(t *testing.T) {
	page := read(t, startPage)
	heads := startStep.FindAllStringSubmatchIndex(page, -1)
	require.Len(t, heads, 5)
	for i, h := range heads {
		end := strings.Index(page, "\n## Where to go next")
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		section, step := page[h[0]:end], "step"+page[h[2]:h[3]]
		t.Run(step, func(t *testing.T) {
			code := read(t, "examples/start/"+step+"/main.go")
			blocks := goBlock.FindAllStringSubmatch(section, -1)
			require.Len(t, blocks, 1)
			for part := range strings.SplitSeq(blocks[0][1], "\n}\n\n") {
				require.Contains(t, code, strings.TrimSuffix(part, "\n"), "%s shows code that is not in examples/start/%s", startPage, step)
			}
			console := consoleBlock.FindAllStringSubmatch(section, -1)
			require.Len(t, console, 1)
			play(t, "./examples/start/"+step, console[0][1])
		})
	}
}

// play types the commands of a console block, each "go run ." of the program, and
// compares what they print to standard output.
func play(t *testing.T, program, console string) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "onboard")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, program)
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	out1, in := io.Pipe()
	defer out1.Close()
	lines := bufio.NewScanner(out1)
	var logs strings.Builder
	var background sync.WaitGroup
	for _, c := range strings.Split("\n"+console, "\n$ ")[1:] {
		typed, expected, _ := strings.Cut(c, "\n")
		env, args, ok := strings.Cut(typed, "go run .")
		require.True(t, ok, typed)
		args, later := strings.CutSuffix(args, "&")
		cmd := exec.CommandContext(t.Context(), bin, strings.Fields(args)...)
		cmd.Dir, cmd.Env = dir, append(cmd.Environ(), strings.Fields(env)...)
		cmd.Stdout = in
		if !later {
			cmd.Stderr = &logs
		}
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		background.Go(func() {
			err := cmd.Wait()
			if err != nil { // as "go run" reports it
				fmt.Fprintln(in, err)
			}
			ended <- err
		})
		for line := range strings.Lines(expected) {
			require.True(t, lines.Scan(), "%s: ended before %q: %s", typed, line, &logs)
			require.Equal(t, strings.TrimSuffix(line, "\n"), lines.Text(), "%s: %s", typed, &logs)
		}
		if !later {
			<-ended
		}
	}
	go func() {
		background.Wait()
		in.Close()
	}()
	require.False(t, lines.Scan(), "more than %s shows: %q", startPage, lines.Text())
}
