package archive

// For tests of the names alone.
var (
	NameOf = nameOf
	IDOf   = idOf
)
