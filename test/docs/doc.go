// Package docs holds the tests that keep the documents true: whatever a page names must
// exist. It has no code of its own.
package docs
