// Package desk is how package operate reaches into the engine of package durable: through
// one interface. A test makes sure that nothing else imports it, so that what users of
// the engine see stays small.
package desk
