package file_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/file"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

const create = os.O_CREATE | os.O_RDWR

// with runs fn with a file that all ranks have opened, and closes it.
func with(t *testing.T, ranks int, name string, fn func(ctx context.Context, c *mpicx.Comm, f *file.File) error) {
	t.Helper()
	mpicxtest.Run(t, ranks, func(ctx context.Context, c *mpicx.Comm) error {
		f := open(ctx, c, name)
		defer f.Release()
		if err := fn(ctx, c, f); err != nil {
			return err
		}
		return f.Close().Wait(ctx)
	})
}

// open opens a file. No rank is in Open any more when another fails.
func open(ctx context.Context, c *mpicx.Comm, name string) (f *file.File) {
	mpicx.Throw(c.TryAll(ctx, func(ctx context.Context) (err error) {
		f, err = file.Open(ctx, c, name, create, 0o666)
		return err
	}))
	return f
}

func temporary(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }

// Blocks of arrays of one to three dimensions, divided into ranks in random ways and written in
// pieces alone or together, make up the array; and are read again.
func TestBlocks(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		ranks, dims := 1+r.IntN(5), 1+r.IntN(3)
		sizes := make([]int, dims)
		total := 1
		for d := range sizes {
			sizes[d] = 1 + r.IntN(40)
			total *= sizes[d]
		}
		cut := r.IntN(dims) // the dimension that is divided
		backwards := r.IntN(2) == 0
		cuts := []int{0, sizes[cut]}
		for range ranks - 1 {
			cuts = append(cuts, r.IntN(sizes[cut]+1))
		}
		slices.Sort(cuts)
		displacement, together := int64(r.IntN(100)), r.IntN(2) == 0
		name := temporary(t)
		with(t, ranks, name, func(ctx context.Context, c *mpicx.Comm, f *file.File) error {
			v := file.View{Displacement: displacement, Sizes: sizes, Subsizes: slices.Clone(sizes), Starts: make([]int, dims)}
			part := c.Rank()
			if backwards {
				part = ranks - 1 - part
			}
			v.Starts[cut], v.Subsizes[cut] = cuts[part], cuts[part+1]-cuts[part]
			block := blockOf(v)
			mpicx.Throw(f.SetView(v))
			if together {
				mpicx.Throw(file.WriteAll(f, 0, block).Wait(ctx))
			} else {
				half := len(block) / 2
				second := file.Write(f, int64(half), block[half:])
				mpicx.Throw(file.Write(f, 0, block[:half]).Wait(ctx))
				require.Equal(t, len(block)-half, second.MustGet(ctx))
			}
			mpicx.Throw(f.Sync().Wait(ctx))
			got := make([]int32, len(block))
			if together {
				require.Equal(t, len(block), file.Read(f, 0, got).MustGet(ctx))
			} else {
				mpicx.Throw(file.ReadAll(f, 0, got).Wait(ctx))
			}
			require.Equal(t, block, got)
			return nil
		})
		all, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Len(t, all, int(displacement)+4*total)
		for i := range total {
			require.EqualValues(t, i, binary.NativeEndian.Uint32(all[int(displacement)+4*i:]), "seed %d, element %d", seed, i)
		}
	}
}

// blockOf returns the numbers, in the whole array, of the elements of a block.
func blockOf(v file.View) []int32 {
	block := []int32{0}
	for d, size := range v.Sizes {
		var next []int32
		for _, b := range block {
			for i := range v.Subsizes[d] {
				next = append(next, b*int32(size)+int32(v.Starts[d]+i))
			}
		}
		block = next
	}
	return append([]int32{}, block...)
}

