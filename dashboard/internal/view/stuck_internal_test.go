package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

func TestARunIsShownAsStuckWhenNothingCanTakeItOn(t *testing.T) {
	now := store.TimeOf(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	lost := func(s store.Status) outline.Outline {
		return outline.Outline{
			Run: store.Run{Status: s, UpdatedAt: now.Add(-time.Minute)}, Now: now, KnowExecutors: true,
			Verdict: outline.Verdict{Tone: outline.ToneStuck},
		}
	}
	for name, c := range map[string]struct {
		status store.Status
		change func(*outline.Outline)
		stuck  bool
	}{
		"its process is gone":              {store.Running, func(*outline.Outline) {}, true},
		"gone, and somebody serves it":     {store.Running, func(o *outline.Outline) { o.Served = true }, true},
		"gone a moment ago":                {store.Running, func(o *outline.Outline) { o.Run.UpdatedAt = now.Add(-4 * time.Second) }, false},
		"nobody has its code":              {store.Pending, func(*outline.Outline) {}, true},
		"somebody has":                     {store.Pending, func(o *outline.Outline) { o.Served, o.Verdict.Tone = true, outline.TonePending }, false},
		"it is executed":                   {store.Running, func(o *outline.Outline) { o.Served, o.Attended, o.Verdict.Tone = true, true, outline.ToneRun }, false},
		"parked, which is its own word":    {store.Interrupted, func(o *outline.Outline) { o.Run.Code = "edited" }, false},
		"paused, which is, too":            {store.Running, func(o *outline.Outline) { o.Run.Paused = true }, false},
		"it has failed, and says why":      {store.Failed, func(*outline.Outline) {}, false},
		"cancelling, which says who can":   {store.Running, func(o *outline.Outline) { o.Run.CancelAsked = true }, false},
		"late, and somebody can wake it":   {store.Waiting, func(o *outline.Outline) { o.Served = true }, false},
		"interrupted, nobody has its code": {store.Interrupted, func(*outline.Outline) {}, true},
	} {
		o := lost(c.status)
		c.change(&o)
		require.Equal(t, c.stuck, IsStuck(&o), name)
	}
}
