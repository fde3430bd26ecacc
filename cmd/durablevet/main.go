// Command durablevet checks workflow code: what a replay would do otherwise than
// the first execution, and what a crash would lose. It is a tool of go vet:
//
//	go vet -vettool=$(which durablevet) ./...
//	durablevet ./...
//
// Both do the same. docs/durablevet.md describes the rules.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/holdfast-dev/holdfast/cmd/durablevet/vet"
)

func main() {
	if asked(os.Args[1:]) {
		unitchecker.Main(vet.Analyzer)
	}
	os.Exit(alone(os.Args[1:]))
}

// asked reports whether go vet is asking: for the version, the flags, or the check of
// the package that a file describes.
func asked(args []string) bool {
	for _, a := range args {
		if a == "-V=full" || a == "-flags" || strings.HasSuffix(a, ".cfg") {
			return true
		}
	}
	return len(args) > 0 && args[0] == "help"
}

// alone has go vet ask: it loads packages, keeps what it knows of them in the build
// cache, and runs what is independent at the same time.
func alone(args []string) (status int) {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "durablevet:", err)
		return 2
	}
	cmd := exec.Command("go", append([]string{"vet", "-vettool=" + self}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return ended.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "durablevet:", err)
		return 2
	}
	return 0
}
