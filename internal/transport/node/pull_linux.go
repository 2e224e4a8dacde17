//go:build amd64 || arm64

package node

import (
	"runtime"
	"syscall"
	"unsafe"
)

// readMemory reads from two places in the memory of a process (process_vm_readv), first into first,
// then into second. It returns how many bytes it has read. never says that this process can't read
// memory of that one.
func readMemory(process int, first []byte, at uint64, second []byte, then uint64) (n int, never bool) {
	call := uintptr(310)
	if runtime.GOARCH == "arm64" {
		call = 270
	}
	type remote struct{ base, length uint64 }
	local := [2]syscall.Iovec{{Base: unsafe.SliceData(first), Len: uint64(len(first))}, {Base: unsafe.SliceData(second), Len: uint64(len(second))}}
	from := [2]remote{{at, uint64(len(first))}, {then, uint64(len(second))}}
	r, _, errno := syscall.RawSyscall6(call, uintptr(process), uintptr(unsafe.Pointer(&local)), 2, uintptr(unsafe.Pointer(&from)), 2, 0)
	if errno != 0 {
		return 0, errno != syscall.EFAULT
	}
	return int(r), false
}
