package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpicx/go-mpicx/mpicx"
)

// options contains the flags.
type options struct {
	sheet
	ranks, spares int
	respawn       bool
	iterations    int
	eigenvalues   int
	every         int // iterations between checkpoints
	store         string
	copies        int
	dir           string
	detector      string
	period        time.Duration
	kills         []kill
	json          bool
	history       int // moments
	timeline      string
}

// A kill ends the process of a rank when it begins an iteration. A rank's first kill is for its
// first process, the second for the process that has taken its place, and so on.
type kill struct{ rank, iteration int }

const usage = `Usage: lanczos [flags]

Finds the lowest eigenvalues of a sheet of graphene by Lanczos's algorithm, on ranks that may be
killed meanwhile: others take their places, and all go on from the last checkpoint. That needs a
build with -tags ulfm.

The sheet
  -size WxH         cells, of two atoms each (default 200x200)
  -open             its edges are edges; else each is joined to the opposite one
  -disorder E       each atom has an energy of its own between -E/2 and E/2 eV (default 0)
  -seed N           of the disorder, and of the first vector (default 1)
The method
  -ranks N          ranks that work (default: MPICX_RANKS, or 4; under mpicxrun, all processes
                    that are no spares)
  -spares K         ranks that wait until one is lost (default 0)
  -respawn          fresh ranks are started when one is lost, instead of spares; under
                    mpicxrun, with its -respawn
  -iterations N     (default 3500)
  -eigenvalues N    how many to print (default 4)
What goes wrong
  -kill R@I         kill rank R before iteration I; may be repeated
What is done about it
  -checkpoint N     every N iterations; 0: never (default 500)
  -store NAME       where: partner, in the memory of other ranks; rs, there too, as Reed and
                    Solomon's codes, which take less of it; dir, in files (default partner)
  -copies N         how many ranks may be lost at once, with partner and rs (default 1)
  -dir DIR          for the files
  -detector NAME    ring or ping: how machines are found that fall silent (default ring)
  -period T         of ping (default 1s)
What to show
  -timeline DIR     record what each rank is in, and what errors do to it, for mpicx/mpicxtrace
  -json             print one JSON document instead of text
  -history N        with -json, print the eigenvalues after each of N parts of the iterations too

Examples
  go run -tags ulfm ./examples/lanczos -spares 2 -kill 3@1200 -kill 5@2000
  go build -tags ulfm ./examples/lanczos
  go run ./mpicx/mpicxrun -n 8 ./lanczos -spares 4 -kill 1@1200
  go run ./mpicx/mpicxrun -n 4 -respawn 9 ./lanczos -respawn -kill 1@1200
`

func parse(args []string) (*options, error) {
	o := &options{}
	size := "200x200"
	fs := flag.NewFlagSet("lanczos", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&size, "size", size, "")
	fs.BoolVar(&o.Open, "open", false, "")
	fs.Float64Var(&o.Disorder, "disorder", 0, "")
	fs.Uint64Var(&o.Seed, "seed", 1, "")
	fs.IntVar(&o.ranks, "ranks", 0, "")
	fs.IntVar(&o.spares, "spares", 0, "")
	fs.BoolVar(&o.respawn, "respawn", false, "")
	fs.IntVar(&o.iterations, "iterations", 3500, "")
	fs.IntVar(&o.eigenvalues, "eigenvalues", 4, "")
	fs.Func("kill", "", o.addKill)
	fs.IntVar(&o.every, "checkpoint", 500, "")
	fs.StringVar(&o.store, "store", "partner", "")
	fs.IntVar(&o.copies, "copies", 1, "")
	fs.StringVar(&o.dir, "dir", "", "")
	fs.StringVar(&o.detector, "detector", "ring", "")
	fs.DurationVar(&o.period, "period", time.Second, "")
	fs.StringVar(&o.timeline, "timeline", "", "")
	fs.BoolVar(&o.json, "json", false, "")
	fs.IntVar(&o.history, "history", 0, "")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("argument %q, expected flags alone", fs.Arg(0))
	}
	if _, err := fmt.Sscanf(size+" ", "%dx%d ", &o.Width, &o.Height); err != nil {
		return nil, fmt.Errorf("-size %q, expected such as 200x100", size)
	}
	return o, o.check()
}

func (o *options) addKill(text string) error {
	rank, iteration, found := strings.Cut(text, "@")
	k := kill{}
	var errRank, errIteration error
	k.rank, errRank = strconv.Atoi(rank)
	k.iteration, errIteration = strconv.Atoi(iteration)
	if !found || errRank != nil || errIteration != nil || k.rank < 0 || k.iteration < 0 {
		return errors.New("expected a rank and an iteration, such as 3@1200")
	}
	o.kills = append(o.kills, k)
	return nil
}

// check returns an error that names an invalid option.
func (o *options) check() error {
	const maxSites = 1 << 31 // columns of a row are numbered in 32 bits
	least := 3               // otherwise two neighbours of a site are the same
	if o.Open {
		least = 1
	}
	if o.Width < least || o.Height < least || o.Width > maxSites/2/o.Height {
		return fmt.Errorf("-size %dx%d, expected at least %d cells each way, and at most %d atoms", o.Width, o.Height, least, int64(maxSites))
	}
	for _, n := range []struct {
		name         string
		value, least int
	}{
		{"ranks", o.ranks, 0}, {"spares", o.spares, 0}, {"iterations", o.iterations, 1}, {"eigenvalues", o.eigenvalues, 1},
		{"checkpoint", o.every, 0}, {"copies", o.copies, 1}, {"history", o.history, 0},
	} {
		if n.value < n.least {
			return fmt.Errorf("-%s %d, expected at least %d", n.name, n.value, n.least)
		}
	}
	for _, k := range o.kills {
		if k.iteration >= o.iterations {
			return fmt.Errorf("-kill %d@%d, expected an iteration below %d", k.rank, k.iteration, o.iterations)
		}
	}
	if len(o.kills) > 0 && mpicx.Backend != "ulfm" {
		return errors.New("-kill: no rank would notice, expected a build with -tags ulfm")
	}
	if !slices.Contains([]string{"partner", "rs", "dir"}, o.store) {
		return fmt.Errorf("-store %q, expected partner, rs or dir", o.store)
	}
	if (o.store == "dir") != (o.dir != "") {
		return fmt.Errorf("-store %s with -dir %q, expected a folder for -store dir alone", o.store, o.dir)
	}
	if o.detector != "ring" && o.detector != "ping" {
		return fmt.Errorf("-detector %q, expected ring or ping", o.detector)
	}
	return nil
}
