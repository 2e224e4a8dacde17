"""The rows of c/bench.c that mpi4py has, with buffers that Python does not pickle: `bench.py ROW BYTES` under
mpirun prints times in nanoseconds, one per line."""

import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, peer = world.Get_rank(), 1 - world.Get_rank()
row, size = sys.argv[1], int(sys.argv[2])


def pingpong(times=2000):
    buf = bytearray(size)
    for _ in range(times):
        for turn in range(2):
            if rank == turn:
                world.Send([buf, MPI.BYTE], peer)
            else:
                world.Recv([buf, MPI.BYTE], peer)
    return times


def stream(windows=50, window=64):
    buf, answer = bytearray(window * size), bytearray(4)
    parts = [memoryview(buf)[k * size : (k + 1) * size] for k in range(window)]
    for _ in range(windows):
        if rank == 0:
            MPI.Request.Waitall([world.Isend([p, MPI.BYTE], peer) for p in parts])
            world.Recv([answer, MPI.BYTE], peer)
        else:
            MPI.Request.Waitall([world.Irecv([p, MPI.BYTE], peer) for p in parts])
            world.Send([answer, MPI.BYTE], peer)
    return windows * window


once = {"pingpong": pingpong, "stream": stream}[row]
for sample in range(-3, 21):
    world.Barrier()
    start = time.perf_counter_ns()
    n = once()
    if sample >= 0 and rank == 0:
        print((time.perf_counter_ns() - start) // n)
