// Package docs holds no code: its tests keep the documents true. What a page
// names must exist.
package docs
