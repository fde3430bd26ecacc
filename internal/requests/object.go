package requests

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// Object reads a JSON object whose values are strings; an empty text is an empty object.
// The error matches store.ErrInvalid and says which column is wrong.
func Object(column, text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	var values map[string]*string
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("%s is no JSON object whose values are strings: %w: %w", column, store.ErrInvalid, err)
	}
	m := make(map[string]string, len(values))
	for key, value := range values {
		if value == nil {
			return nil, fmt.Errorf("%s is no JSON object whose values are strings: that of %q is null: %w", column, key, store.ErrInvalid)
		}
		m[key] = *value
	}
	return m, nil
}
