package durable

import "context"

// findLive learns which executors live.
func (c *cleaning) findLive(ctx context.Context) error {
	executors, err := c.eng.store.Executors(ctx)
	c.live = map[string]bool{}
	for i := range executors {
		if executors[i].Live {
			c.live[executors[i].ID] = true
		}
	}
	return err
}
