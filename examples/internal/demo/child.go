package demo

import (
	"context"
	"io"
	"os"
	"time"
)

// roleVariable marks a process of an example as one of several: it says which part the
// process plays, and that it ends with its parent.
const roleVariable = "HOLDFAST_EXAMPLE_ROLE"

// Role returns the part this process plays; empty in the process that the user
// started.
func Role() string { return os.Getenv(roleVariable) }

// UntilParentEnds returns a context that ends when the parent stops this process or is
// gone, however it ended: its end of the pipe closes with it. A process that does not
// end within a few seconds after that is ended. It does nothing in a process that the
// user started.
func UntilParentEnds(ctx context.Context) context.Context {
	if Role() == "" {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		time.Sleep(3 * time.Second)
		os.Exit(1)
	}()
	return ctx
}
