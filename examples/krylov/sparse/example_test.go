package sparse_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/mpicx/go-mpicx/examples/krylov/sparse"
)

const chain = `%%MatrixMarket matrix coordinate real symmetric
% 2 on the diagonal, -1 beside it
4 4 7
1 1 2
2 1 -1
2 2 2
3 2 -1
3 3 2
4 3 -1
4 4 2
`

func ExampleRead() {
	m, err := sparse.Read(strings.NewReader(chain), "chain.mtx")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Rows, m.Cols, m.NNZ())

	_, err = sparse.Read(strings.NewReader(strings.Replace(chain, "3 2 -1", "5 2 -1", 1)), "chain.mtx")
	fmt.Println(err)
	// Output:
	// 4 4 10
	// chain.mtx:7: found "5 2 -1", expected a row from 1 to 4
}

// Two ranks multiply. What would be a message is a copy here.
func ExampleLocalize() {
	m, err := sparse.Read(strings.NewReader(chain), "chain.mtx")
	if err != nil {
		log.Fatal(err)
	}
	offsets := sparse.Partition(m, 2)
	x := [][]float64{{1, 2}, {3, 5}}
	for rank := range 2 {
		local, err := sparse.Localize(m, offsets, rank)
		if err != nil {
			log.Fatal(err)
		}
		ghosts := make([]float64, len(local.Ghosts))
		for _, nb := range local.Neighbours {
			fmt.Printf("rank %d sends %d to %d\n", rank, nb.Send, nb.Rank)
			for k, column := range local.Ghosts[nb.RecvLo:nb.RecvHi] {
				ghosts[nb.RecvLo+k] = x[nb.Rank][column-offsets[nb.Rank]]
			}
		}
		y := make([]float64, local.Rows)
		local.MulInterior(y, x[rank])
		local.MulBoundary(y, ghosts)
		fmt.Printf("rank %d has %g\n", rank, y)
	}
	// Output:
	// rank 0 sends [1] to 1
	// rank 0 has [0 0]
	// rank 1 sends [0] to 0
	// rank 1 has [-1 7]
}
