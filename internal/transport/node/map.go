package node

// MapFile maps a file of so many bytes into memory, for all that map it.
func MapFile(name string, size int) ([]byte, error) {
	f, err := openMemory(name, size)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mapMemory(f, size)
}
