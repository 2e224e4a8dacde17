package checkpoint

import "slices"

// A scheme is the group code that was asked for: the data of each member are k chunks, and of
// k chunks of as many members there are m parities at m others. With k = 1 those are copies.
type scheme struct{ k, m int }

// A group is the members that keep each other's data, with the scheme that is possible among
// so many. Stripe s, as many as there are members, has its parities at the positions s …
// s+m-1, and its data at s+m … s+m+k-1, modulo the size: no position has two shards of a
// stripe. So all data survive the loss of any m members.
type group struct {
	members []int // ranks
	scheme
}

// at is the position p, modulo the size.
func (g *group) at(p int) int {
	n := len(g.members)
	return ((p % n) + n) % n
}

// stripeOf is the stripe that chunk c of the member at a position belongs to.
func (g *group) stripeOf(position, c int) int { return g.at(position - g.m - c) }

// holder is the position of shard i of a stripe: of the k data, then of the m parities.
func (g *group) holder(stripe, i int) int {
	if i < g.k {
		return g.at(stripe + g.m + i)
	}
	return g.at(stripe + i - g.k)
}

// groupOf returns the group of a rank, and its position there. Machines has the machine of each
// rank: a group has members of as many machines as it can.
func groupOf(rank int, machines []int, want scheme) (g group, position int) {
	order := spread(machines)
	n := len(order)
	groups := max(1, n/(want.k+want.m))
	for i := range groups {
		members := order[i*n/groups : (i+1)*n/groups]
		if position = slices.Index(members, rank); position >= 0 {
			g.members = members
			break
		}
	}
	g.m = min(want.m, len(g.members)-1)
	g.k = max(1, min(want.k, len(g.members)-g.m))
	return g, position
}

// spread returns the ranks such that neighbours are of different machines: the first rank of
// each machine, then the second of each, and so on.
func spread(machines []int) []int {
	turn := make([]int, len(machines)) // of the rank in its machine
	seen := make(map[int]int)
	order := make([]int, len(machines))
	for r, m := range machines {
		order[r], turn[r] = r, seen[m]
		seen[m]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return turn[a] - turn[b] })
	return order
}
