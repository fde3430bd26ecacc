package history

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// Patch is what the history of a scope says of one change.
type Patch struct {
	Name       string // escaped
	Change     string // as it was given
	Deprecated bool   // its code has said that the marker may be missing
}

// PatchPrefix precedes the name of a change in the key of its marker. No call
// has such a key: ~ is escaped in names.
const PatchPrefix = "~patched:"

// takePatch files a marker.
func (p *Past) takePatch(e *store.Event) error {
	d, err := Of[Marker](e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	path := ScopeOfKey(e.Key)
	name, ok := strings.CutPrefix(strings.TrimPrefix(e.Key[len(path):], "/"), PatchPrefix)
	if !ok || name == "" {
		return fmt.Errorf("%q is not the key of a patch", e.Key)
	}
	for _, have := range p.Patches[path] {
		if have.Name == name {
			have.Deprecated = have.Deprecated || d.Deprecated
			return nil
		}
	}
	if p.Patches == nil {
		p.Patches = map[string][]*Patch{}
	}
	p.Patches[path] = append(p.Patches[path], &Patch{Name: name, Change: d.Name, Deprecated: d.Deprecated})
	return nil
}
