package main

import (
	"fmt"
	"os"
	"strings"
)

// Journal is a file outside the store, in which the program notes what really
// happened: which step bodies began, which steps returned, when it was killed.
// A line is one write to the operating system, so it survives SIGKILL.
type Journal struct{ f *os.File }

// The lines of the journal. killed is followed by the number of the kill, the
// others by a package.
const (
	begun    = "begun"    // a step's body runs
	recorded = "recorded" // Step returned: the outcome is in the store
	killed   = "killed"   // written by the parent, once the child is gone
)

func openJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{f}, nil
}

// Write adds a line.
func (j *Journal) Write(what, subject string) error {
	_, err := j.f.WriteString(what + " " + subject + "\n")
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }

// Tally sums up a journal.
type Tally struct {
	Kills    int
	Packages int // whose outcome was recorded
	Bodies   int // that began
	Again    int // of those, repeated because a kill hit them in flight
}

// tally counts, and returns an error if a body ran that should not have: after its
// outcome was recorded, or again without a kill in between.
func tally(journal string) (Tally, error) {
	var t Tally
	done := map[string]bool{}
	begunIn := map[string]int{} // package to the number of kills before its last body
	for line := range strings.Lines(journal) {
		line = strings.TrimSuffix(line, "\n")
		what, subject, _ := strings.Cut(line, " ")
		switch what {
		case killed:
			t.Kills++
		case recorded:
			if _, ran := begunIn[subject]; !ran {
				return t, fmt.Errorf("package %s was recorded though its body never ran", subject)
			}
			if !done[subject] {
				done[subject] = true
				t.Packages++
			}
		case begun:
			if done[subject] {
				return t, fmt.Errorf("package %s ran again though its outcome was recorded", subject)
			}
			if before, ran := begunIn[subject]; ran {
				if before == t.Kills {
					return t, fmt.Errorf("package %s ran twice without a kill in between", subject)
				}
				t.Again++
			}
			begunIn[subject] = t.Kills
			t.Bodies++
		default:
			return t, fmt.Errorf("the journal has a line that nobody writes: %q", line)
		}
	}
	return t, nil
}
