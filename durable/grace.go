package durable

import "time"

// Grace returns for how long Close waits for step bodies under way, so that a
// program which is told to stop can say how long that takes at most.
func (e *Engine) Grace() time.Duration { return max(0, e.options.Grace) }
