// Package desk is how package operate reaches into the engine of package durable: the one
// interface behind which the engine stands. Nothing else imports it (a test), so that what
// users of the engine see stays small.
package desk
