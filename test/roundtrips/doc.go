// Package roundtrips counts how often the library asks a database for something.
package roundtrips
