package requests_test

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// vault is keys of which the first one cannot be had at first.
type vault struct {
	rotated, open atomic.Bool
	asked         atomic.Int64
}

func (v *vault) Current() string {
	if v.rotated.Load() {
		return "k1"
	}
	return ""
}

func (v *vault) Key(string) ([]byte, error) {
	v.asked.Add(1)
	if !v.open.Load() {
		return nil, errors.New("vault: sealed")
	}
	return bytes.Repeat([]byte{7}, durable.KeySize), nil
}

func TestARequestIsLeftWhileTheKeyCannotBeHad(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		keys := &vault{}
		o := options(ship)
		o.Encrypt = keys
		p.engine(t, o)
		keys.rotated.Store(true)
		c := p.program(t)
		before := keys.asked.Load()
		c.exec(`INSERT INTO durable_requests (kind, workflow, run_id, input) VALUES ('start', 'ship', 'r', '{"item":"lamp"}')`)
		require.Eventually(t, func() bool { return keys.asked.Load() > before }, 30*time.Second, time.Millisecond)
		keys.open.Store(true)
		run, code, text := c.answer(`run_id = 'r'`)
		require.Empty(t, code, text)
		require.Equal(t, "r", run)
		c.until(`SELECT count(*) FROM durable_runs WHERE id = 'r' AND status = 'completed'`)
	})
}
