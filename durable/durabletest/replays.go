package durabletest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Replays executes the code of these workflows on recorded histories, and fails
// the test for each history that the code does not fit: where the code makes a call other
// than the recorded one, cannot read a recorded value, goes on where the recorded run ended,
// or has a different outcome. It runs no body of a step, and writes only to memory.
//
// files is a pattern as filepath.Glob takes it, of files that operate.Operator.Export or
// `durable checkpoints export` has written: of runs that have ended, or that were in flight,
// for which the code is followed to the end of the history. The test fails if no file
// matches. Encrypted histories need their keys, in Engine(durable.Options{ Encrypt: …}).
//
// Recorded values are read strictly: a value with a field that the code's type lacks fails
// the test, because a renamed field would read as zero. FieldsRemoved allows that.
//
// A cancelled run is followed to where it was cancelled; for a run that continued with a new
// input (durable.Continue), the last generation is replayed.
func Replays(t testing.TB, files string, workflows []durable.Definition, o ...Option) {
	t.Helper()
	for _, err := range compare(t, files, workflows, o) {
		t.Error(err)
	}
}

// compare is Replays, but returns the failures.
func compare(t testing.TB, files string, workflows []durable.Definition, o []Option) (failures []error) {
	names, err := filepath.Glob(files)
	switch {
	case err != nil:
		return []error{fmt.Errorf("durabletest: %q: %w", files, err)}
	case len(names) == 0:
		return []error{fmt.Errorf("durabletest: no file matches %q. Export a run with operate.On(engine).Export or `durable checkpoints export`", files)}
	}
	c, err := configOf(o)
	if err != nil {
		return []error{err}
	}
	if c.engine.Codec == nil && !c.removed {
		c.engine.Codec = durable.StrictJSON()
	}
	left := c.inBubble(t, func(t testing.TB) {
		for _, name := range names {
			difference, err := c.playFile(t.Context(), name, workflows)
			switch {
			case err != nil:
				failures = append(failures, fmt.Errorf("durabletest: %s cannot be replayed: %w", name, err))
			case strings.Contains(difference, "unknown field"):
				failures = append(failures, fmt.Errorf("durabletest: the code does not fit the history in %s\n%s\nA field that was renamed would read zero, in silence: keep its name, or register the change of the type (durable.Type). durabletest.FieldsRemoved() lets a field pass that is gone", name, difference))
			case difference != "":
				failures = append(failures, fmt.Errorf("durabletest: the code does not fit the history in %s\n%s\nHow code is changed while such runs are in flight: %s\nIf the code was not changed:\n%s", name, difference, host.Page("guides/changing-code.md"), causes))
			}
		}
	})
	if left != nil && len(failures) == 0 {
		failures = append(failures, left)
	}
	return failures
}

// playFile is play for a run in a file.
func (c *config) playFile(ctx context.Context, name string, defs []durable.Definition) (difference string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data := memory.Open()
	defer func() { _ = data.Close() }()
	eng, err := durable.Open(ctx, data.Handle(), c.options(nil))
	if err != nil {
		return "", err
	}
	defer func() { _ = eng.Close() }()
	run, err := operate.On(eng).Import(ctx, f, operate.ImportOptions{})
	if err != nil {
		return "", err
	}
	return c.play(ctx, data, run.RunID, defs)
}
