package durable

// SecretName reports whether a variable, flag or setting of this name is taken
// for a secret, and its value therefore never recorded; see Redacted.
func SecretName(name string) bool { return isSecret(name) }

// RedactArgs returns arguments of a program as they may be recorded: the values
// of flags whose names say that they are secrets are Redacted, in "-token=x" and
// "-token x" alike, and what is very long is cut.
func RedactArgs(args []string) []string { return redactArgs(args) }
