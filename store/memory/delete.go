package memory

import (
	"context"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, which store.Deletion) (int, error) {
	if err := which.Check(); err != nil {
		return 0, err
	}
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	d := s.data
	defer d.mu.Unlock()
	s.counts.Statements++
	now := d.now()
	runs := make(map[*run]struct{})
	for i, id := range which.RunIDs {
		r := d.runs[id]
		if r == nil {
			continue
		}
		if !r.row.Status.Terminal() && !which.Force {
			return 0, &store.StatusError{RunID: id, Status: r.row.Status}
		}
		if err := which.Expects(i, r.row.Epoch); err != nil {
			return 0, err
		}
		if !d.free(r, now) {
			return 0, &store.OwnedError{RunID: id, Owner: r.row.Owner}
		}
		runs[r] = struct{}{}
	}
	var news notice.News
	for r := range runs {
		d.remove(r)
		news.Deleted(r.row.ID)
	}
	if len(runs) > 0 {
		s.counts.Commits++
		d.notify(news)
	}
	return len(runs), nil
}

func (d *data) remove(r *run) {
	delete(d.runs, r.row.ID)
	delete(d.unfinished, r)
	key := dedupKey{r.row.Queue, r.row.Dedup}
	if d.dedup[key] == r.row.ID {
		delete(d.dedup, key)
	}
	for name, holder := range d.holds {
		if holder == r.row.ID {
			delete(d.holds, name)
		}
	}
}
