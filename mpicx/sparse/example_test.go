package sparse_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/mpicx/go-mpicx/mpicx/sparse"
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
