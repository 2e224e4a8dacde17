package contract

import (
	"context"
	"errors"
	"go/build"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// What is promised to users, name by name. It compiles as long as nothing of it has
// changed: an assignment allows a new name, never another signature.
var (
	_ func(context.Context, func(context.Context, *mpicx.Comm) error, ...mpicx.Option) error = mpicx.Run
	_ func(int) mpicx.Option                                                                 = mpicx.WithRanks
	_ func(int) mpicx.Option                                                                 = mpicx.WithSpares
	_ func() mpicx.Option                                                                    = mpicx.WithRespawn
	_ func(string) mpicx.Option                                                              = mpicx.WithTimeline
	_ func() mpicx.Option                                                                    = mpicx.WithRuntimeTrace
	_ func(*slog.Logger) mpicx.Option                                                        = mpicx.WithLogger
	_ func(*mpicx.Comm, string)                                                              = (*mpicx.Comm).Mark
	_ func() mpicx.Option                                                                    = mpicx.WithDeadlockError
	_ func(mpicx.Detector) mpicx.Option                                                      = mpicx.WithDetector
	_ mpicx.Detector                                                                         = mpicx.Ring{Period: time.Duration(0), Timeout: time.Duration(0)}
	_ mpicx.Detector                                                                         = mpicx.Ping{Period: time.Duration(0), Timeout: time.Duration(0)}
	_ func(context.Context, ...mpicx.Option) (*mpicx.Instance, error)                        = mpicx.Initialize
	_ func(*mpicx.Instance) *mpicx.Comm                                                      = (*mpicx.Instance).World
	_ func(*mpicx.Instance, context.Context) error                                           = (*mpicx.Instance).Finalize

	// Errors across ranks.
	_ func(*mpicx.Comm, context.Context, int) error   = (*mpicx.Comm).SignalError
	_ func(*mpicx.Comm, context.Context, error) error = (*mpicx.Comm).Signal
	_ scope                                           = (*mpicx.Comm).Try
	_ scope                                           = (*mpicx.Comm).TryAll
	_ scope                                           = (*mpicx.Comm).Guard
	_ func(*mpicx.Comm) error                         = (*mpicx.Comm).Err
	_ func(error)                                     = mpicx.Throw

	// A program that hangs.
	_ func(*mpicx.Comm, context.Context) (*mpicx.Diagnosis, error) = (*mpicx.Comm).Diagnose
	_                                                              = mpicx.Diagnosis{Groups: []mpicx.DiagnosisGroup{{Ranks: []int(nil), Doing: string("")}}, Dead: []int(nil), NoAnswer: []int(nil), Differs: int(0)}
	_                                                              = mpicx.DeadlockError{Diagnosis: (*mpicx.Diagnosis)(nil)}
	_ func(*mpicx.Diagnosis) string                                = (*mpicx.Diagnosis).String

	_ = mpicx.Failure{Rank: int(0), Code: int(0), Message: string("")}
	_ = mpicx.PropagatedError{Failures: []mpicx.Failure(nil)}
	_ = mpicx.CommCorruptedError{Failures: []mpicx.Failure(nil), Dead: []int(nil)}
	_ = mpicx.MPIError{Op: string(""), Class: mpicx.Class(0), Text: string("")}
	_ = mpicx.PanicError{Rank: int(0), Value: any(nil), Stack: []byte(nil)}
	_ = mpicx.ProcFailedError{Ranks: []int(nil)}
	_ = mpicx.Status{Source: int(0), Tag: int(0), Count: int(0)}
	_ = mpicx.Received[string]{Value: string(""), Status: mpicx.Status{}}
	_ = mpicx.Message{Source: int(0), Tag: int(0), Bytes: int(0)}
	_ = future.Thrown{Err: error(nil)}

	_ func(*mpicx.MPIError) int = (*mpicx.MPIError).ErrorCode

	// Errors are errors as they stand here: that is what errors.AsType asks for.
	_ = []error{
		(*mpicx.PropagatedError)(nil), (*mpicx.CommCorruptedError)(nil), (*mpicx.MPIError)(nil), (*mpicx.PanicError)(nil), (*mpicx.DeadlockError)(nil),
		(*mpicx.ProcFailedError)(nil), mpicx.ErrRevoked, mpicx.ErrProcFailedPending, mpicx.ErrFenced, mpicx.ErrCancelled, future.Thrown{},
	}

	// Communicators, and ULFM.
	_ func(*mpicx.Comm) int                                               = (*mpicx.Comm).Rank
	_ func(*mpicx.Comm) int                                               = (*mpicx.Comm).Size
	_ func(*mpicx.Comm) *future.Future[*mpicx.Comm]                       = (*mpicx.Comm).Dup
	_ func(_ *mpicx.Comm, color, key int) *derived                        = (*mpicx.Comm).Split
	_ func(_ *mpicx.Comm, key int) *derived                               = (*mpicx.Comm).SplitShared
	_ func(*mpicx.Comm, context.Context) error                            = (*mpicx.Comm).Close
	_ func(*mpicx.Comm, context.Context) error                            = (*mpicx.Comm).Revoke
	_ func(*mpicx.Comm) bool                                              = (*mpicx.Comm).Revoked
	_ func(_ *mpicx.Comm, flag int) *future.Future[int]                   = (*mpicx.Comm).Agree
	_ func(*mpicx.Comm) *future.Future[[]int]                             = (*mpicx.Comm).AgreeFailed
	_ func(*mpicx.Comm) *derived                                          = (*mpicx.Comm).Shrink
	_ func(*mpicx.Comm) []int                                             = (*mpicx.Comm).Failed
	_ func(_ *mpicx.Comm, n int) int                                      = (*mpicx.Comm).AckFailed
	_ func(*mpicx.Comm, mpicx.Errhandler)                                 = (*mpicx.Comm).SetErrhandler
	_ func(*mpicx.Comm, io.Writer) io.WriteCloser                         = (*mpicx.Comm).Output
	_ func(*mpicx.Comm, context.Context, io.Writer, string, ...any) error = (*mpicx.Comm).Fprintf
	_ func(*mpicx.Comm) mpicx.Errhandler                                  = (*mpicx.Comm).Errhandler
	_ func(a, b mpicx.Loc[float64]) mpicx.Loc[float64]                    = mpicx.MinLoc[float64]
	_ func(a, b mpicx.Loc[string]) mpicx.Loc[string]                      = mpicx.MaxLoc[string]
	_                                                                     = mpicx.Loc[int]{Value: int(0), Index: int(0)}
	_                                                                     = []mpicx.Errhandler{mpicx.ErrorsPropagate, mpicx.ErrorsReturn}
	_                                                                     = []int{mpicx.Undefined, mpicx.AnySource, mpicx.AnyTag, mpicx.ProcNull}
	_                                                                     = []mpicx.Op{mpicx.Sum, mpicx.Prod, mpicx.Max, mpicx.Min, mpicx.LAnd, mpicx.BAnd, mpicx.LOr, mpicx.BOr, mpicx.LXor, mpicx.BXor}
	_ func(*mpicx.Comm) *future.Future[struct{}]                          = (*mpicx.Comm).Barrier
	_ func(_ *mpicx.Comm, source, tag int) *future.Future[*mpicx.Message] = (*mpicx.Comm).Mprobe
	_ func(*mpicx.Persistent) status                                      = (*mpicx.Persistent).Start
	_ func(testing.TB, int, func(context.Context, *mpicx.Comm) error)     = mpicxtest.Run
	_ func(*mpicx.Comm)                                                   = mpicxtest.Die
	_ func(testing.TB)                                                    = mpicxtest.NeedsULFM
)

var (
	_ func(_ testing.TB, ranks int, plan string, fn func(context.Context, *mpicx.Comm) error, opts ...mpicx.Option) []int = mpicxtest.RunFaults
	_ func(_ *testing.T, ranks int, fn func(context.Context, *mpicx.Comm) error, opts ...mpicx.Option)                    = mpicxtest.EveryDeath
)

type (
	scope   = func(*mpicx.Comm, context.Context, func(context.Context) error) error
	derived = future.Future[*mpicx.Comm]
	done    = *future.Future[struct{}]
	status  = *future.Future[mpicx.Status]

	received[T any] = future.Future[mpicx.Received[T]]
)

// buffers is what operations on buffers promise, for each element type. What movers promises for
// every type is not repeated.
type buffers[T mpicx.Scalar] struct{}

func (buffers[T]) promised() {
	var (
		_ func(_ *mpicx.Comm, source, tag int) *received[[]T]                      = mpicx.RecvSliceStatus[T]
		_ func(_ *mpicx.Comm, send []T, to, tag int, recv []T, from, t int) status = mpicx.Sendrecv[T, T]
		_ func(_ *mpicx.Message, buf []T) status                                   = mpicx.Mrecv[T]
		_ func(*mpicx.Message) *future.Future[[]T]                                 = mpicx.MrecvSlice[T]
		_ func(_ *mpicx.Comm, buf []T, dest, tag int) *mpicx.Persistent            = mpicx.SendInit[T]
		_ func(_ *mpicx.Comm, buf []T, dest, tag int) *mpicx.Persistent            = mpicx.SsendInit[T]
		_ func(_ *mpicx.Comm, buf []T, source, tag int) *mpicx.Persistent          = mpicx.RecvInit[T]
		_ func(_ *mpicx.Comm, send, recv []T, op mpicx.Op, root int) done          = mpicx.Reduce[T]
		_ func(_ *mpicx.Comm, send, recv []T, op mpicx.Op) done                    = mpicx.Allreduce[T]
		_ func(_ *mpicx.Comm, send, recv []T, op mpicx.Op) done                    = mpicx.Scan[T]
		_ func(_ *mpicx.Comm, send, recv []T, op mpicx.Op) done                    = mpicx.Exscan[T]
		_ func(_ *mpicx.Comm, send, recv []T, counts []int, op mpicx.Op) done      = mpicx.ReduceScatter[T]
		_ func(_ *mpicx.Comm, send, recv []T, op mpicx.Op) done                    = mpicx.ReduceScatterBlock[T]
		_ func(_ *mpicx.Comm, send, recv []T, counts []int, root int) done         = mpicx.Gatherv[T]
		_ func(_ *mpicx.Comm, send []T, counts []int, recv []T, root int) done     = mpicx.Scatterv[T]
		_ func(_ *mpicx.Comm, send, recv []T, counts []int) done                   = mpicx.Allgatherv[T]
	)
}

// values is what operations on values of any type promise.
type values[T any] struct{}

func (values[T]) promised() {
	type binary = func(a, b T) T
	var (
		_ func(_ *mpicx.Comm, v T, dest, tag int) status                    = mpicx.SendValue[T]
		_ func(_ *mpicx.Comm, source, tag int) *future.Future[T]            = mpicx.RecvValue[T]
		_ func(_ *mpicx.Comm, source, tag int) *received[T]                 = mpicx.RecvValueStatus[T]
		_ func(*mpicx.Message) *future.Future[T]                            = mpicx.MrecvValue[T]
		_ func(*future.Future[T]) bool                                      = mpicx.Cancel[T]
		_ func(_ *mpicx.Comm, v T, root int) *future.Future[T]              = mpicx.BcastValue[T]
		_ func(_ *mpicx.Comm, v T, root int) *future.Future[[]T]            = mpicx.GatherValue[T]
		_ func(_ *mpicx.Comm, v T) *future.Future[[]T]                      = mpicx.AllgatherValue[T]
		_ func(_ *mpicx.Comm, send, recv []T, op binary) done               = mpicx.AllreduceFunc[T]
		_ func(_ *mpicx.Comm, send, recv []T, op binary, root int) done     = mpicx.ReduceFunc[T]
		_ func(_ *mpicx.Comm, send, recv []T, op binary) done               = mpicx.ScanFunc[T]
		_ func(_ *mpicx.Comm, send, recv []T, op binary) done               = mpicx.ExscanFunc[T]
		_ func(_ *mpicx.Comm, send, recv []T, counts []int, op binary) done = mpicx.ReduceScatterFunc[T]

		_ func(_ *mpicx.Comm, send, recv []T, op binary) done             = mpicx.ReduceScatterBlockFunc[T]
		_ func(_ *mpicx.Comm, v T, op binary) *future.Future[T]           = mpicx.AllreduceValue[T]
		_ func(_ *mpicx.Comm, v T, op binary, root int) *future.Future[T] = mpicx.ReduceValue[T]
		_ func(_ *mpicx.Comm, v T, op binary) *future.Future[T]           = mpicx.ScanValue[T]
		_ func(_ *mpicx.Comm, v T, op binary) *future.Future[T]           = mpicx.ExscanValue[T]
		_ func(_ *mpicx.Comm, vs []T, root int) *future.Future[T]         = mpicx.ScatterValue[T]

		_ func(*future.Future[T], context.Context) error               = (*future.Future[T]).Wait
		_ func(*future.Future[T], context.Context) (T, error)          = (*future.Future[T]).Get
		_ func(*future.Future[T], context.Context)                     = (*future.Future[T]).MustWait
		_ func(*future.Future[T], context.Context) T                   = (*future.Future[T]).MustGet
		_ func(*future.Future[T]) (bool, error)                        = (*future.Future[T]).Test
		_ func(*future.Future[T]) <-chan struct{}                      = (*future.Future[T]).Done
		_ future.Waiter                                                = (*future.Future[T])(nil)
		_ func(context.Context, ...future.Waiter) error                = future.WaitAll
		_ func(context.Context, ...*future.Future[int]) ([]int, error) = future.GetAll[int]
		_ func(context.Context, ...future.Waiter) (int, error)         = future.WaitAny
	)
}

// movers is what operations that move elements promise for every type without pointers.
type movers[T any] struct{}

func (movers[T]) promised() {
	var (
		_ func(_ *mpicx.Comm, buf []T, dest, tag int) status                     = mpicx.Send[T]
		_ func(_ *mpicx.Comm, buf []T, dest, tag int) status                     = mpicx.Ssend[T]
		_ func(_ *mpicx.Comm, buf []T, source, tag int) status                   = mpicx.Recv[T]
		_ func(_ *mpicx.Comm, source, tag int) *future.Future[[]T]               = mpicx.RecvSlice[T]
		_ func(_ *mpicx.Comm, source, tag int) status                            = mpicx.Probe[T]
		_ func(_ *mpicx.Comm, buf []T, root int) done                            = mpicx.Bcast[T]
		_ func(_ *mpicx.Comm, send, recv []T, root int) done                     = mpicx.Gather[T]
		_ func(_ *mpicx.Comm, send, recv []T, root int) done                     = mpicx.Scatter[T]
		_ func(_ *mpicx.Comm, send, recv []T) done                               = mpicx.Allgather[T]
		_ func(_ *mpicx.Comm, send, recv []T) done                               = mpicx.Alltoall[T]
		_ func(_ *mpicx.Comm, send []T, sends []int, recv []T, recvs []int) done = mpicx.Alltoallv[T]
	)
}

// Every fixed-size integer, float and complex kind, bool, int and uint is a Scalar,
// and so are types made of them.
func TestScalars(t *testing.T) {
	type celsius float64
	for _, b := range []interface{ promised() }{
		buffers[bool]{}, buffers[int]{}, buffers[uint]{}, buffers[celsius]{},
		buffers[int8]{}, buffers[int16]{}, buffers[int32]{}, buffers[int64]{},
		buffers[uint8]{}, buffers[uint16]{}, buffers[uint32]{}, buffers[uint64]{},
		buffers[float32]{}, buffers[float64]{}, buffers[complex64]{}, buffers[complex128]{},
		values[map[string][]int]{}, movers[struct{ X, Y float64 }]{}, neighbors[struct{ X, Y float64 }]{},
	} {
		b.promised()
	}
}

// The build tags choose between these, and nothing else.
func TestChoices(t *testing.T) {
	const backend, transport = mpicx.Backend, mpicx.Transport
	require.Contains(t, []string{"blackchannel", "ulfm"}, backend)
	require.Contains(t, []string{"local", "mpi"}, transport)
}

// These programs are a user's: they import nothing internal.
func TestUsersImports(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if _, none := errors.AsType[*build.NoGoError](err); !none {
		require.NoError(t, err)
	}
	require.NotEmpty(t, p.TestImports)
	for _, path := range p.TestImports {
		require.NotContains(t, path, "/internal/")
	}
}
