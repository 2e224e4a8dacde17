package node

// MapFile maps a file of size bytes into memory, shared with all processes that map it.
func MapFile(name string, size int) ([]byte, error) {
	f, err := openMemory(name, size)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mapMemory(f, size)
}
