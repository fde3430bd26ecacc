// Command report makes the table of docs/proof.md of the lines that the tests of a `make soak`
// have said, from standard input, and writes it into the page, with the lines beside it. With
// -soak it prints the arguments of go test for those tests.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/test/tried"
)

const page, kept = "docs/proof.md", "test/tried/testdata/soak.txt"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-soak" {
		fmt.Println(tried.Soak())
		return
	}
	if err := report(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func report() error {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	for line := range strings.Lines(string(in)) {
		if _, text, ok := strings.Cut(line, "proof: "); ok {
			lines.WriteString("proof: " + text)
		}
	}
	table, err := tried.Table(bytes.NewReader(lines.Bytes()))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	out, err := tried.Insert(string(text), table)
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(out), 0o644); err != nil {
		return err
	}
	fmt.Print(table)
	return os.WriteFile(kept, lines.Bytes(), 0o644)
}
