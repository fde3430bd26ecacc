package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/client"
)

// Archive lists runs that are kept outside the store. Its methods may be called
// concurrently.
type Archive interface {
	// Source names the kind of archive, such as "git".
	Source() string
	// Runs lists the archived runs, most recently ended first. It skips a run that
	// cannot be read.
	Runs(ctx context.Context) ([]client.ArchivedRun, error)
}

// ArchiveFrom makes an Archive from a function that lists runs, such as List of package
// archive:
//
//	dashboard.Options{Archive: dashboard.ArchiveFrom("git", history.List)}
//
// The JSON names of a run's fields decide where they are shown: run_id, workflow_id,
// status, started_at, ended_at, duration_ms, error, input, output. If there are runs, an
// error is about one that cannot be read, which is left out; if there are none, the
// archive cannot be listed.
func ArchiveFrom[R any](source string, runs func(context.Context) iter.Seq2[R, error]) Archive {
	return &archiveOf[R]{source, runs}
}

type archiveOf[R any] struct {
	source string
	list   func(context.Context) iter.Seq2[R, error]
}

func (a *archiveOf[R]) Source() string { return a.source }

func (a *archiveOf[R]) Runs(ctx context.Context) ([]client.ArchivedRun, error) {
	all := []client.ArchivedRun{}
	var unread error
	for kept, err := range a.list(ctx) {
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		b, err := json.Marshal(kept)
		if err != nil {
			return nil, fmt.Errorf("dashboard: an archived run cannot be shown: %w", err)
		}
		var run client.ArchivedRun
		if err := json.Unmarshal(b, &run); err != nil {
			return nil, fmt.Errorf("dashboard: an archived run cannot be shown: %w", err)
		}
		all = append(all, run)
	}
	if len(all) == 0 && unread != nil {
		return nil, unread
	}
	slices.SortStableFunc(all, func(a, b client.ArchivedRun) int { return b.EndedAt.Compare(a.EndedAt) })
	return all, nil
}