// Columns of many MiB, of all ranks in turn, go through several rounds.
func TestColumns(t *testing.T) {
	const ranks, column, columns = 4, 5000, 2100
	name := temporary(t)
	with(t, ranks, name, func(ctx context.Context, c *mpicx.Comm, f *file.File) error {
		mpicx.Throw(f.SetView(file.View{Sizes: []int{columns, ranks, column}, Subsizes: []int{columns, 1, column}, Starts: []int{0, ranks - 1 - c.Rank(), 0}}))
		own := slices.Repeat([]byte{byte('a' + ranks - 1 - c.Rank())}, columns*column)
		mpicx.Throw(errors.Join(file.WriteAll(f, 0, own).Wait(ctx), file.ReadAll(f, 0, own).Wait(ctx)))
		got, err := os.ReadFile(name)
		mpicx.Throw(err)
		require.Len(t, got, ranks*column*columns)
		for i := 0; i < len(got); i += column {
			require.Equal(t, strings.Repeat(string('a'+rune(i/column%ranks)), column), string(got[i:i+column]))
		}
		mpicx.Throw(c.Barrier().Wait(ctx))
		mpicx.Throw(f.SetView(file.View{})) // and what one rank has alone
		return file.WriteAll(f, 0, slices.Repeat([]byte("d"), []int{ranks * column * columns, 1, 1, 0}[c.Rank()])).Wait(ctx)
	})
	all, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Len(t, all, ranks*column*columns)
	require.Equal(t, len(all), strings.Count(string(all), "d"))
}

// Where the pieces of two ranks overlap, one of them is written.
func TestOverlap(t *testing.T) {
	name := temporary(t)
	require.NoError(t, os.WriteFile(name, []byte("what was there before"), 0o666))
	mpicxtest.Run(t, 2, func(ctx context.Context, c *mpicx.Comm) error {
		f, err := file.Open(ctx, c, name, create|os.O_TRUNC, 0o666)
		mpicx.Throw(err)
		defer f.Release()
		_, err = file.Open(ctx, c, name, create|os.O_EXCL, 0o666)
		require.ErrorIs(t, err, fs.ErrExist)
		piece := []string{"0123456789", "abc"}[c.Rank()]
		return errors.Join(file.WriteAll(f, int64(4*c.Rank()), []byte(piece)).Wait(ctx), f.Close().Wait(ctx))
	})
	all, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, []string{"0123456789", "0123abc789"}, string(all))
	fresh := filepath.Join(t.TempDir(), "fresh")
	mpicxtest.Run(t, 3, func(ctx context.Context, c *mpicx.Comm) error {
		f, err := file.Open(ctx, c, fresh, create|os.O_EXCL, 0o666) // by rank 0 alone
		f.Release()
		return err
	})
}

// An error of the system at one rank is one of the next Sync, or of the collective call, at all
// ranks.
func TestErrorsOfTheSystem(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no device is full here")
	}
	full := func(t *testing.T, err error, op string, rank int) {
		e, ok := errors.AsType[*file.Error](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, []any{op, rank}, []any{e.Op, e.Rank})
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "no space left on device")
	}
	mpicxtest.Run(t, 3, func(ctx context.Context, c *mpicx.Comm) error {
		f, err := file.Open(ctx, c, "/dev/full", os.O_WRONLY, 0)
		mpicx.Throw(err)
		defer f.Release()
		full(t, file.WriteAll(f, 0, []byte("x")).Wait(ctx), "WriteAll", 0)
		if c.Rank() == 2 {
			require.ErrorIs(t, file.Write(f, 5, []byte("x")).Wait(ctx), syscall.ENOSPC)
		}
		full(t, f.Sync().Wait(ctx), "Sync", 2)
		_, err = file.Open(ctx, c, filepath.Join(t.TempDir(), "none"), os.O_RDONLY, 0)
		require.ErrorIs(t, err, fs.ErrNotExist)
		return c.Barrier().Wait(ctx)
	})
	name := temporary(t)
	with(t, 3, name, func(ctx context.Context, c *mpicx.Comm, f *file.File) error {
		err := file.ReadAll(f, 0, make([]byte, c.Rank())).Wait(ctx)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, "file: ReadAll of "+name+" at rank 1: ")
		require.Zero(t, file.Read(f, 0, []int{0}).MustGet(ctx))
		return nil
	})
}

