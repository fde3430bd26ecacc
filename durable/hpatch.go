package durable

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// patch is what the history of a scope has of one change.
type patch struct {
	name       string // escaped
	change     string // as it was given
	deprecated bool   // its code has said that the marker may be missing
}

// patchPrefix stands before the name of a change in the key of its marker. No
// call has such a key: ~ is escaped in names.
const patchPrefix = "~patched:"

// takePatch files a marker.
func (p *past) takePatch(e *store.Event) error {
	d, err := dataOf(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	path := scopeOfKey(e.Key)
	name, ok := strings.CutPrefix(strings.TrimPrefix(e.Key[len(path):], "/"), patchPrefix)
	if !ok || name == "" {
		return fmt.Errorf("%q is not the key of a patch", e.Key)
	}
	for _, have := range p.patches[path] {
		if have.name == name {
			have.deprecated = have.deprecated || d.Deprecated
			return nil
		}
	}
	if p.patches == nil {
		p.patches = map[string][]*patch{}
	}
	p.patches[path] = append(p.patches[path], &patch{name: name, change: d.Name, deprecated: d.Deprecated})
	return nil
}
