package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/count"
)

// handled is what an act on many runs prints of each with --json, one a line.
type handled struct {
	ID      string `json:"id"`
	Queue   string `json:"queue,omitempty"`
	Done    bool   `json:"done"` // with dry_run: it would be
	Refused string `json:"refused,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// many counts and prints the outcomes of an act on many runs.
type many struct {
	c           *invocation
	queue       string
	dry         bool
	says, would string // about the number of runs, and those that were refused

	done, refused int
	paused        []string // and left so, which is no refusal: a person holds them
	failed        error
}

// one prints what became of one run.
func (m *many) one(id string, no error) {
	h := handled{ID: id, Queue: m.queue, Done: no == nil, DryRun: m.dry}
	if no != nil {
		h.Refused = no.Error()
		if r := (*durable.NotResumableError)(nil); errors.As(no, &r) && r.Paused {
			m.paused = append(m.paused, id)
		} else {
			m.refused++
		}
	} else {
		m.done++
	}
	switch {
	case m.c.flags.json:
		if err := m.c.out.JSON(h); err != nil && m.failed == nil {
			m.failed = err
		}
	case no != nil:
		m.c.say("Left %s: %s", show.Escape(id), show.Escape(show.FirstLine(strings.TrimPrefix(no.Error(), "durable: "))))
	default:
		m.c.out.Printf("%s\n", show.Escape(id))
	}
}

// end prints the numbers. err is that of the act as a whole.
func (m *many) end(err error) error {
	if err == nil {
		err = m.failed
	}
	if err != nil {
		return err
	}
	if !m.c.flags.json {
		rest := ""
		if m.refused > 0 {
			rest = fmt.Sprintf(", %d refused", m.refused)
		}
		says := m.says
		if m.dry {
			says = "Dry run: nothing changed. " + m.would
		}
		m.c.out.Printf(says, count.Of(m.done, "run"), rest)
	}
	if n := len(m.paused); n > 0 {
		m.c.say("%s %s so. Let %s go on: %s", count.Of(n, "run"), count.Verb(n, "is paused and stays", "are paused and stay"), count.Verb(n, "it", "one"), m.c.self("unpause", m.paused[0]))
	}
	if m.refused > 0 {
		return show.Quiet(ExitRefused)
	}
	return nil
}
