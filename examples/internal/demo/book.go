package demo

import (
	"os"
	"strings"
)

// Book is a file outside the store in which a program logs what it really did: one line
// per act, each a single write to the operating system, so that it survives SIGKILL and
// no line is cut in two.
type Book struct{ f *os.File }

// OpenBook opens the book at path, or creates it.
func OpenBook(path string) (*Book, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Book{f}, nil
}

// Write adds a line. It may be called from any goroutine.
func (b *Book) Write(words ...string) error {
	_, err := b.f.WriteString(strings.Join(words, " ") + "\n")
	return err
}

// Close closes the file.
func (b *Book) Close() error { return b.f.Close() }
