// Command leftout says at the end of `make test` whether the tests of the pages were
// left out for want of a browser: go test shows no output of a package that has not
// failed.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/test/browsertest"
)

func main() {
	_, line, err := browsertest.Chromium()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if line != "" {
		fmt.Println(line)
	}
}
