// Package lengths knows how many steps the completed runs of a workflow have, so that those who
// ask for the progress of a run again and again do not ask the store each time.
package lengths

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

const (
	// fresh is how long an answer is good for runs that other processes complete.
	fresh = time.Second
	// most is how many answers are kept: more than a program has workflows and versions.
	most = 1024
)

// Book has the number of steps of the last completed run of each workflow and version that was
// asked for. It is safe for concurrent use.
type Book struct {
	store store.Store

	mu    sync.Mutex
	known map[kind]answer
	ended int // how many runs Completed was told of: an answer that was asked for before may be old
}

type kind struct{ workflow, version string }

type answer struct {
	steps int
	until time.Time
}

// New returns an empty Book for the runs of s.
func New(s store.Store) *Book { return &Book{store: s, known: map[kind]answer{}} }

// Of returns how many steps the newest completed run of row's workflow and version has made; 0 if
// there is none. A run that another process has completed counts within a second, one for which
// Completed was called at once. The errors are those of the store.
func (b *Book) Of(ctx context.Context, row *store.Run) (int, error) {
	k := kind{row.Workflow, row.Version}
	b.mu.Lock()
	a, ok := b.known[k]
	ended := b.ended
	b.mu.Unlock()
	asked := time.Now()
	if ok && asked.Before(a.until) {
		return a.steps, nil
	}
	f := store.Filter{Workflows: []string{k.workflow}, Versions: []string{k.version}, Statuses: []store.Status{store.Completed}, WithLast: true, Limit: 1}
	page, err := b.store.List(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("looking for a completed run of workflow %s: %w", k.workflow, err)
	}
	steps := 0
	if len(page.Runs) > 0 && page.Runs[0].Last != nil {
		steps = int(page.Runs[0].Last.Steps)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != ended {
		return steps, nil
	}
	if len(b.known) >= most {
		clear(b.known)
	}
	b.known[k] = answer{steps: steps, until: asked.Add(fresh)}
	return steps, nil
}

// Completed says that a run of row's workflow and version has just been completed.
func (b *Book) Completed(row *store.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended++
	delete(b.known, kind{row.Workflow, row.Version})
}
