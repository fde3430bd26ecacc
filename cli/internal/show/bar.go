package show

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// A Bar is the progress of work that may take long, on a terminal.
type Bar struct{ b *progressbar.ProgressBar }

// NewBar starts a Bar. If s is not a terminal it shows nothing.
func NewBar(s *Stream, total int64, what string) *Bar {
	if !s.TTY || total < 2 {
		return &Bar{}
	}
	return &Bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(s.W), progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
		progressbar.OptionEnableColorCodes(false),
	)}
}

// Add counts finished work.
func (b *Bar) Add(n int) {
	if b.b != nil {
		_ = b.b.Add(n)
	}
}

// End removes the bar from the screen.
func (b *Bar) End() {
	if b.b != nil {
		_ = b.b.Finish()
	}
}
