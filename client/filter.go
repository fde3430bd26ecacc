package client

import "strings"

// FilterValue returns a value of a filter of GET /api/runs, or of BulkRequest.Filter, that means
// this name alone: there, "a,b" is a list of two names, and "a\,b" is one name with a comma.
// ListOptions does this on its own.
func FilterValue(name string) string { return filterValues.Replace(name) }

var filterValues = strings.NewReplacer(`\`, `\\`, `,`, `\,`)
