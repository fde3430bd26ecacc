// Command leftout says at the end of `make test` which tests were left out for want of
// a browser or a server: go test shows no output of a package that has not failed.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/test/browsertest"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func main() {
	browser := func() (string, error) {
		_, line, err := browsertest.Chromium()
		return line, err
	}
	failed := false
	for _, leftOut := range []func() (string, error){browser, pgtest.LeftOut} {
		line, err := leftOut()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
		if line != "" {
			fmt.Println(line)
		}
	}
	if failed {
		os.Exit(1)
	}
}
