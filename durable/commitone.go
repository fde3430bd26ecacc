package durable

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// commitOne commits a change that belongs to no execution. While its outcome is
// unknown it is sent again as it is.
func (e *Engine) commitOne(ctx context.Context, change store.Change) error {
	for tries := 0; ; tries++ {
		err := e.store.Commit(ctx, []store.Change{change})[0]
		if !errors.Is(err, store.ErrUnknown) || ctx.Err() != nil || tries == 20 {
			return err
		}
		sleep(ctx, 50*time.Millisecond)
	}
}
