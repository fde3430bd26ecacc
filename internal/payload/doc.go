// Package payload turns values into payloads and back: it encodes a user's value before it is
// recorded, and decodes it in a program that may know its type in another version.
//
// A codec encodes a value into a plain envelope (internal/envelope), whose header names
// the codec, the type and the registered types within. On its way into the store the
// envelope is sealed: compressed if it is large, and encrypted if the engine has keys, for
// the one Place where it will be stored. A Sealer does all of that for an engine.
//
// The types and options that users see are in package durable, on top of those here: durable.Codec,
// durable.TypeDef, durable.Keys. Codecs, upcasters and key providers are user code, which is called
// through internal/guard.
//
//	seal.go        Sealer, its Options and Place; Seal (which encrypts), Open, Unseal, Check; the limits of a payload
//	codec.go       Codec, JSON; Encode and Decode
//	json.go        values that come as JSON, without a Go type: starts, answers, edits
//	typeinfo.go    what is worked out once for each Go type
//	types.go       registered types: TypeDef, Upcast, Types
//	upcast.go      values of earlier versions, raised to the present one
//	within.go      registered types within values of other types
//	fingerprint.go hashes that distinguish values
//	unquoted.go    errors that do not quote an encrypted value
//	compress.go    compression
//	encrypt.go     Keys: which key encrypts, and decryption
package payload
