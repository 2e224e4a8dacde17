//go:build mpi && cgo

package mpi

// #cgo pkg-config: mpi
// #cgo noescape mx_send
// #cgo nocallback mx_send
// #cgo nocallback mx_poll
// #include "shim.h"
import "C" // only here: the shim's variables are static

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/transport/node"
)

// maxText is the longest text taken from MPI.
const maxText = 1024

// result returns the error of a call, or nil.
func result(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	var text [maxText]C.char
	class := C.mx_error(code, &text[0], maxText)
	return &transport.LibraryError{Call: call, Class: int(class), Text: C.GoString(&text[0])}
}

// Start begins this process's part in the job. If processes are mortal, MPI must be able to
// survive deaths. A process that dies during the start may keep MPI's calls from returning: if
// ctx ends first, Start returns an error that names the call.
func Start(ctx context.Context, o node.Options) (*node.Job, error) {
	type result struct {
		job *node.Job
		err error
	}
	s := new(shim)
	s.in.Store("MPI_Init_thread")
	done := make(chan result, 1)
	go func() {
		job, err := node.Begin(node.Watched(ctx, s), o)
		done <- result{job, err}
	}()
	select {
	case r := <-done:
		return r.job, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done: // if Begin has seen ctx's end itself, its error says more
		return r.job, r.err
	case <-time.After(100 * time.Millisecond):
		return nil, &transport.LibraryError{Call: s.in.Load().(string),
			Text: fmt.Sprintf("it has not returned: a process has not come, or has died (%v)", context.Cause(ctx))}
	}
}

// Alive says whether MPI has begun and not ended. If so, a job can be started again.
func Alive() bool { return C.mx_alive() != 0 }

// inPieces has transfers divided into pieces of this many bytes, for tests, and copied as where
// processes are mortal.
func inPieces(n int, copied bool) { C.mx_copies, C.mx_longest_piece = flag(copied), C.int(n) }

// flag returns a bool as C has it.
func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// shim is the fabric that MPI provides.
type shim struct {
	size int          // of the job
	in   atomic.Value // name of the call of MPI in which the start is
}

func version() string {
	var text [maxText]C.char
	C.mx_library(&text[0], maxText)
	return nameOf(C.GoString(&text[0]))
}

func (s *shim) Start(mortal bool, _ func()) (node.Start, error) {
	var rank, size, guest, provided, isMortal, crowded, longest C.int
	err := result("MPI_Init_thread", C.mx_start(&rank, &size, &guest, &provided, &isMortal, &crowded, &longest))
	s.size = int(size)
	if err == nil {
		err = started{version(), int(size), guest != 0, threads(provided), isMortal != 0, C.MX_ULFM != 0}.check(mortal)
	}
	if err == nil && mortal {
		C.mx_copies, C.mx_longest_piece = 1, C.MX_PIECE
		err = startNative()
	}
	return node.Start{Name: "mpi", Rank: int(rank), Size: int(size), Crowded: crowded != 0, Packet: int(longest), Wakes: !isNative}, err
}

func (s *shim) Machines() ([]int, error) {
	s.in.Store("MPI_Allgather")
	return ranks(s.size, "MPI_Allgather", func(all, n *C.int) C.int {
		*n = C.int(s.size)
		return C.mx_machines(all)
	})
}

func (s *shim) Neighbours(most int) ([]int, error) {
	s.in.Store("MPI_Comm_split")
	return ranks(s.size, "MPI_Comm_split", func(all, n *C.int) C.int {
		return C.mx_near(C.int(most), n, all)
	})
}

// ranks returns what a call stores: at most this many ranks.
func ranks(most int, call string, store func(all, n *C.int) C.int) ([]int, error) {
	all, n := make([]C.int, most), C.int(0)
	if err := result(call, store(&all[0], &n)); err != nil {
		return nil, err
	}
	some := make([]int, n)
	for i := range some {
		some[i] = int(all[i])
	}
	return some, nil
}

func (s *shim) FromFirst(b []byte) error {
	s.in.Store("MPI_Bcast")
	return result("MPI_Bcast", C.mx_from_first(unsafe.Pointer(&b[0]), C.int(len(b))))
}

func (s *shim) AllNear(ok bool) (bool, error) {
	s.in.Store("MPI_Allreduce")
	all := flag(ok)
	err := result("MPI_Allreduce", C.mx_all_near(&all))
	return all != 0, err
}

func (s *shim) AllHere() error {
	s.in.Store("MPIX_Comm_agree")
	return result("MPIX_Comm_agree", C.mx_all_here())
}

func (*shim) Poll(s *node.Sink, times int) (happened, died bool) {
	n := C.mx_poll(C.int(times))
	if C.mx_code != 0 {
		s.Fail(result(C.GoString(C.mx_call), C.mx_code)) // before transfers, none of which has ended well
	}
	for i := range n {
		switch ev := &C.mx_events[i]; ev.kind {
		case C.MX_CAME:
			s.Came(int(ev.source), unsafe.Slice((*byte)(ev.bytes), ev.length))
		case C.MX_TRANSFER:
			s.Ended(uint64(ev.id), int(ev.length), ev.lost != 0)
		}
	}
	told := pollNative(s)
	return n > 0 || told, C.mx_news_of_death != 0
}

func (s *shim) Failed() ([]int, error) {
	return ranks(s.size, "MPIX_Comm_get_failed", func(all, n *C.int) C.int {
		return C.mx_failed(all, C.int(s.size), n)
	})
}

func (*shim) Lost(process int) { C.mx_lost(C.int(process)) }

// Desert does nothing: MPI_Finalize would wait for the others.
func (*shim) Desert() {}

func (*shim) Send(to int, h node.Header, rest []byte) error {
	n := C.int(h.Encode((*[node.HeaderLength]byte)(unsafe.Pointer(&C.mx_header))))
	if len(rest) == 0 {
		return result("MPI_Isend", C.mx_send(C.int(to), n, nil, 0))
	}
	// In this form cgo checks only the bytes for pointers, not the object that they are part of.
	return result("MPI_Isend", C.mx_send(C.int(to), n, unsafe.Pointer(&rest[0]), C.int(len(rest))))
}

func (*shim) Transfer(send bool, peer int, tag uint32, bytes []byte, id uint64) (dead bool, err error) {
	call := "MPI_Irecv"
	if send {
		call = "MPI_Isend"
	}
	var code, isLost C.int
	if len(bytes) == 0 {
		code = C.mx_body(flag(send), C.int(peer), C.int(tag), nil, 0, C.uint64_t(id), &isLost)
	} else {
		code = C.mx_body(flag(send), C.int(peer), C.int(tag), unsafe.Pointer(&bytes[0]), C.int64_t(len(bytes)), C.uint64_t(id), &isLost)
	}
	return isLost != 0, result(call, code)
}

func (*shim) Requests() int { return int(C.mx_underway()) + requestsNative() }

func (*shim) Leave(mortal bool) error {
	return result("MPI_Finalize", C.mx_leave(flag(mortal)))
}

func (*shim) EverybodyLeft() (bool, error) {
	var all C.int
	err := result("MPI_Finalize", C.mx_left(&all))
	return all != 0, err
}

func (*shim) Finalize(dead bool) error {
	return result("MPI_Finalize", C.mx_stop(flag(dead)))
}

func (*shim) Kill() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}
