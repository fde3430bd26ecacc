package claims

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// mailPause is the least time between two claims because of messages to runs that others own:
// their owners take them, unless one has just died, which a claim finds out.
const mailPause = time.Second

// Heard makes the loop look for runs to claim if a notice of the store says that there may be
// some; here reports whether a run is executed here. It is called by one goroutine.
func (c *Claims) Heard(n store.Notice, here func(id string) bool) {
	if !c.recovered.Load() {
		return
	}
	elsewhere := func() bool { return slices.ContainsFunc(n.RunIDs, func(id string) bool { return !here(id) }) }
	if n.News&store.NewsPlace != 0 {
		c.Freed()
	}
	if len(n.RunIDs) == 0 || n.News&store.NewsTime != 0 {
		c.o.Heart.LearnTimes()
	}
	switch {
	case len(n.RunIDs) == 0, n.News&store.NewsClaimable != 0, n.News == 0 && elsewhere():
		c.Wake()
	case n.News&store.NewsMail != 0 && elsewhere():
		c.mailElsewhere(time.Now())
	}
}

// mailElsewhere makes the loop look for runs to claim, at once or, if it has just done so for
// this reason, once mailPause is over.
func (c *Claims) mailElsewhere(now time.Time) {
	switch wait := c.mailAt.Sub(now); {
	case wait <= 0:
		c.mailAt = now.Add(mailPause)
		c.Wake()
	case wait <= mailPause:
		c.mailAt = c.mailAt.Add(mailPause)
		c.WakeAt(c.o.Now() + store.Time(wait.Microseconds()))
	}
}
