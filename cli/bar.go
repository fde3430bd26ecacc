package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar is the progress of work that may take long, on a terminal.
type bar struct{ b *progressbar.ProgressBar }

// bar begins one; where standard error is no terminal it shows nothing.
func (c *call) bar(total int64, what string) *bar {
	if !c.err.tty || c.flags.json || total < 2 {
		return &bar{}
	}
	return &bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(c.err.w), progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
		progressbar.OptionEnableColorCodes(false),
	)}
}

func (b *bar) add(n int) {
	if b.b != nil {
		_ = b.b.Add(n)
	}
}

// end takes the bar off the screen.
func (b *bar) end() {
	if b.b != nil {
		_ = b.b.Finish()
	}
}
