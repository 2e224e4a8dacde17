//go:build unix

// Petsc compares the methods of mpicx/krylov with PETSc's: the same systems, the same
// number of iterations, in turn, by CPU time.
//
//	make bench-petsc
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/distributed"
	"github.com/mpicx/go-mpicx/mpicx/krylov"
	"github.com/mpicx/go-mpicx/mpicx/sparse"
)

const ranks = 2

// A solve is the cost of one solve.
type solve struct {
	method, precond      string
	unknowns, iterations int
	residual, cpu        float64
}

func main() {
	log.SetFlags(0)
	theirs := flag.String("theirs", "", "the program of internal/lab/bench/c/petsc.c")
	mpirun := flag.String("mpirun", "mpirun", "what starts it")
	times := flag.Int("times", 5, "how often")
	only := flag.Int("n", 0, "points on a side; 0: 317 and 1000")
	flag.Parse()

	table := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| method\t| precond\t| unknowns\t| iterations\t| residual\t| PETSc's\t| CPU time\t| PETSc's\t| ratio\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, size := range []struct{ n, iterations int }{{317, 200}, {1000, 100}} {
		if *only != 0 && *only != size.n {
			continue
		}
		var ours, petsc [][]solve
		for range *times {
			petsc = append(petsc, runTheirs(*mpirun, *theirs, size.n, size.iterations))
			ours = append(ours, runOurs(size.n, size.iterations))
		}
		for k, o := range ours[0] {
			t := petsc[0][k]
			a, b := median(ours, k), median(petsc, k)
			fmt.Fprintf(table, "| %s\t| %s\t| %d\t| %d, %d\t| %.3g\t| %.3g\t| %s\t| %s\t| %.2f×\t|\n", o.method, o.precond, o.unknowns, o.iterations, t.iterations,
				o.residual, t.residual, seconds(a), seconds(b), a/b)
		}
	}
	table.Flush()
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

func median(runs [][]solve, k int) float64 {
	var s []float64
	for _, r := range runs {
		s = append(s, r[k].cpu)
	}
	slices.Sort(s)
	return s[len(s)/2]
}

func runTheirs(mpirun, program string, n, iterations int) (all []solve) {
	args := append(strings.Fields(mpirun), "-n", fmt.Sprint(ranks), program, fmt.Sprint(n), fmt.Sprint(iterations))
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		log.Fatalf("%v: %v", args, err)
	}
	for line := range strings.Lines(string(out)) {
		var s solve
		if _, err := fmt.Sscan(line, &s.method, &s.precond, &s.unknowns, &s.iterations, &s.residual, &s.cpu); err != nil {
			log.Fatalf("%q: %v", line, err)
		}
		all = append(all, s)
	}
	return all
}

func runOurs(n, iterations int) (all []solve) {
	err := mpicx.Run(context.Background(), func(ctx context.Context, world *mpicx.Comm) error {
		a, err := distributed.New(ctx, world, n*n, laplacian(n, n*n*world.Rank()/ranks, n*n*(world.Rank()+1)/ranks))
		if err != nil {
			return err
		}
		ilu, err := distributed.BlockJacobi(a)
		if err != nil {
			return err
		}
		x, b := make([]float64, a.Rows()), make([]float64, a.Rows())
		for i := range b {
			b[i] = 1 + float64((a.First()+i)%7)
		}
		for _, m := range []struct {
			name   string
			method krylov.Method
		}{{"cg", krylov.CG}, {"bicgstab", krylov.BiCGStab}, {"gmres", krylov.GMRES}} {
			for _, precond := range []string{"none", "ilu"} {
				sys := krylov.System{Space: distributed.Space{Comm: world}, A: a, B: b}
				if precond == "ilu" {
					sys.M = ilu
				}
				clear(x)
				world.Barrier().MustWait(ctx)
				begin := cpu()
				res, err := m.method(ctx, sys, x, krylov.Options{Tol: 1e-14, MaxIter: iterations, Divergence: 1e300})
				if err != nil {
					return err
				}
				world.Barrier().MustWait(ctx)
				if world.Rank() == 0 {
					all = append(all, solve{m.name, precond, n * n, res.Iterations, res.Residual, cpu() - begin})
				}
			}
		}
		return nil
	}, mpicx.WithRanks(ranks))
	if err != nil {
		log.Fatal(err)
	}
	return all
}

// cpu is the CPU time of all threads of this process.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// laplacian returns rows lo to hi-1 of the five-point Laplacian on n×n points.
func laplacian(n, lo, hi int) distributed.Block {
	b := distributed.Block{First: lo, CSR: &sparse.CSR{Rows: hi - lo, Cols: n * n, RowPtr: make([]int, 1, hi-lo+1)}}
	for i := lo; i < hi; i++ {
		add := func(there bool, j int, v float64) {
			if there {
				b.ColIdx, b.Val = append(b.ColIdx, int32(j)), append(b.Val, v)
			}
		}
		add(i >= n, i-n, -1)
		add(i%n > 0, i-1, -1)
		add(true, i, 4)
		add(i%n < n-1, i+1, -1)
		add(i+n < n*n, i+n, -1)
		b.RowPtr = append(b.RowPtr, len(b.Val))
	}
	return b
}
