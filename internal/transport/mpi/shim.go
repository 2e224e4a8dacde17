//go:build mpi && cgo

package mpi

// #cgo pkg-config: mpi
// #cgo noescape mx_send
// #cgo nocallback mx_send
// #cgo nocallback mx_poll
// #include "shim.h"
import "C" // nowhere else: the shim's variables are static

import (
	"unsafe"

	"github.com/mpicx/go-mpicx/internal/transport"
)

// MPI as the rest of the package sees it. All calls are made with the
// engine's mu held, or before and after it is in use.

const hasULFM = C.MX_ULFM != 0

// maxText is how long MPI's texts may be.
const maxText = 1024

// result is the error of a call, if it had one.
func result(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	var text [maxText]C.char
	class := C.mx_error(code, &text[0], maxText)
	return &transport.LibraryError{Call: call, Class: int(class), Text: C.GoString(&text[0])}
}

// library says which MPI this is.
func library() string {
	var text [maxText]C.char
	C.mx_library(&text[0], maxText)
	return C.GoString(&text[0])
}

// initialize begins to take part in the job.
func (e *engine) initialize() error {
	var rank, size, enough, ulfm, crowded C.int
	if err := result("MPI_Init_thread", C.mx_start(&rank, &size, &enough, &ulfm, &crowded)); err != nil {
		return err
	}
	if enough == 0 {
		return &transport.LibraryError{Call: "MPI_Init_thread",
			Text: library() + " can't be called from several threads, one at a time: it provides less than MPI_THREAD_SERIALIZED"}
	}
	e.rank, e.size, e.crowded = int(rank), int(size), crowded != 0
	if err := checkLaunch(e.size); err != nil {
		return err
	}
	if e.mortal && ulfm == 0 {
		return noULFM()
	}
	return nil
}

// neighbours returns the processes that can share memory, this one too, in an order
// that they agree on; at most so many in a group, if most is not 0.
func (e *engine) neighbours(most int) ([]int, error) {
	return ranks(e.size, "MPI_Comm_split_type", func(all, n *C.int) C.int {
		return C.mx_near(C.int(most), n, all)
	})
}

// ranks returns what a call stores of at most so many.
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

// fromFirst gives the neighbours what the first of them has in b.
func fromFirst(b []byte) error {
	return result("MPI_Bcast", C.mx_from_first(unsafe.Pointer(&b[0]), C.int(len(b))))
}

// allNear says whether ok is true at all neighbours.
func allNear(ok bool) (bool, error) {
	var all C.int
	if ok {
		all = 1
	}
	err := result("MPI_Allreduce", C.mx_all_near(&all))
	return all != 0, err
}

// allHere waits until all processes have called it, where they may die afterwards.
func allHere() error { return result("MPIX_Comm_agree", C.mx_all_here()) }

// poll moves messages, up to so many times until something happens, and takes what
// did.
func (e *engine) poll(times int) (happened bool) {
	n := C.mx_poll(C.int(times))
	if C.mx_code != 0 {
		e.fail(result(C.GoString(C.mx_call), C.mx_code)) // first: no body has ended as it should
	}
	for i := range n {
		switch ev := &C.mx_events[i]; ev.kind {
		case C.MX_CAME:
			e.came(int(ev.source), unsafe.Slice((*byte)(ev.bytes), ev.length))
		case C.MX_BODY:
			e.ended(uint64(ev.id), int(ev.length), ev.lost != 0)
		}
	}
	died := C.mx_news_of_death != 0
	if died {
		e.mourn()
	}
	return n > 0 || died
}

// failed returns the processes that MPI has lost so far.
func (e *engine) failed() ([]int, error) {
	return ranks(e.size, "MPIX_Comm_get_failed", func(all, n *C.int) C.int {
		return C.mx_failed(all, C.int(e.size), n)
	})
}

// sendFar sends a packet by MPI.
func sendFar(to int, h *head, rest []byte) error {
	h.encode((*[headLength]byte)(unsafe.Pointer(&C.mx_head)))
	if len(rest) == 0 {
		return result("MPI_Isend", C.mx_send(C.int(to), nil, 0))
	}
	// In this form cgo looks for pointers in the bytes alone, not in what they are part of.
	return result("MPI_Isend", C.mx_send(C.int(to), unsafe.Pointer(&rest[0]), C.int(len(rest))))
}

// begin begins to send or receive a part of a body, pinned: poll will take its end,
// unless the peer is lost already.
func begin(send bool, peer int, tag uint32, part []byte, id uint64) (lost bool, err error) {
	call, sends := "MPI_Irecv", C.int(0)
	if send {
		call, sends = "MPI_Isend", 1
	}
	var code, isLost C.int
	if len(part) == 0 {
		code = C.mx_body(sends, C.int(peer), C.int(tag), nil, 0, C.uint64_t(id), &isLost)
	} else {
		code = C.mx_body(sends, C.int(peer), C.int(tag), unsafe.Pointer(&part[0]), C.int(len(part)), C.uint64_t(id), &isLost)
	}
	return isLost != 0, result(call, code)
}

// requests is how many of this process MPI has, but for the receives of packets.
func requests() int { return int(C.mx_underway()) }

// leave says that this process needs the others no more; everybodyLeft, whether all
// have said so.
func (e *engine) leaveJob() error {
	var mortal C.int
	if e.mortal {
		mortal = 1
	}
	return result("MPI_Finalize", C.mx_leave(mortal))
}

func everybodyLeft() (bool, error) {
	var all C.int
	err := result("MPI_Finalize", C.mx_left(&all))
	return all != 0, err
}

// finalize ends MPI.
func (e *engine) finalize() error {
	var lost C.int
	if e.losses > 0 {
		lost = 1
	}
	return result("MPI_Finalize", C.mx_stop(lost))
}
