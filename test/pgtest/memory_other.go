//go:build unix && !linux

package pgtest

// MemoryTemp makes no directory: other systems have none in memory.
func MemoryTemp() (dir string, remove func() error) { return "", nil }

// MemoryLeftOut says that the test of MemoryTemp is left out.
func MemoryLeftOut() (line string, err error) {
	return "the test of temporary files in memory was left out: only Linux has them", nil
}

// memoryDir makes a directory on disk: other systems have none in memory.
func memoryDir(a *account) (string, error) { return tempDir(a) }

func inMemory(string) bool { return false }
