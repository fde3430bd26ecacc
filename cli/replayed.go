package cli

import (
	"context"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// stayResumed is stay for a run that was just resumed. It calls announce only once the
// history is replayed: code that has changed stops the run before that, and then
// nothing may have claimed that it was resumed.
func (c *invocation) stayResumed(t target.Target, s *target.Run, here bool, announce func()) error {
	signals := c.catch()
	ctx, stop := context.WithCancel(context.WithoutCancel(c.ctx))
	defer stop()
	var goesOn bool
	looked := make(chan error, 1)
	go func() {
		var err error
		goesOn, err = c.replayed(ctx, t, s.ID)
		looked <- err
	}()
	leave := func(sig os.Signal) error {
		return c.interrupted(t, s, here, sig, signals, operate.Standing{})
	}
	select {
	case err := <-looked:
		if err != nil {
			return err
		}
	case sig := <-signals:
		return leave(sig)
	case <-c.ctx.Done():
		return leave(os.Interrupt)
	}
	if !goesOn {
		return c.outcome(t, s, here)
	}
	announce()
	return c.stay(t, s, here)
}

// replayed waits until a resumed run has replayed its history, and reports whether it
// goes on. It does not when the code here does not fit the history or cannot read it.
func (c *invocation) replayed(ctx context.Context, t target.Target, id string) (bool, error) {
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, settle) {
		now, err := t.Run(ctx, id)
		if err != nil {
			return false, err
		}
		if now.Status != string(store.Resuming) {
			stopped := now.Status == string(store.Interrupted) && (now.Code == durable.CodeDefinitionChanged || now.Code == durable.CodeUndecodable)
			return !stopped, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pause):
		}
	}
}
