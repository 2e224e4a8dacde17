//go:build mpi && cgo

// Guest is a program that initializes MPI itself, for test-mpi. Package mpicx then must not
// finalize MPI. Its argument says how it initializes MPI.
package main

// #cgo pkg-config: mpi
// #include <mpi.h>
// #include <stdlib.h>
//
// static int seen; // errors that came to the program's handler
//
// static void count(MPI_Comm *comm, int *code, ...) { seen++; }
//
// static MPI_Errhandler mine;
//
// static int begin(int level) {
//	int provided, code = level < 0 ? MPI_Init(NULL, NULL) : MPI_Init_thread(NULL, NULL, level, &provided);
//	MPI_Comm_create_errhandler(count, &mine);
//	MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
//	MPI_Comm_set_errhandler(MPI_COMM_SELF, mine);
//	return code;
// }
//
// // works says whether MPI adds up, and whether its errors come to the program.
// static int works(void) {
//	int one = 1, sum = 0, size, before = seen;
//	MPI_Comm_size(MPI_COMM_WORLD, &size);
//	if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS || sum != size) return 0;
//	MPI_Send(&one, 1, MPI_INT, size, 0, MPI_COMM_WORLD); // there is no such rank
//	MPI_Send(&one, 1, MPI_INT, 1, 0, MPI_COMM_SELF);
//	return seen == before + 2;
// }
//
// static int serialized(void) { return MPI_THREAD_SERIALIZED; }
// static int multiple(void) { return MPI_THREAD_MULTIPLE; }
import "C"

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx"
)

func main() {
	level, want := C.int(-1), ""
	switch how := os.Args[1]; how {
	case "serialized":
		level = C.serialized()
	case "multiple":
		level = C.multiple()
	case "plain":
		want = "the program has begun MPI with MPI_THREAD_SINGLE, expected MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"
	case "ended":
		want = "the program has ended MPI"
	default:
		log.Fatalf("%q, expected serialized, multiple, plain or ended", how)
	}
	if C.begin(level) != 0 {
		log.Fatal("MPI_Init")
	}
	check("before")
	if os.Args[1] == "ended" {
		C.MPI_Finalize()
	}
	times := 3
	if want != "" { // no second try after a failure
		times = 1
	}
	for range times {
		if err := both(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			log.Fatalf("%v, expected %q", err, want)
		}
		check("after")
	}
	if os.Args[1] != "ended" && C.MPI_Finalize() != 0 {
		log.Fatal("MPI_Finalize")
	}
	fmt.Println("guest: ok")
	C.exit(0) // Go's exit does not run C's exit handlers, and MPICH 4.2 reports the end of MPI to mpirun there
}

// check checks that MPI still works as the program has set it up.
func check(when string) {
	if os.Args[1] != "ended" || when == "before" {
		if C.works() == 0 {
			log.Fatalf("MPI does not work as the program has it, %s", when)
		}
	}
}

// both uses an Instance, with a Run inside it and a Run after it.
func both() error {
	ctx := context.Background()
	i, err := mpicx.Initialize(ctx)
	if err != nil {
		return err
	}
	return errors.Join(traffic(ctx, i.World()), mpicx.Run(ctx, traffic), i.Finalize(ctx), mpicx.Run(ctx, traffic))
}

// traffic sends short and long messages around, and signals an error after each.
func traffic(ctx context.Context, world *mpicx.Comm) error {
	n := world.Size()
	for _, length := range []int{1, 1 << 20} {
		right, left := (world.Rank()+1)%n, (world.Rank()+n-1)%n
		sent := mpicx.Send(world, make([]byte, length), right, 1)
		b, err := mpicx.RecvSlice[byte](world, left, 1).Get(ctx)
		if err = errors.Join(err, sent.Wait(ctx)); err != nil || len(b) != length {
			return fmt.Errorf("%d bytes, expected %d: %w", len(b), length, err)
		}
		if err = world.Barrier().Wait(ctx); err == nil { // otherwise another rank's error came first
			err = world.SignalError(ctx, 7)
		}
		if _, ok := errors.AsType[*mpicx.PropagatedError](err); !ok {
			return fmt.Errorf("%w came of SignalError", err)
		}
	}
	return nil
}
