package schedules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/calendar"
	"github.com/holdfast-dev/holdfast/store"
)

// A Definition is what a program declares of a schedule, as it is stored.
type Definition struct {
	Workflow string `json:"workflow"`

	// When it fires: a cron expression in a zone, or an interval and its anchor.
	Cron   string     `json:"cron,omitempty"`
	Zone   string     `json:"zone,omitempty"`
	Every  int64      `json:"every,omitempty"`  // microseconds
	Anchor store.Time `json:"anchor,omitempty"` // zero: the Unix epoch
	Jitter int64      `json:"jitter,omitempty"` // microseconds; how late a fire may be made

	Overlap Overlap `json:"overlap,omitempty"`
	Missed  Missed  `json:"missed,omitempty"`

	// What is started.
	Input     []byte          `json:"input,omitempty"` // an envelope, sealed for PlaceOf
	InputHash string          `json:"input_hash,omitempty"`
	Options   json.RawMessage `json:"options,omitempty"` // of the start; the engine's
}

// Overlap says what a fire does while the run before has not ended.
type Overlap string

// The policies of Overlap.
const (
	OverlapSkip   Overlap = ""       // it starts nothing
	OverlapAllow  Overlap = "allow"  // it starts its run beside the one before
	OverlapQueue  Overlap = "queue"  // it starts its run once the one before has ended
	OverlapCancel Overlap = "cancel" // the same, and the one before is cancelled
)

// Missed says what becomes of fires that nobody looked at in time: how many of the
// latest are started, or one of the constants.
type Missed int

// The policies of Missed beside a number.
const (
	MissedOnce Missed = 0
	MissedSkip Missed = -1
	MissedAll  Missed = -2
	// MaxMissed bounds the number.
	MaxMissed Missed = 1000
)

// keep returns how many of the latest fires are started; negative: all.
func (m Missed) keep() int {
	switch m {
	case MissedOnce:
		return 1
	case MissedSkip:
		return 0
	case MissedAll:
		return -1
	}
	return int(m)
}

func (m Missed) String() string {
	switch m {
	case MissedOnce:
		return "once"
	case MissedSkip:
		return "skip"
	case MissedAll:
		return "all"
	}
	return fmt.Sprintf("up to %d", int(m))
}

func (o Overlap) String() string {
	if o == OverlapSkip {
		return "skip"
	}
	return string(o)
}

// jitter returns Jitter as a duration.
func (d *Definition) jitter() time.Duration { return time.Duration(d.Jitter) * time.Microsecond }

// Calendar returns the fire times. The error matches store.ErrInvalid: the declaration
// cannot be used, at least not here.
func (d *Definition) Calendar() (*calendar.Calendar, error) {
	var c *calendar.Calendar
	var err error
	if d.Every != 0 {
		c, err = calendar.Every(time.Duration(d.Every)*time.Microsecond, time.UnixMicro(int64(d.Anchor)))
	} else {
		c, err = calendar.Cron(d.Cron, d.Zone)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	return c, nil
}

// Check returns why a definition cannot be stored.
func (d *Definition) Check() error {
	if _, err := d.Calendar(); err != nil {
		return err
	}
	switch d.Overlap {
	case OverlapSkip, OverlapAllow, OverlapQueue, OverlapCancel:
	default:
		return fmt.Errorf("overlap %q is no policy: %w", string(d.Overlap), store.ErrInvalid)
	}
	switch {
	case d.Missed < MissedAll || d.Missed > MaxMissed:
		return fmt.Errorf("missed fires: %d is no policy and not between 1 and %d: %w", d.Missed, MaxMissed, store.ErrInvalid)
	case d.Jitter < 0:
		return fmt.Errorf("a jitter of %s is negative: %w", d.jitter(), store.ErrInvalid)
	case d.Every != 0 && d.Jitter >= d.Every:
		return fmt.Errorf("a jitter of %s is not shorter than the interval, %s: %w", d.jitter(), time.Duration(d.Every)*time.Microsecond, store.ErrInvalid)
	case d.jitter() > MaxJitter:
		return fmt.Errorf("a jitter of %s; at most %s are allowed: %w", d.jitter(), MaxJitter, store.ErrInvalid)
	}
	return nil
}

// MaxJitter bounds the jitter. It bounds how many fires of an expression may be
// under way to their moments at once.
const MaxJitter = time.Hour

// Timetable says in words when the schedule fires.
func (d *Definition) Timetable() string {
	text := fmt.Sprintf("cron %q", d.Cron)
	switch {
	case d.Every != 0:
		text = "every " + (time.Duration(d.Every) * time.Microsecond).String()
		if d.Anchor != 0 {
			text += " from " + d.Anchor.Time().Format(time.RFC3339Nano)
		}
	case d.Zone != "":
		text += " in " + d.Zone
	}
	if d.Jitter != 0 {
		text += fmt.Sprintf(", up to %s late", d.jitter())
	}
	return text
}

// sameTimes reports whether two definitions fire at the same times, however late.
func (d *Definition) sameTimes(o *Definition) bool {
	return d.Cron == o.Cron && d.Zone == o.Zone && d.Every == o.Every && d.Anchor == o.Anchor
}

// Differences lists in words what is different in another definition, was and is. The
// input is not shown, because it may be secret.
func (d *Definition) Differences(now *Definition) []string {
	var list []string
	add := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s was %s and is %s", what, was, is))
		}
	}
	add("the workflow", d.Workflow, now.Workflow)
	add("the timetable", d.Timetable(), now.Timetable())
	add("the policy for overlap", d.Overlap.String(), now.Overlap.String())
	add("the policy for missed fires", d.Missed.String(), now.Missed.String())
	if d.InputHash != now.InputHash {
		list = append(list, "the input is another one")
	}
	if hash(d.Options) != hash(now.Options) {
		list = append(list, "the options of the start are other ones")
	}
	return list
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
