package peers

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// marks is memory that the processes of a directory share. It has a word for each, which the system
// marks as soon as that process begins to end. The end of a socket comes later: before it closes
// the files of a process, the system frees its memory, which takes some 0.1 s a GiB.
//
// The word is a robust futex (set_robust_list(2)), which a thread of the process owns as long as
// the process lives. Until then its value is the number of the thread, and waiters. Where the
// system has no robust futexes, the words stay 0.
type marks struct {
	words   []byte
	release chan struct{} // nil: this process's word is not owned
	held    chan struct{} // closed when it is not owned any more
}

// marksName is the name of the marks in the directory.
const marksName = "marks"

const (
	ownerDied = 0x40000000 // FUTEX_OWNER_DIED
	waiters   = 0x80000000 // FUTEX_WAITERS: the system wakes one that waits for the word
)

// newMarks maps the marks of n processes, and makes a thread own the word of this process. It
// returns nil if that is not possible. Then sockets alone show its end.
func newMarks(dir string, me, n int) *marks {
	f, err := os.OpenFile(filepath.Join(dir, marksName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	size := 4 * n
	if syscall.Fallocate(int(f.Fd()), 0, 0, int64(size)) != nil { // else a full file system would end the process later
		return nil
	}
	words, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	m := &marks{words: words, held: make(chan struct{})}
	runtime.AddCleanup(m, func(b []byte) { _ = syscall.Munmap(b) }, words) // not before, because Look may read them
	release, owned := make(chan struct{}), make(chan bool)
	go own(m.word(me), owned, release, m.held)
	if <-owned {
		m.release = release
	}
	return m
}

func (m *marks) word(index int) *uint32 { return (*uint32)(unsafe.Pointer(&m.words[4*index])) }

// all returns the words of all processes.
func (m *marks) all() []*uint32 {
	if m == nil {
		return nil
	}
	words := make([]*uint32, len(m.words)/4)
	for i := range words {
		words[i] = m.word(i)
	}
	return words
}

// ends says whether a process has begun to end.
func (m *marks) ends(index int) bool {
	return m != nil && atomic.LoadUint32(m.word(index))&ownerDied != 0
}

// leave makes the system not mark this process when it ends.
func (m *marks) leave() {
	if m != nil && m.release != nil {
		close(m.release)
		<-m.held
		m.release = nil
	}
}

// robustList is struct robust_list_head, with one entry.
type robustList struct {
	first   uintptr // to entry
	offset  int     // of the futex from the entry
	pending uintptr
	entry   uintptr // to the head, as the last one does
}

const robustHead = unsafe.Offsetof(robustList{}.entry)

// own makes a thread own word until release is closed.
func own(word *uint32, owned chan<- bool, release <-chan struct{}, held chan<- struct{}) {
	defer close(held)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, size uintptr // the C library's, perhaps
	_, _, errno := syscall.RawSyscall(syscall.SYS_GET_ROBUST_LIST, 0, uintptr(unsafe.Pointer(&old)), uintptr(unsafe.Pointer(&size)))
	l := new(robustList)
	var pinner runtime.Pinner
	pinner.Pin(l)
	defer pinner.Unpin()
	l.first = uintptr(unsafe.Pointer(&l.entry))
	l.entry = uintptr(unsafe.Pointer(l))
	l.offset = int(uintptr(unsafe.Pointer(word)) - l.first)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(syscall.SYS_SET_ROBUST_LIST, l.entry, robustHead, 0)
	}
	if errno != 0 {
		owned <- false
		return
	}
	atomic.StoreUint32(word, uint32(syscall.Gettid())|waiters)
	owned <- true
	<-release
	atomic.StoreUint32(word, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SET_ROBUST_LIST, old, size, 0)
	runtime.KeepAlive(l)
}
