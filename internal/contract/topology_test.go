package contract

import (
	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// Groups, grids and graphs.
var (
	_ func(*mpicx.Comm) *mpicx.Group                                                = (*mpicx.Comm).Group
	_ func(*mpicx.Comm, *mpicx.Group) *derived                                      = (*mpicx.Comm).Create
	_ func(*mpicx.Group) int                                                        = (*mpicx.Group).Size
	_ func(*mpicx.Group) int                                                        = (*mpicx.Group).Rank
	_ func(_, _ *mpicx.Group) *mpicx.Group                                          = (*mpicx.Group).Union
	_ func(_, _ *mpicx.Group) *mpicx.Group                                          = (*mpicx.Group).Intersection
	_ func(_, _ *mpicx.Group) *mpicx.Group                                          = (*mpicx.Group).Difference
	_ func(*mpicx.Group, ...int) *mpicx.Group                                       = (*mpicx.Group).Incl
	_ func(*mpicx.Group, ...int) *mpicx.Group                                       = (*mpicx.Group).Excl
	_ func(*mpicx.Group, ...mpicx.Range) *mpicx.Group                               = (*mpicx.Group).RangeIncl
	_ func(*mpicx.Group, ...mpicx.Range) *mpicx.Group                               = (*mpicx.Group).RangeExcl
	_ func(_, _ *mpicx.Group) mpicx.Comparison                                      = (*mpicx.Group).Compare
	_ func(_ *mpicx.Group, ranks []int, to *mpicx.Group) []int                      = (*mpicx.Group).TranslateRanks
	_                                                                               = []mpicx.Comparison{mpicx.Identical, mpicx.Similar, mpicx.Unequal}
	_                                                                               = mpicx.Range{First: int(0), Last: int(0), Stride: int(0)}
	_ func(n int, dims ...int) ([]int, error)                                       = mpicx.DimsCreate
	_ func(_ *mpicx.Comm, dims []int, periods []bool) *future.Future[*mpicx.Cart]   = mpicx.CartCreate
	_ func(_ *mpicx.Cart, remain ...bool) *future.Future[*mpicx.Cart]               = (*mpicx.Cart).Sub
	_ func(*mpicx.Cart) []int                                                       = (*mpicx.Cart).Dims
	_ func(*mpicx.Cart) []bool                                                      = (*mpicx.Cart).Periods
	_ func(_ *mpicx.Cart, rank int) []int                                           = (*mpicx.Cart).Coords
	_ func(_ *mpicx.Cart, coords ...int) int                                        = (*mpicx.Cart).RankOf
	_ func(_ *mpicx.Cart, dim, distance int) (source, dest int)                     = (*mpicx.Cart).Shift
	_ func(_ *mpicx.Cart, dim, n int) (first, count int)                            = (*mpicx.Cart).Block
	_ *mpicx.Comm                                                                   = mpicx.Cart{}.Comm
	_ *mpicx.Comm                                                                   = mpicx.Graph{}.Comm
	_ func(_ *mpicx.Comm, sources, destinations []int) *future.Future[*mpicx.Graph] = mpicx.GraphCreate
	_ func(*mpicx.Graph) []int                                                      = (*mpicx.Graph).Sources
	_ func(*mpicx.Graph) []int                                                      = (*mpicx.Graph).Destinations
	_                                                                               = []mpicx.Neighborhood{(*mpicx.Cart)(nil), (*mpicx.Graph)(nil)}
)

// neighbors are operations on neighbourhoods.
type neighbors[T any] struct{}

func (neighbors[T]) promised() {
	var (
		_ func(_ mpicx.Neighborhood, send, recv []T) done                                          = mpicx.NeighborAllgather[T]
		_ func(_ mpicx.Neighborhood, send, recv []T, counts []int) done                            = mpicx.NeighborAllgatherv[T]
		_ func(_ mpicx.Neighborhood, send, recv []T) done                                          = mpicx.NeighborAlltoall[T]
		_ func(_ mpicx.Neighborhood, send []T, sendCounts []int, recv []T, recvCounts []int) done  = mpicx.NeighborAlltoallv[T]
		_ func(_ *mpicx.Cart, cells []int, width int, corners bool) *future.Future[*mpicx.Halo[T]] = mpicx.NewHalo[T]
		_ func(_ *mpicx.Halo[T], block []T) done                                                   = (*mpicx.Halo[T]).Start
		_ func(*mpicx.Halo[T]) int                                                                 = (*mpicx.Halo[T]).Len
		_ func(*mpicx.Halo[T]) []int                                                               = (*mpicx.Halo[T]).Extent
		_ func(_ *mpicx.Halo[T], coords ...int) int                                                = (*mpicx.Halo[T]).Index
	)
}
