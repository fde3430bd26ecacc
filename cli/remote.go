package cli

// connect returns a target on a server.
func (c *call) connect(p place) (target, error) {
	return nil, usage("servers cannot be reached yet (%s)", p.from)
}
