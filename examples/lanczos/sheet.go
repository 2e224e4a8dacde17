package main

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"
)

// The hopping energies of an electron to a first, second and third neighbour, in eV: Reich,
// Maultzsch, Thomsen, Ordejón, "Tight-binding description of graphene", 2002, with orbitals that do
// not overlap.
const (
	hop1 = -2.97
	hop2 = -0.073
	hop3 = -0.33
)

// A sheet of graphene has width × height cells with two atoms each, A and B. Its Hamiltonian has a
// row for each atom: site 2·(y·width + x) is atom A of the cell (x, y), the next site its atom B. A
// row contains the energy of the site, and the hopping energies to its neighbours: 13 entries.
type sheet struct {
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Open     bool    `json:"open"`     // false: each edge is joined to the opposite one
	Disorder float64 `json:"disorder"` // sites have energies between -Disorder/2 and Disorder/2
	Seed     uint64  `json:"seed"`
}

func (s sheet) sites() int { return 2 * s.Width * s.Height }

// shells are the cells of the neighbours of an atom A, relative to its own cell. The 3 nearest and
// the 3 farthest neighbours are B atoms, the 6 between them A atoms. The neighbours of a B are in
// the opposite cells.
var shells = [neighbours][2]int{
	{0, 0}, {-1, 0}, {0, -1},
	{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1},
	{-1, -1}, {1, -1}, {-1, 1},
}

const neighbours = 12

// missing stands for a neighbour beyond an edge.
const missing = -1

// neighbours returns the neighbours of a site, in the order of shells.
func (s sheet) neighbours(site int) (all [neighbours]int) {
	atom, x, y := site%2, site/2%s.Width, site/2/s.Width
	direction := 1 - 2*atom
	for k, cell := range shells {
		x, y, atom := x+direction*cell[0], y+direction*cell[1], atom
		if k < 3 || k >= 9 {
			atom = 1 - atom
		}
		if outside := x < 0 || x >= s.Width || y < 0 || y >= s.Height; outside && s.Open {
			all[k] = missing
			continue
		}
		all[k] = 2*(around(y, s.Height)*s.Width+around(x, s.Width)) + atom
	}
	return all
}

// around returns x on a ring of n. It may be at most one too low or too high.
func around(x, n int) int {
	switch {
	case x < 0:
		return x + n
	case x >= n:
		return x - n
	}
	return x
}

// energy returns the energy of a site. Every rank can compute that of any site.
func (s sheet) energy(site int) float64 { return s.Disorder / 2 * random(s.Seed, site) }

// random returns a number between -1 and 1 that depends only on its arguments: number site of the
// splitmix64 sequence of the seed.
func random(seed uint64, site int) float64 {
	z := seed + (uint64(site)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11)/(1<<52) - 1
}

// bands returns the eigenvalues of a periodic sheet without disorder, increasing: g(k) ± |f(k)| for
// each wave vector k that fits into it. Here f sums exp(ik·r) over the B neighbours of an A, g over
// the A neighbours, each times its energy.
func (s sheet) bands() []float64 {
	all := make([]float64, 0, s.sites())
	for p := range s.Width {
		for q := range s.Height {
			var f, g complex128
			for k, cell := range shells {
				phase := 2 * math.Pi * (float64(p*cell[0])/float64(s.Width) + float64(q*cell[1])/float64(s.Height))
				wave := cmplx.Rect(1, phase)
				switch {
				case k < 3:
					f += hop1 * wave
				case k < 9:
					g += hop2 * wave
				default:
					f += hop3 * wave
				}
			}
			all = append(all, real(g)-cmplx.Abs(f), real(g)+cmplx.Abs(f))
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}
