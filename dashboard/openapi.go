package dashboard

import (
	_ "embed"
	"net/http"
)

// openAPI describes the API for programs.
//
//go:embed openapi.json
var openAPI []byte

// getOpenAPI serves GET /api/openapi.json.
func (h *handler) getOpenAPI(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(openAPI)
	return nil
}
