package store

import (
	"encoding/binary"
	"slices"
)

// Lists of texts, as a record keeps them.

func appendTexts(b []byte, texts func(func(string) bool)) []byte {
	for s := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func parseTexts(b []byte) (texts []string, ok bool) {
	for len(b) > 0 {
		var s []byte
		if s, b, ok = cutBytes(b); !ok {
			return nil, false
		}
		texts = append(texts, string(s))
	}
	return texts, true
}

// cutBytes cuts a length and that many bytes off the front of b.
func cutBytes(b []byte) (v, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return b[n:end], b[end:], true
}

// appendServed appends one text for each workflow, which holds its name and its
// versions.
func appendServed(b []byte, served []Served) []byte {
	return appendTexts(b, func(yield func(string) bool) {
		for _, s := range served {
			if !yield(string(appendTexts(nil, slices.Values(append([]string{s.Workflow}, s.Versions...))))) {
				return
			}
		}
	})
}

func parseServed(b []byte) ([]Served, bool) {
	each, ok := parseTexts(b)
	if !ok {
		return nil, false
	}
	var served []Served
	for _, text := range each {
		names, ok := parseTexts([]byte(text))
		if !ok || len(names) == 0 {
			return nil, false
		}
		s := Served{Workflow: names[0]}
		s.Versions = append(s.Versions, names[1:]...)
		served = append(served, s)
	}
	return served, true
}

// queuesServed are the queues of Served, kept in a field of their own behind that of the rest: one
// text for each workflow, which holds its queues; nothing if none names any.
type queuesServed []Served

func (served queuesServed) append(b []byte) []byte {
	if !slices.ContainsFunc(served, func(s Served) bool { return len(s.Queues) > 0 }) {
		return nil
	}
	return appendTexts(b, func(yield func(string) bool) {
		for _, s := range served {
			if !yield(string(appendTexts(nil, slices.Values(s.Queues)))) {
				return
			}
		}
	})
}

func (served queuesServed) parse(b []byte) bool {
	each, ok := parseTexts(b)
	if !ok || len(each) != len(served) {
		return false
	}
	for i := range served {
		if served[i].Queues, ok = parseTexts([]byte(each[i])); !ok && each[i] != "" {
			return false
		}
	}
	return true
}
