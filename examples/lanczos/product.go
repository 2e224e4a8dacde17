package main

import (
	"context"
	"slices"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/mpicx"
)

// A product is one rank's part of the product of the Hamiltonian and a vector. Each rank has
// consecutive rows, and the same elements of each vector.
//
// A row is interior if the rank has the elements for all twelve neighbours. Otherwise it is on the
// boundary. While the elements of other ranks, the ghosts, are under way, the rank multiplies the
// interior.
type product struct {
	comm               *mpicx.Comm
	rows               int
	energy             []float64
	columns            [][neighbours]int32 // own elements are counted from 0, ghosts from rows; or the constant missing
	interior, boundary []span
	ghosts             []float64
	peers              []peer
	pending            []future.Waiter // reused
}

// A span is the rows from lo to hi-1, counted from the rank's first.
type span struct{ lo, hi int }

// A peer is a rank to exchange elements with.
type peer struct {
	rank   int
	send   []int32 // rows
	packed []float64
	ghosts []float64
}

// haloTag is the tag of messages with ghosts.
const haloTag = 1

// newProduct returns the rank's part, without communication. The Hamiltonian is symmetric: if a row
// of this rank has a column of another rank, a row of the other rank has a column of this one. So a
// rank knows which of its elements others need. All ranks order them by row.
func newProduct(s sheet, comm *mpicx.Comm) *product {
	n, ranks := s.sites(), comm.Size()
	first, end := firstRow(n, ranks, comm.Rank()), firstRow(n, ranks, comm.Rank()+1)
	a := &product{comm: comm, rows: end - first, energy: make([]float64, end-first), columns: make([][neighbours]int32, end-first)}
	sends := make([][]int32, ranks)
	var ghosts []int // sites
	for i := range a.rows {
		a.energy[i] = s.energy(first + i)
		interior := true
		for k, site := range s.neighbours(first + i) {
			if first <= site && site < end {
				a.columns[i][k] = int32(site - first)
				continue
			}
			a.columns[i][k] = missing
			interior = false
			if site == missing {
				continue
			}
			ghosts = append(ghosts, site)
			if to := &sends[ownerOf(n, ranks, site)]; len(*to) == 0 || (*to)[len(*to)-1] != int32(i) {
				*to = append(*to, int32(i))
			}
		}
		if interior {
			a.interior = extend(a.interior, i)
		} else {
			a.boundary = extend(a.boundary, i)
		}
	}
	slices.Sort(ghosts)
	ghosts = slices.Compact(ghosts)
	a.ghosts = make([]float64, len(ghosts))
	for q, send := range sends {
		if len(send) > 0 {
			lo, _ := slices.BinarySearch(ghosts, firstRow(n, ranks, q))
			hi, _ := slices.BinarySearch(ghosts, firstRow(n, ranks, q+1))
			a.peers = append(a.peers, peer{rank: q, send: send, packed: make([]float64, len(send)), ghosts: a.ghosts[lo:hi]})
		}
	}
	for _, b := range a.boundary {
		for i := b.lo; i < b.hi; i++ {
			for k, site := range s.neighbours(first + i) {
				if g, found := slices.BinarySearch(ghosts, site); found {
					a.columns[i][k] = int32(a.rows + g)
				}
			}
		}
	}
	return a
}

// firstRow returns the first row of a rank, of n rows. ownerOf returns the rank that owns a row.
func firstRow(n, ranks, rank int) int { return rank * n / ranks }
func ownerOf(n, ranks, row int) int   { return ((row+1)*ranks - 1) / n }

// extend adds the next row to spans.
func extend(spans []span, row int) []span {
	if last := len(spans) - 1; last >= 0 && spans[last].hi == row {
		spans[last].hi++
		return spans
	}
	return append(spans, span{row, row + 1})
}

// multiply computes this rank's elements of the product y; x contains its elements of the vector.
func (a *product) multiply(ctx context.Context, y, x []float64) error {
	a.pending = a.pending[:0]
	for _, p := range a.peers {
		a.pending = append(a.pending, mpicx.Recv(a.comm, p.ghosts, p.rank, haloTag))
	}
	for _, p := range a.peers {
		for k, i := range p.send {
			p.packed[k] = x[i]
		}
		a.pending = append(a.pending, mpicx.Send(a.comm, p.packed, p.rank, haloTag))
	}
	for _, s := range a.interior {
		a.multiplyInterior(s, y, x)
	}
	if err := future.WaitAll(ctx, a.pending...); err != nil {
		return err
	}
	for _, s := range a.boundary {
		a.multiplyBoundary(s, y, x)
	}
	return nil
}

func (a *product) multiplyInterior(s span, y, x []float64) {
	columns, energy := a.columns[s.lo:s.hi], a.energy[s.lo:s.hi]
	for i := range columns {
		c := &columns[i]
		y[s.lo+i] = energy[i]*x[s.lo+i] +
			hop1*(x[c[0]]+x[c[1]]+x[c[2]]) +
			hop2*(x[c[3]]+x[c[4]]+x[c[5]]+x[c[6]]+x[c[7]]+x[c[8]]) +
			hop3*(x[c[9]]+x[c[10]]+x[c[11]])
	}
}

// multiplyBoundary adds in the same order as multiplyInterior, so the product does not depend on
// the number of ranks.
func (a *product) multiplyBoundary(s span, y, x []float64) {
	for i := s.lo; i < s.hi; i++ {
		var at [neighbours]float64
		for k, c := range a.columns[i] {
			switch {
			case c == missing:
			case int(c) < a.rows:
				at[k] = x[c]
			default:
				at[k] = a.ghosts[int(c)-a.rows]
			}
		}
		y[i] = a.energy[i]*x[i] +
			hop1*(at[0]+at[1]+at[2]) +
			hop2*(at[3]+at[4]+at[5]+at[6]+at[7]+at[8]) +
			hop3*(at[9]+at[10]+at[11])
	}
}
