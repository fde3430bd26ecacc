package dashboard

import (
	"context"

	"github.com/holdfast-dev/holdfast/client"
)

// Archive has runs that were kept outside of the store. Its methods may be called
// concurrently.
type Archive interface {
	// Source names the kind of archive, "git" say.
	Source() string
	// Runs lists what is kept, the runs that ended last first. One run that
	// cannot be read does not keep the others.
	Runs(ctx context.Context) ([]client.ArchivedRun, error)
}
