package mpicx

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/mpicx/go-mpicx/future"
	"github.com/mpicx/go-mpicx/internal/collective"
	"github.com/mpicx/go-mpicx/internal/errchan"
	"github.com/mpicx/go-mpicx/internal/transport"
	"github.com/mpicx/go-mpicx/internal/waiting"
)

// Undefined is the color of a rank that takes no part in what Split makes.
const Undefined = -1

// Split makes a communicator of each set of ranks that give the same color, in
// which they are ordered by key and then by rank (MPI_Comm_split). A color is
// not negative, or Undefined: such a rank gets a nil Comm. It is collective.
func (c *Comm) Split(color, key int) *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("Split")
	}
	c.notInReduction("begins", "Split")
	if color < 0 && color != Undefined {
		return failed[*Comm](c, mpiErrorf("Split", ClassOther, "color %d, expected one that is not negative, or Undefined", color))
	}
	return c.split(errchan.Split, color, key)
}

// SplitShared makes a communicator of the ranks of each machine, which can share memory. In it
// they are ordered by key and then by rank (MPI_Comm_split_type with MPI_COMM_TYPE_SHARED).
// Goroutine ranks, and those of mpicxrun, are all on one machine. It is collective.
func (c *Comm) SplitShared(key int) *future.Future[*Comm] {
	if c == nil {
		return nowhere[*Comm]("SplitShared")
	}
	c.notInReduction("begins", "SplitShared")
	return c.split(errchan.SplitShared, c.t.Machine(c.rank), key)
}

// split is Split and SplitShared.
func (c *Comm) split(call errchan.Calls, color, key int) *future.Future[*Comm] {
	op := call.String()
	epoch, err := c.begin(op)
	if err != nil {
		return failed[*Comm](c, err)
	}
	seq := c.sequence(epoch)
	f, p := future.New[*Comm]()
	waiting.Of(p.Future()).Keep(makingKeeper{(*keeper)(c), op})
	made := c.agreed(call, epoch, p)
	gather := &collective.AllgatherShared{Send: appendChoice(nil, color, key)}
	x := &collective.Exchange{Name: op}
	x.Start(c.t, epoch, transport.CollectiveTag(seq), gather, ender(func(err error) {
		if err != nil || color == Undefined {
			made(nil, err)
			return
		}
		part := c.partition(gather.All)[color]
		name := transport.SplitName(epoch, uint64(seq), color)
		made(c.derive(name, part.members, part.worldRanks, fmt.Sprintf("%s.%s%d(%d)", c.name, strings.ToLower(op), seq, color)))
	}))
	return f
}

// A choice is what one rank gives Split: a color and a key, of 8 bytes each.
const choice = 16

func appendChoice(b []byte, color, key int) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(color))
	return binary.LittleEndian.AppendUint64(b, uint64(key))
}

func choiceAt(all []byte, rank int) (color, key int) {
	b := all[rank*choice:][:choice]
	return int(binary.LittleEndian.Uint64(b)), int(binary.LittleEndian.Uint64(b[choice/2:]))
}

// A part is the members of one of the communicators that a Split makes. All of them
// share it.
type part struct {
	members    []int
	worldRanks []int
}

// partitions has what was made of choices that the ranks of this process share, as long
// as one of them has these: without it each rank of a job needs the space and time for
// the choices of all.
var partitions sync.Map // by weak.Pointer[byte], to the first of the choices: func() map[int]*part

// partition returns the parts of a Split by their colors.
func (c *Comm) partition(choices []byte) map[int]*part {
	first := &choices[0]
	key := weak.Make(first)
	parts, known := partitions.Load(key)
	if !known {
		parts, known = partitions.LoadOrStore(key, sync.OnceValue(func() map[int]*part { return c.partsOf(choices) }))
		if !known {
			runtime.AddCleanup(first, func(key weak.Pointer[byte]) { partitions.Delete(key) }, key)
		}
	}
	defer runtime.KeepAlive(first)
	return parts.(func() map[int]*part)()
}

func (c *Comm) partsOf(choices []byte) map[int]*part {
	parts := make(map[int]*part)
	for r := range c.size {
		color, _ := choiceAt(choices, r)
		if parts[color] == nil {
			parts[color] = new(part)
		}
		parts[color].members = append(parts[color].members, r)
	}
	delete(parts, Undefined)
	for _, p := range parts {
		p.members = slices.Clip(p.members)
		slices.SortStableFunc(p.members, func(a, b int) int {
			_, x := choiceAt(choices, a)
			_, y := choiceAt(choices, b)
			return cmp.Compare(x, y)
		})
		p.worldRanks = c.worldRanksOf(p.members)
	}
	return parts
}
