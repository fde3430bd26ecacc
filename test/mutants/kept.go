package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// kept is the looks of this run and of those before it that were broken off. A look counts for
// one state of the code, and for as many worlds as it was to play.
type kept struct {
	code  string
	looks map[string]look
	file  *os.File // nil: they are not kept
}

// line is a line of the file.
type line struct {
	Of string // what was looked at, by whom
	look
}

func openKept(path string) (*kept, error) {
	k := &kept{looks: map[string]look{}}
	if path == "" {
		return k, nil
	}
	var err error
	if k.code, err = codeOf(); err != nil {
		return nil, err
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for text := range strings.Lines(string(before)) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil { // one that was broken off is looked at again
			k.looks[l.Of] = l.look
		}
	}
	k.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return k, err
}

// codeOf returns a digest of the code and its tests as they are in the work tree.
func codeOf() (string, error) {
	sum := sha256.New()
	what := []string{"--", "*.go", "*.sql", "go.mod", "go.sum", ":!test/mutants"}
	for _, args := range [][]string{{"ls-files", "-s"}, {"diff"}} {
		cmd := exec.Command("git", append(args, what...)...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = sum, &said
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, said.String())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// of names a look: a change of anything in it makes another one necessary.
func (k *kept) of(m mutant, who string) string {
	sum := sha256.Sum256([]byte(m.text))
	name := fmt.Sprintf("%s %x %s by %s", m.name, sum[:8], k.code[:min(16, len(k.code))], who)
	if who == "sim" {
		name += fmt.Sprintf(" in %d worlds from %d within %s", *seeds, *first, *within)
	}
	return name
}

func (k *kept) look(m mutant, who string) (l look, known bool) {
	l, known = k.looks[k.of(m, who)]
	return l, known && l.Broken == ""
}

func (k *kept) add(m mutant, l look) error {
	if k.file == nil {
		return nil
	}
	text, err := json.Marshal(line{k.of(m, l.By), l})
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(text, '\n'))
	return err
}

func (k *kept) close() error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}
