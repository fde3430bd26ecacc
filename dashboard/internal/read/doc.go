// Package read reads runs for those who show them: rows, histories and outlines, lists
// by filter, what is asked of people, and who is alive. Reader is the one type with an
// engine behind it; a Listing is a filter as a request or the field of a page has it.
package read
