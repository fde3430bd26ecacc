package cli

import (
	"errors"
	"fmt"
	"github.com/holdfast-dev/holdfast/cli/internal/show"
)

// The exit codes. Scripts rely on them, so they never change.
const (
	ExitDone        = show.ExitDone        // 0: done
	ExitFailed      = show.ExitFailed      // 1: the run failed, or something unexpected happened
	ExitUsage       = show.ExitUsage       // 2: wrong usage, --yes is missing, or it was declined
	ExitNotFound    = show.ExitNotFound    // 3: no such run, nothing to resume
	ExitRefused     = show.ExitRefused     // 4: refused; nothing changed
	ExitUnreachable = show.ExitUnreachable // 5: the store or the server cannot be reached
	ExitFound       = 6                    // validate, doctor or stuck found something
	ExitInterrupted = show.ExitInterrupted // 130: by Ctrl-C
	ExitTerminated  = 143                  // by SIGTERM
)

// ExitError is returned by a command that ends with a code other than 0. It has already
// been printed.
type ExitError struct {
	Code int
	Err  error // what was printed; nil: nothing but the code
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the exit code for the error that Execute of a command returned: 0
// for nil, 1 for an error that is not from this package.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &exit):
		return exit.Code
	}
	return ExitFailed
}
