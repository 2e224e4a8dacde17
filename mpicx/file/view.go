package file

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// A View says which elements of the file are this rank's: a block of an n-dimensional array that
// is in the file in row-major order (MPI_File_set_view, with a type of MPI_Type_create_subarray).
// The zero value is the whole file.
type View struct {
	Displacement int64 // of the array in the file, in bytes
	Sizes        []int // of the array, in elements, by dimension
	Subsizes     []int // of this rank's block
	Starts       []int // where the block begins in the array
}

// SetView sets this rank's view, for operations that begin later: a position is then a number of
// elements in the block.
func (f *File) SetView(v View) error {
	if err := v.check(); err != nil {
		return fmt.Errorf("file: SetView of %s: %w", f.name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = View{v.Displacement, slices.Clone(v.Sizes), slices.Clone(v.Subsizes), slices.Clone(v.Starts)}
	return nil
}

func (v View) check() error {
	switch n := len(v.Sizes); {
	case v.Displacement < 0:
		return fmt.Errorf("displacement %d, expected at least 0", v.Displacement)
	case len(v.Subsizes) != n, len(v.Starts) != n:
		return fmt.Errorf("%d sizes, %d subsizes and %d starts, expected as many of each", n, len(v.Subsizes), len(v.Starts))
	}
	all := int64(1)
	for i, size := range v.Sizes {
		if v.Subsizes[i] < 0 || v.Starts[i] < 0 || v.Starts[i] > size-v.Subsizes[i] {
			return fmt.Errorf("dimension %d: %d elements from %d of %d, expected some inside of it", i, v.Subsizes[i], v.Starts[i], size)
		}
		if size > 0 && all > math.MaxInt64/int64(size) {
			return fmt.Errorf("an array of %v elements, expected at most 2^63", v.Sizes)
		}
		all *= int64(size)
	}
	return nil
}

// A span is a part of the file, in bytes.
type span struct{ At, Len int64 }

func (s span) end() int64 { return s.At + s.Len }

// spans returns where n elements of size bytes are in the file, from position at of the view on.
func (v View) spans(at int64, n, size int) (iter.Seq[span], error) {
	run, rows := v.rows()
	total := run
	for _, r := range rows {
		total *= int64(r)
	}
	switch last := at + int64(n); {
	case at < 0, last < at:
		return nil, fmt.Errorf("position %d, expected one in the file", at)
	case v.Sizes != nil && last > total:
		return nil, fmt.Errorf("elements %d to %d of a view of %d", at, last, total)
	case size > 0 && last > (math.MaxInt64-v.Displacement)/int64(size): // the array may be larger than the block
		return nil, fmt.Errorf("elements up to %d of %d bytes, expected at most 2^63 bytes", last, size)
	case v.Sizes == nil || n == 0:
		return slices.Values([]span{{v.Displacement + at*int64(size), int64(n) * int64(size)}}), nil
	}
	return func(yield func(span) bool) {
		for end := at + int64(n); at < end; {
			row, skip := at/run, at%run
			count := min(run-skip, end-at)
			if !yield(span{v.Displacement + (v.start(row, len(rows))+skip)*int64(size), count * int64(size)}) {
				return
			}
			at += count
		}
	}, nil
}

// rows returns how many elements of the block are next to each other in the file, and the sizes of
// the block in the dimensions in which it consists of several such runs.
func (v View) rows() (run int64, sizes []int) {
	run = 1
	d := len(v.Sizes)
	for d > 0 {
		d--
		run *= int64(v.Subsizes[d])
		if v.Subsizes[d] < v.Sizes[d] {
			break
		}
	}
	return run, v.Subsizes[:d]
}

// start returns where a run begins in the array. The runs are numbered in order over the first
// dims dimensions.
func (v View) start(row int64, dims int) int64 {
	at, stride := int64(0), int64(1)
	for d := len(v.Sizes) - 1; d >= 0; d-- {
		i := int64(v.Starts[d])
		if d < dims {
			i += row % int64(v.Subsizes[d])
			row /= int64(v.Subsizes[d])
		}
		at += i * stride
		stride *= int64(v.Sizes[d])
	}
	return at
}
