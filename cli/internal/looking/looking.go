// Package looking lets an engine be opened on a store that takes no writes, to look at it.
package looking

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Store is a store that refuses all writes itself. An engine begins with a heartbeat, which is one: here it
// only says the time. So the engine is in no list of executors, and what it tries to change is refused.
type Store struct {
	store.Store
	can store.Capabilities
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Capable = (*Store)(nil)
)

// At returns st to be looked at.
func At(st store.Store) *Store { return &Store{Store: st, can: store.CapabilitiesOf(st)} }

// Refuses returns an error if st is only looked at, for an act that may have nothing to write and would
// then seem to be done.
func Refuses(st store.Store) error {
	if _, ok := st.(*Store); ok {
		return fmt.Errorf("the store %w", store.ErrReadOnly)
	}
	return nil
}

// Kind names the package of a store, and says if the store is only looked at.
func Kind(st store.Store) string {
	note := ""
	if s, ok := st.(*Store); ok {
		st, note = s.Store, ", takes no writes"
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", st), "*"), ".")
	return kind + note
}

// Capabilities implements store.Capable.
func (s *Store) Capabilities() store.Capabilities { return s.can }

// Beat says the time, by the store's clock if it has schedules to be asked for.
func (s *Store) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	if s.can.Schedules == nil || e.Leaving {
		return store.Pulse{Now: store.TimeOf(time.Now())}, nil
	}
	due, err := s.can.Schedules.DueSchedules(ctx, 1)
	return store.Pulse{Now: due.Now}, err
}