// An error of the program ends what was begun before, and the file works on.
func TestErrorsOfTheProgram(t *testing.T) {
	with(t, 3, temporary(t), func(ctx context.Context, c *mpicx.Comm, f *file.File) error {
		err := c.TryAll(ctx, func(ctx context.Context) error {
			if c.Rank() == 1 {
				return errors.New("diverged")
			}
			f.Sync() // for which rank 1 does not come
			file.Write(f, 0, []byte("lost"))
			return file.WriteAll(f, 0, []byte("lost")).Wait(ctx)
		})
		require.ErrorContains(t, err, "diverged")
		mpicx.Throw(file.WriteAll(f, int64(c.Rank()), []byte{byte('0' + c.Rank())}).Wait(ctx))
		mpicx.Throw(f.Sync().Wait(ctx))
		got := make([]byte, 4)
		n, err := f.ReadAt(got, 0)
		require.Equal(t, "3 012 EOF", fmt.Sprintf("%d %s %v", n, got[:n], err))
		return nil
	})
}

// A death is told by the next Sync, at all living ranks.
func TestDeath(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	for _, handler := range []mpicx.Errhandler{mpicx.ErrorsReturn, mpicx.ErrorsPropagate} {
		name := temporary(t)
		mpicxtest.Run(t, 4, func(ctx context.Context, c *mpicx.Comm) error {
			c.SetErrhandler(handler)
			f, err := file.Open(ctx, c, name, create, 0o666)
			mpicx.Throw(err)
			defer f.Release()
			file.Write(f, int64(c.Rank()), []byte("x"))
			if c.Rank() == 2 {
				for _, r := range []int{0, 1, 3} { // they have left Open
					mpicx.Throw(mpicx.Recv(c, []int{0}, r, 0).Wait(ctx))
				}
				mpicxtest.Die(c)
			}
			mpicx.Send(c, []int{0}, 2, 0)
			err = f.Sync().Wait(ctx)
			if _, ok := errors.AsType[*mpicx.ProcFailedError](err); handler == mpicx.ErrorsReturn {
				require.True(t, ok, "%v", err)
				require.Equal(t, []int{2}, f.Failed())
				return nil
			}
			k, ok := errors.AsType[*mpicx.CommCorruptedError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, []int{2}, k.Dead)
			return nil
		})
	}
}

// Wherever a rank dies, each Sync ends alike at all that live.
func TestSyncIsUniform(t *testing.T) {
	mpicxtest.NeedsULFM(t)
	dies := func(plan string) bool {
		name, ended := temporary(t), make([]string, 4)
		return len(mpicxtest.RunFaults(t, 4, plan, func(ctx context.Context, c *mpicx.Comm) error {
			c.SetErrhandler(mpicx.ErrorsReturn)
			f, err := file.Open(ctx, c, name, create, 0o666)
			if _, died := errors.AsType[*mpicx.ProcFailedError](err); died {
				return nil
			}
			mpicx.Throw(err)
			defer f.Release()
			for range 3 {
				_, died := errors.AsType[*mpicx.ProcFailedError](f.Sync().Wait(ctx))
				ended[c.Rank()] += fmt.Sprint(died, " ")
			}
			gone, err := c.AgreeFailed().Get(ctx)
			for r := range ended {
				if !slices.Contains(gone, r) {
					require.Equal(t, ended[c.Rank()], ended[r], "ranks %d and %d, %s", c.Rank(), r, plan)
				}
			}
			return err
		})) > 0
	}
	for victim := 1; victim < 4; victim++ {
		for _, moment := range []string{"operation", "background message"} {
			k := 1
			for dies(fmt.Sprintf("kill %d %s %d", victim, map[bool]string{true: "at", false: "in"}[moment == "operation"]+" "+moment, k)) {
				k++
			}
			require.Greater(t, k, 3)
		}
	}
}

