package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/draft"
)

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, batch []store.Change) []error {
	if len(batch) == 0 {
		return nil
	}
	if err := s.enter(ctx); err != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	d := s.data
	defer d.mu.Unlock()
	errs := s.take(len(batch))
	if len(batch) > 1 {
		clear(d.batch)
	}
	wrote := false
	for i := range batch {
		c := &batch[i]
		if len(batch) > 1 && c.RunID != "" {
			if _, twice := d.batch[c.RunID]; twice {
				errs[i] = fmt.Errorf("store: run %q: a batch holds one change per run: %w", c.RunID, store.ErrInvalid)
				continue
			}
			d.batch[c.RunID] = struct{}{}
		}
		s.counts.Statements++
		errs[i] = d.commit(c)
		wrote = wrote || errs[i] == nil
	}
	if wrote {
		s.counts.Commits++
	}
	return errs
}

// take returns memory for n answers. It belongs to the caller of Commit.
func (s *Store) take(n int) []error {
	const chunk = 64
	if n > chunk/4 {
		return make([]error, n)
	}
	if len(s.answers) < n {
		s.answers = make([]error, chunk)
	}
	errs := s.answers[:n:n]
	s.answers = s.answers[n:]
	return errs
}

func (d *data) commit(c *store.Change) error {
	if err := c.Validate(d.limits); err != nil {
		return err
	}
	if c.Plain() {
		return d.checkpoint(c)
	}
	if r := d.runs[c.RunID]; r != nil && c.Did(r.log.At(c.Mark())) {
		clear(c.Sent)
		return nil // S6
	}
	now := d.now()
	f := draft.New(world{d, now}, now)
	if err := f.Change(c); err != nil {
		return err
	}
	d.apply(f)
	return nil
}

// checkpoint carries out a plain Change. It checks only the log.
func (d *data) checkpoint(c *store.Change) error {
	r := d.runs[c.RunID]
	if r == nil {
		return notFound(c.RunID)
	}
	if err := c.Check(&r.row, r.log.End(), false); err != nil {
		if c.Did(r.log.At(c.Mark())) {
			return nil // S6
		}
		return err
	}
	for i := range c.Events {
		r.log.Append(&c.Events[i], c.Expect.Epoch)
	}
	return nil
}

func notFound(id string) error { return &store.NotFoundError{RunID: id} }
