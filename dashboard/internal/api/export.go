package api

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
)

// Export serves GET /api/runs/{id}/export: the run as a file for Import. Its payloads are
// as they are stored: encrypted if they are, and never redacted.
func (api *API) Export(w http.ResponseWriter, r *http.Request) error {
	if !api.ShowPayloads || api.Redact != nil {
		return errRedacted
	}
	if api.exports.Add(1) > maxExports {
		api.exports.Add(-1)
		return web.NewError(http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d runs are being exported, which is as many as may be at a time", maxExports), "try again in a moment")
	}
	defer api.exports.Add(-1)
	file := &exportFile{to: w, control: http.NewResponseController(w)}
	err := operate.On(api.Engine).Export(r.Context(), r.PathValue("id"), file)
	switch {
	case err == nil:
		_ = file.begin() // a client that has gone misses nothing
		_ = file.control.SetWriteDeadline(time.Time{})
		return nil
	case !file.begun:
		return err
	}
	api.Log.Warn("dashboard: an export was broken off", "run", r.PathValue("id"), "error", err)
	panic(http.ErrAbortHandler) // so that the client does not take a partial file for a complete one
}

// maxExports bounds how many runs are exported at a time, and exportPatience how long
// a client may take for each part of one.
const (
	maxExports     = 8
	exportPatience = 30 * time.Second
)

// An exportFile is an answer that begins once it has exportHeld bytes: an error before
// that, such as damage in a run of usual size, can still be answered as an error.
type exportFile struct {
	to      http.ResponseWriter
	control *http.ResponseController
	held    bytes.Buffer
	begun   bool
}

const exportHeld = 1 << 20

// begin sends what was held back.
func (f *exportFile) begin() error {
	if f.begun {
		return nil
	}
	f.begun = true
	download(f.to, "run.jsonl")
	f.to.WriteHeader(http.StatusOK)
	_, err := f.Write(f.held.Bytes())
	f.held = bytes.Buffer{}
	return err
}

func (f *exportFile) Write(b []byte) (int, error) {
	if !f.begun && f.held.Len()+len(b) <= exportHeld {
		return f.held.Write(b)
	}
	if err := f.begin(); err != nil {
		return 0, err
	}
	_ = f.control.SetWriteDeadline(time.Now().Add(exportPatience)) // has no effect on a writer without deadlines
	return f.to.Write(b)
}