// Ranks that are in different calls are told, and the file works on.
func TestMismatch(t *testing.T) {
	with(t, 3, temporary(t), func(ctx context.Context, c *mpicx.Comm, f *file.File) error {
		call := f.Sync
		if c.Rank() == 2 {
			call = func() *future.Future[struct{}] { return file.WriteAll(f, 0, []byte("x")) }
		}
		require.ErrorContains(t, call().Wait(ctx), "file: Sync at rank 0, WriteAll at rank 2, expected the same call at all ranks")
		return f.Sync().Wait(ctx)
	})
}

// The end of the file is the shared pointer.
func TestEndOfTheFile(t *testing.T) {
	const ranks, lines = 4, 20
	name := temporary(t)
	with(t, ranks, name, func(ctx context.Context, c *mpicx.Comm, f *file.File) error {
		mpicx.Throw(f.SetSize(2).Wait(ctx))
		for range 2 {
			mpicx.Throw(file.WriteOrdered(f, slices.Repeat([]byte{byte('0' + c.Rank())}, c.Rank())).Wait(ctx))
		}
		for i := range lines {
			file.WriteShared(f, fmt.Appendf(nil, "\nline %2d of rank %d", i, c.Rank()))
		}
		return nil
	})
	all, err := os.ReadFile(name)
	require.NoError(t, err)
	head, rest, _ := strings.Cut(string(all), "\n")
	require.Equal(t, "\x00\x00122333122333", head)
	seen := strings.Split(rest, "\n")
	slices.Sort(seen)
	require.Len(t, slices.Compact(seen), ranks*lines)
}

func TestBadInput(t *testing.T) {
	name := temporary(t)
	mpicxtest.Run(t, 2, func(ctx context.Context, c *mpicx.Comm) error {
		_, err := file.Open(ctx, c, name, create|os.O_APPEND, 0o666)
		require.ErrorContains(t, err, "with O_APPEND, expected flags without it")
		f, err := file.Open(ctx, c, name, create, 0o666)
		mpicx.Throw(err)
		for want, v := range map[string]file.View{
			"displacement -1, expected at least 0":                            {Displacement: -1},
			"1 sizes, 0 subsizes and 0 starts, expected as many of each":      {Sizes: []int{1}},
			"dimension 0: 3 elements from 2 of 4, expected some inside of it": {Sizes: []int{4}, Subsizes: []int{3}, Starts: []int{2}},
			"an array of [1073741824 1073741824 1073741824] elements, expected at most 2": {
				Sizes: []int{1 << 30, 1 << 30, 1 << 30}, Subsizes: []int{1, 1, 1}, Starts: []int{0, 0, 0},
			},
		} {
			require.ErrorContains(t, f.SetView(v), want)
		}
		mpicx.Throw(f.SetView(file.View{Sizes: []int{10}, Subsizes: []int{4}, Starts: []int{2}}))
		for want, err := range map[string]error{
			"elements 2 to 5 of a view of 4": file.Write(f, 2, make([]int, 3)).Wait(ctx),
			"position -1, expected":          file.Read(f, -1, make([]int, 3)).Wait(ctx),
			"have pointers":                  file.Write(f, 0, []string{""}).Wait(ctx),
		} {
			require.ErrorContains(t, err, want)
		}
		at := int64(3 * c.Rank())
		require.ErrorContains(t, file.WriteAll(f, at, []int{1, 2}).Wait(ctx), "at rank 1: file: WriteAll of "+name+": elements 3 to 5 of a view of 4")
		mpicx.Throw(f.Close().Wait(ctx))
		require.ErrorIs(t, file.Write(f, 0, []int{1}).Wait(ctx), fs.ErrClosed)
		require.ErrorIs(t, f.Sync().Wait(ctx), fs.ErrClosed)
		f.Release()
		return nil
	})
}
