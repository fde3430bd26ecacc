package main

import (
	"fmt"
	"strings"
)

// The lines of the book. killed stands alone, the others are followed by a file.
const (
	begun    = "begun"    // the program: it is about to read a file
	recorded = "recorded" // the parent, after a kill: the outcome is in the store
	killed   = "killed"   // the parent, after all that was recorded until then
)

// Tally sums up a book.
type Tally struct {
	Kills  int
	Files  int // whose outcome is recorded
	Reads  int // that began
	Again  int // of those, repeated because a kill hit them in flight
	Flight int // the most that one kill hit in flight
}

// tally counts, and returns an error if a file was read that should not have been:
// after its outcome was recorded, twice within one life, or while more than the Map
// allows were in progress.
func tally(book string) (Tally, error) {
	var t Tally
	done := map[string]bool{}
	ran := map[string]bool{}    // at any time
	flight := map[string]bool{} // begun in this life and not recorded
	for line := range strings.Lines(book) {
		what, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch what {
		case begun:
			switch {
			case done[file]:
				return t, fmt.Errorf("%s was read again though its outcome was recorded", file)
			case flight[file]:
				return t, fmt.Errorf("%s was read twice without a kill in between", file)
			case ran[file]:
				t.Again++
			}
			ran[file], flight[file] = true, true
			t.Reads++
		case recorded:
			if !ran[file] {
				return t, fmt.Errorf("%s was recorded though it was never read", file)
			}
			if !done[file] {
				done[file] = true
				t.Files++
			}
			delete(flight, file)
		case killed:
			if len(flight) > atOnce {
				return t, fmt.Errorf("kill %d met %d files in flight, and the Map reads %d at a time", t.Kills+1, len(flight), atOnce)
			}
			t.Kills++
			t.Flight = max(t.Flight, len(flight))
			clear(flight)
		default:
			return t, fmt.Errorf("the book has a line that nobody writes: %q", line)
		}
	}
	if len(flight) > 0 {
		return t, fmt.Errorf("%d files were read and never recorded", len(flight))
	}
	return t, nil
}
