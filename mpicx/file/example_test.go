package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/file"
)

// Each rank writes a column of an array. Sync returns nil at all ranks when all of it is on the
// disk.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "array")
	err = mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		f, err := file.Open(ctx, world, name, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return err
		}
		defer f.Release()
		err = f.SetView(file.View{Sizes: []int{2, world.Size()}, Subsizes: []int{2, 1}, Starts: []int{0, world.Rank()}})
		if err != nil {
			return err
		}
		file.WriteAll(f, 0, []byte{'a' + byte(world.Rank()), 'A' + byte(world.Rank())})
		return f.Close().Wait(ctx) // reports it if something has gone wrong
	}, mpicx.WithRanks(3))
	all, _ := os.ReadFile(name)
	fmt.Printf("%s %v\n", all, err)
	// Output: abcABC <nil>
}
