package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// CheckSize returns why a store that takes payloads of up to most bytes may not take the schedule:
// one that can be stored now must be so when it is full too, or it would stand still one day.
func (d *Definition) CheckSize(by, name string, most int) error {
	if n := d.largest(by, name, most); n > most {
		return fmt.Errorf("its input of %d bytes and what is kept of its fires may need %d bytes, and the store takes %d: start the runs with a smaller input, such as the place where the data is: %w",
			len(d.Input), n, most, store.ErrTooLarge)
	}
	return nil
}

// Declare stores a definition unless the same one is stored. What it replaces it names in a
// line of the log. A schedule that is paused stays so; one that is new begins now.
func Declare(ctx context.Context, st store.Schedules, by string, log *slog.Logger, name string, def *Definition, paused bool) error {
	for {
		list, err := st.Schedules(ctx, name)
		if err != nil {
			return err
		}
		clock, err := st.DueSchedules(ctx, 0)
		if err != nil {
			return err
		}
		next := &Record{Definition: *def, Settled: clock.Now}
		var revision int64
		var differences []string
		if len(list) == 0 {
			if paused {
				next.Paused = &Pause{At: clock.Now, Reason: "declared as paused"}
			}
		} else {
			have, err := parse(&list[0])
			if err != nil {
				log.Warn("durable: a stored schedule cannot be read; this declaration does not replace it", "schedule", name, "error", err)
				return nil
			}
			differences = have.Definition.Differences(def)
			if len(differences) == 0 && keyOf(have.Definition.Input) == keyOf(def.Input) {
				return nil
			}
			if !have.Definition.sameTimes(def) {
				// Times before now are not those that anybody has waited for.
				have.Settled = clock.Now
			}
			have.Definition = *def
			next, revision = have, list[0].Revision
		}
		c, err := def.Calendar()
		if err != nil {
			return err
		}
		_, err = st.PutSchedule(ctx, next.encode(by, name, revision, next.due(name, c, clock.Now, minHeldPoll)))
		if errors.Is(err, store.ErrRevision) {
			continue // another program, or the loop of one, was faster
		}
		if err == nil && len(differences) > 0 {
			log.Warn("durable: a schedule was declared differently before; this declaration replaces that one", "schedule", name, "differences", differences)
		}
		return err
	}
}

// keyOf returns the id of the key with which an input is encrypted. A declaration under a
// newer key is stored, so that the old one can be removed.
func keyOf(input []byte) string {
	env, err := envelope.Open(input)
	if err != nil {
		return ""
	}
	return env.KeyID
}

// KeyOf returns the id of the key that the input of a stored schedule is encrypted with;
// empty: it is not encrypted.
func KeyOf(s *store.Schedule) (string, error) {
	r, err := parse(s)
	if err != nil {
		return "", fmt.Errorf("looking for the key of its input: %w", err)
	}
	return keyOf(r.Definition.Input), nil
}
