// Package read reads runs for the packages that show them: rows, histories and
// outlines, lists by filter, questions to people, and live executors. Reader is the
// only type that uses an engine; a Listing is a filter as given in a request or in the
// field of a page.
package read
