//go:build unix && !linux

package pgtest

// memoryDir makes a directory on disk: other systems have none in memory.
func memoryDir(a *account) (string, error) { return tempDir(a) }
