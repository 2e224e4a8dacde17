package collective

import "slices"

// Between machines an operation goes in two levels: the ranks of a machine exchange messages among
// themselves, and one rank of each, its head, exchanges messages with the other heads. So few
// messages leave a machine.

// The operations in two levels. Where each rank has a machine of its own, it is a head.
var (
	bcastMachines     = inLevels(nil, bcastTree, bcastTree)
	reduceMachines    = inLevels(reduceTree, reduceTree, nil)
	allreduceMachines = inLevels(reduceTree, allreduceHeads, bcastTree)
)

func allreduceHeads(a *Call, k int, x *Exchange) bool {
	if len(a.Recv) <= 8<<10 {
		return allreduceDoubling(a, k, x)
	}
	return rabenseifner(a, k, x)
}

// barrierMachines is allreduceMachines of no bytes.
func barrierMachines(a *Call, k int, x *Exchange) bool {
	a.Op = func(_, _, _ []byte) {}
	return allreduceMachines(a, k, x)
}

// inLevels returns an algorithm of up to three in sequence: to the head of each machine, between
// the heads, and from each head to the ranks of its machine. A nil algorithm is left out.
func inLevels(toHeads, between, fromHeads step) step {
	levels := []step{amongHeads(between)}
	if toHeads != nil {
		levels = []step{withinMachine(toHeads), amongHeads(combined(between))}
	}
	if fromHeads != nil {
		levels = append(levels, withinMachine(fromHeads))
	}
	return func(a *Call, k int, x *Exchange) bool {
		if a.division == nil {
			return between(a, k, x)
		}
		return a.inSequence(k, x, levels...)
	}
}

// withinMachine is do among the ranks of a machine, whose root is the head.
func withinMachine(do step) step {
	return func(a *Call, k int, x *Exchange) bool {
		d := a.division
		heads := d.headsFor(a.root)
		head := heads[d.headOf(heads, x.rank)]
		if k == 0 && x.rank == head && a.Recv == nil { // of a reduction to another rank
			a.Recv = x.Scratch(len(a.Send))
		}
		return a.among(d.own, head, k, x, do)
	}
}

// amongHeads is do among the heads.
func amongHeads(do step) step {
	return func(a *Call, k int, x *Exchange) bool {
		heads := a.division.headsFor(a.root)
		return slices.Contains(heads, x.rank) && a.among(heads, a.root, k, x, do)
	}
}

// combined is do with the values of the heads in Recv.
func combined(do step) step {
	return func(a *Call, k int, x *Exchange) bool {
		a.Send = nil
		return do(a, k, x)
	}
}

// among carries out step k of an algorithm among some ranks.
func (a *Call) among(members []int, root, k int, x *Exchange, do step) bool {
	defer func(rank, size, root int) {
		x.members, x.rank, x.size, a.root = nil, rank, size, root
	}(x.rank, x.size, a.root)
	x.members, x.rank, x.size, a.root = members, slices.Index(members, x.rank), len(members), slices.Index(members, root)
	return do(a, k, x)
}

// A division says how the ranks of a communicator are divided among machines.
type division struct {
	machine func(rank int) int
	own     []int // the ranks of this rank's machine
	firsts  []int // the first rank of each machine
	inOrder bool  // the ranks of each machine follow each other
}

// divisionOf returns nil if all ranks are on one machine, or each on one of its own.
func divisionOf(rank, size int, machine func(rank int) int) *division {
	d := &division{machine: machine, inOrder: true}
	seen := map[int]bool{}
	for r := range size {
		m := machine(r)
		if m == machine(rank) {
			d.own = append(d.own, r)
		}
		if !seen[m] {
			seen[m] = true
			d.firsts = append(d.firsts, r)
		} else if machine(r-1) != m {
			d.inOrder = false
		}
	}
	if len(d.firsts) == 1 || len(d.firsts) == size {
		return nil
	}
	return d
}

// headOf returns which of the heads is on a rank's machine, or -1.
func (d *division) headOf(heads []int, rank int) int {
	return slices.IndexFunc(heads, func(h int) bool { return d.machine(h) == d.machine(rank) })
}

// headsFor returns the heads of an operation with a root, which is one of them.
func (d *division) headsFor(root int) []int {
	at := d.headOf(d.firsts, root)
	if d.firsts[at] == root {
		return d.firsts
	}
	heads := slices.Clone(d.firsts)
	heads[at] = root
	return heads
}
