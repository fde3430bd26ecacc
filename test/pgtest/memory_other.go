//go:build unix && !linux

package pgtest

// MemoryTemp makes no directory: other systems have none in memory.
func MemoryTemp() (dir string, remove func() error) { return "", nil }

// memoryDir makes a directory on disk: other systems have none in memory.
func memoryDir(a *account) (string, error) { return tempDir(a) }

func inMemory(string) bool { return false }
