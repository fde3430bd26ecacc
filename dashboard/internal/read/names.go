package read

import "strings"

// Names are the names in the value of a list of a filter, separated by commas: the inverse of
// client.FilterValue. A backslash before anything but a comma or another backslash is itself.
func Names(value string) []string {
	if !strings.Contains(value, `\`) {
		return strings.Split(value, ",")
	}
	var (
		names []string
		name  strings.Builder
	)
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == ',':
			names = append(names, name.String())
			name.Reset()
		case c == '\\' && i+1 < len(value) && (value[i+1] == ',' || value[i+1] == '\\'):
			i++
			name.WriteByte(value[i])
		default:
			name.WriteByte(c)
		}
	}
	return append(names, name.String())
}
