package postgres

import (
	"context"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// Delete implements store.Store.
//
// An append in progress does not wait for a lock, so it may leave behind an
// event whose run is gone. Nothing ever reads that event, because run numbers
// are never reused.
func (s *Store) Delete(ctx context.Context, d store.Deletion) (int, error) {
	if err := d.Check(); err != nil {
		return 0, err
	}
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.Done()
	if len(d.RunIDs) == 0 {
		return 0, nil
	}
	var deleted, asked []int64 // asked: by the last attempt whose answer was lost
	err := s.again(ctx, func(w *wire) error {
		w.ctx = ctx
		var err error
		deleted, err = s.deleteRuns(w, &d, asked)
		if unanswered(err) {
			asked = deleted
		}
		return err
	})
	if err != nil {
		return 0, described("delete runs", err)
	}
	for _, id := range d.RunIDs {
		s.numbers.forget(id)
	}
	if len(deleted) > 0 {
		var news notice.News
		for _, id := range d.RunIDs {
			news.Deleted(id)
		}
		s.notices.tell(news)
	}
	return len(deleted), nil
}

func runsLeft(w *wire, nos []int64) (n int64, err error) {
	err = w.query("runs_left", func(v []driverValue) error {
		n = v[0].(int64)
		return nil
	}, ints(nos...))
	return n, err
}

// doomed is a run that is to be deleted, locked.
type doomed struct {
	no    int64
	id    string
	st    store.Status
	owner string
	epoch int64
}

// deleteRuns returns the runs that it has deleted, or that an earlier attempt has, which asked for those of asked.
func (s *Store) deleteRuns(w *wire, d *store.Deletion, asked []int64) ([]int64, error) {
	if err := w.begin(); err != nil {
		return nil, err
	}
	var runs []doomed
	err := w.query("lock_for_delete", func(v []driverValue) error {
		runs = append(runs, doomed{v[0].(int64), v[1].(string), store.Status(v[2].(string)), v[3].(string), v[4].(int64)})
		return nil
	}, names(d.RunIDs...))
	if err != nil {
		return nil, err
	}
	if len(asked) > 0 {
		// That attempt had them locked until it was over, so now it is known what became of it.
		switch left, err := runsLeft(w, asked); {
		case err != nil:
			return asked, err
		case left == 0:
			return asked, w.replicated()
		}
	}
	nos, err := mayDelete(w, d, runs)
	switch {
	case err != nil:
		return nil, err
	case len(nos) == 0:
		return nil, w.replicated()
	}
	for _, name := range []string{"delete_events", "delete_inbox", "delete_branches", "delete_attributes", "release_holds", "delete_runs"} {
		if _, err := w.exec(name, ints(nos...)); err != nil {
			return nil, err
		}
	}
	return nos, w.commit()
}

// mayDelete returns the numbers of runs, or why one of them must stay.
func mayDelete(w *wire, d *store.Deletion, runs []doomed) (nos []int64, err error) {
	var all *census
	for _, r := range runs {
		if !r.st.Terminal() && !d.Force {
			return nil, &store.StatusError{RunID: r.id, Status: r.st}
		}
		for i, id := range d.RunIDs {
			if id != r.id {
				continue
			}
			if err := d.Expects(i, r.epoch); err != nil {
				return nil, err
			}
		}
		if r.owner != "" {
			if all == nil {
				if all, err = w.store.census(w); err != nil {
					return nil, err
				}
			}
			if all.isLive(r.owner) {
				return nil, &store.OwnedError{RunID: r.id, Owner: r.owner}
			}
		}
		nos = append(nos, r.no)
	}
	return nos, nil
}
