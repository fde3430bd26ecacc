package queues

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Declare stores these definitions. A stored queue with other limits gets these, and a line of the
// log names both: the engine that is recovered last wins. That a queue is paused is not part of its
// definition, and stays. Declare writes nothing for a queue whose limits are stored already.
func Declare(ctx context.Context, st store.Queues, list []store.Queue, log *slog.Logger, executor string) error {
	for _, q := range list {
		if err := declare(ctx, st, q, log, executor); err != nil {
			return fmt.Errorf("durable: declaring queue %q: %w", q.Name, err)
		}
	}
	return nil
}

// maxTries limits how often a declaration is tried that others change at the same moment.
const maxTries = 100

func declare(ctx context.Context, st store.Queues, q store.Queue, log *slog.Logger, executor string) error {
	q.Per = q.Per.Truncate(time.Microsecond) // as it is stored
	for tries := 1; ; tries++ {
		stored, err := st.Queue(ctx, q.Name)
		if err != nil {
			return err
		}
		if stored.Revision > 0 && SameLimits(&stored, &q) {
			return nil
		}
		next := q
		next.Revision, next.Paused, next.Reason = stored.Revision, stored.Paused, stored.Reason
		err = st.PutQueue(ctx, next)
		switch {
		case errors.Is(err, store.ErrRevision) && tries < maxTries:
			continue // somebody else was faster: look at what they have stored
		case err != nil:
			return err
		}
		if stored.Revision > 0 {
			log.Warn("durable: a queue was declared with other limits before: those of the engine that was recovered last hold, for all processes",
				"executor", executor, "queue", q.Name, "before", Limits(&stored), "now", Limits(&q))
		}
		return nil
	}
}

// SameLimits reports whether two definitions let in the same runs.
func SameLimits(a, b *store.Queue) bool {
	return a.Max == b.Max && a.MaxPerPartition == b.MaxPerPartition && a.Rate == b.Rate && a.Per == b.Per
}

// Limited reports whether a definition has a limit at all.
func Limited(q *store.Queue) bool { return !SameLimits(q, &store.Queue{}) }

// Limits returns the limits of a definition in words, such as "at most 5 at once, 2 for each
// partition, 10 in 1m0s".
func Limits(q *store.Queue) string {
	var parts []string
	if q.Max > 0 {
		parts = append(parts, fmt.Sprintf("at most %d at once", q.Max))
	}
	if q.MaxPerPartition > 0 {
		parts = append(parts, fmt.Sprintf("%d for each partition", q.MaxPerPartition))
	}
	if q.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%d in %s", q.Rate, q.Per))
	}
	if len(parts) == 0 {
		return "no limits"
	}
	return strings.Join(parts, ", ")
}
