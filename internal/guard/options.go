package guard

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// Options applies the options of a call to o. None may be nil, so that an option which somebody forgot to set is not
// passed over in silence.
func Options[F ~func(*O), O any](o *O, list []F) error {
	for i, f := range list {
		if f == nil {
			return fmt.Errorf("option %d is nil: %w", i+1, store.ErrInvalid)
		}
		f(o)
	}
	return nil
}
