package dashboard

// apiRoutes are the routes of the JSON API and of the streams.
func (h *handler) apiRoutes() []route { return nil }
