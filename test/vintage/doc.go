// Package vintage holds no code: its tests open stores that programs of the
// versions before have left, as files in the backends' testdata, and go on with
// them.
package vintage
