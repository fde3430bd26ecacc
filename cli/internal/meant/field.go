package meant

import (
	"encoding/json"
	"strings"
)

// Field returns the name of a field in an object that is misspelt by the look of a sample, and the
// object with the name that is meant: the wait would read that field as its zero value, such as a
// no. A field that the sample lacks may be right, as one that is left out when it is empty: only a
// name that resembles one the object lacks counts. Empty: there is none.
func Field(value, sample json.RawMessage) (misspelt string, mended json.RawMessage) {
	var given, wanted map[string]json.RawMessage
	if json.Unmarshal(value, &given) != nil || json.Unmarshal(sample, &wanted) != nil {
		return "", nil
	}
	for field := range given {
		if has(wanted, field) {
			continue
		}
		for name := range wanted {
			if has(given, name) || len(name) < 4 || distance(strings.ToLower(field), strings.ToLower(name)) > 2 {
				continue
			}
			given[name] = given[field]
			delete(given, field)
			mended, _ = json.Marshal(given)
			return field, mended
		}
	}
	return "", nil
}

// has reports whether an object has a field, as JSON is decoded: in any case.
func has(fields map[string]json.RawMessage, name string) bool {
	for f := range fields {
		if strings.EqualFold(f, name) {
			return true
		}
	}
	return false
}

// distance is the number of letters to insert, delete or replace on the way from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
