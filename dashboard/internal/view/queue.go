package view

import (
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/wire"
	"github.com/holdfast-dev/holdfast/operate"
)

// Queue is what the API shows of a queue.
func (wi *Wire) Queue(q *operate.Queue) client.Queue {
	shown := *q
	shown.Reason = wi.Redact.Text(q.Reason)
	return wire.Queue(&shown, Now(), Zone)
}

// Line is what the API shows of where a run stands in line, which is redacted already;
// nil: in none.
func (wi *Wire) Line(l *outline.Line) *client.Line { return wire.Line(l, Now(), Zone) }
