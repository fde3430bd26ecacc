// Package tried collects how much of each promise was tried: tests say it in lines, and a table
// of docs/proof.md is made of the lines of a whole `make soak`.
package tried

import (
	"fmt"
	"os"
	"testing"
)

// EnvFile names the file to which the lines of all tests are appended; unset: they are only
// logged.
const EnvFile = "HOLDFAST_PROOF"

// Say logs "proof: name key=value ...", the totals of a test that has just passed.
func Say(t testing.TB, name, format string, args ...any) {
	t.Helper()
	line := "proof: " + name + " " + fmt.Sprintf(format, args...)
	t.Log(line)
	path := os.Getenv(EnvFile)
	if path == "" || t.Failed() {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}
