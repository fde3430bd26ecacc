package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Unavailable returns an archive in place of one that could not be opened, so that
// the program still starts. Hydrate then logs one warning with the reason and has no
// history, and each run to be archived is logged as not archived. Nothing is lost:
// the store remembers what is not archived, and the next process with an archive
// writes it. All its methods return an error that wraps err and ErrUnavailable.
//
//	var keep archive.Archive
//	if keep, err = archive.OpenGit(ctx, dir, archive.GitOptions{}); err != nil {
//		keep = archive.Unavailable(err)
//	}
func Unavailable(err error) Archive {
	switch {
	case err == nil:
		err = ErrUnavailable
	case !errors.Is(err, ErrUnavailable):
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return unavailable{err}
}

type unavailable struct{ err error }

func (u unavailable) Store(context.Context, string, []byte) error { return u.err }

func (u unavailable) List(context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) { yield(Run{}, u.err) }
}

func (u unavailable) Trace(context.Context, string) ([]Event, error) { return nil, u.err }

func (u unavailable) Get(context.Context, string) (*Entry, error) { return nil, u.err }
