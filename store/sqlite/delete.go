//go:build cgo

package sqlite

import (
	"context"

	"github.com/holdfast-dev/holdfast/store"
)

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, d store.Deletion) (int, error) {
	if err := d.Check(); err != nil {
		return 0, err
	}
	if len(d.RunIDs) == 0 {
		if err := s.enter(ctx); err != nil {
			return 0, err
		}
		s.leave()
		return 0, nil
	}
	n := 0
	err := s.write(ctx, "delete runs", func(t *tx) error {
		toDelete, err := t.toDelete(&d)
		if err != nil {
			return err
		}
		for id, no := range toDelete {
			if err := t.remove(no); err != nil {
				return err
			}
			delete(t.fresh, id)
			s.numbers.forget(id)
			t.news.Deleted(id)
		}
		n = len(toDelete)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// toDelete returns the runs to delete, or the reason why one of them must stay.
func (t *tx) toDelete(d *store.Deletion) (map[string]int64, error) {
	toDelete := make(map[string]int64)
	for i, id := range d.RunIDs {
		h, err := t.head(id)
		if err != nil {
			return nil, err
		}
		if h.no == 0 {
			continue
		}
		if !h.row.Status.Terminal() && !d.Force {
			return nil, &store.StatusError{RunID: id, Status: h.row.Status}
		}
		if err := d.Expects(i, h.row.Epoch); err != nil {
			return nil, err
		}
		if h.row.Owner != "" {
			live, err := t.live(h.row.Owner)
			if err != nil {
				return nil, err
			}
			if live {
				return nil, &store.OwnedError{RunID: id, Owner: h.row.Owner}
			}
		}
		toDelete[id] = h.no
	}
	return toDelete, nil
}

// remove deletes all that is kept under a run number.
func (t *tx) remove(no int64) error {
	q := t.s.q
	after, before := span(no)
	for _, ranged := range []*query{q.eventsDelete, q.messagesDelete} {
		if _, _, err := t.exec(ranged, after, before); err != nil {
			return err
		}
	}
	for _, keyed := range []*query{q.branchesDelete, q.attributesDelete, q.holdsDelete, q.runDelete} {
		if _, _, err := t.exec(keyed, no); err != nil {
			return err
		}
	}
	return nil
}
