package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

//go:embed assets
var assetFiles embed.FS

// assets are the style sheet and the script, under names that change with their content,
// so that a browser may keep them forever.
type assetSet struct {
	hashed map[string]string // by plain name
	byName map[string][]byte // by hashed name
}

var assets = sync.OnceValue(func() *assetSet {
	a := &assetSet{hashed: map[string]string{}, byName: map[string][]byte{}}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, e := range entries {
		body, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		ext := path.Ext(e.Name())
		name := fmt.Sprintf("%s-%s%s", strings.TrimSuffix(e.Name(), ext), hex.EncodeToString(sum[:6]), ext)
		a.hashed[e.Name()], a.byName[name] = name, body
	}
	return a
})

// assetURL returns the path of an asset below the prefix.
func assetURL(name string) string { return "/assets/" + assets().hashed[name] }

// Asset serves GET /assets/{name}.
func (sh *Shell) Asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	body, ok := assets().byName[name]
	if !ok {
		return web.NewError(http.StatusNotFound, "not_found", errNotHere.Error(), "")
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	_, _ = w.Write(body)
	return nil
}
