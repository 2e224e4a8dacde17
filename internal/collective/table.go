package collective

type operation int

const (
	barrier operation = iota
	bcast
	reduce
	allreduce
	reduceScatter
	allgather
	allgatherv
	alltoall
	gather
	scatter
	scan
	operations
)

// An Operation is one with several algorithms.
type Operation struct {
	Name       string
	Algorithms []string
}

// Operations are those that a Chooser chooses for.
var Operations = [operations]Operation{
	{"Barrier", []string{"tree", "star", "doubling"}},
	{"Bcast", []string{"tree", "star", "scatter", "chain"}},
	{"Reduce", []string{"tree", "star", "chain"}},
	{"Allreduce", []string{"tree", "doubling", "rabenseifner", "parts", "star"}},
	{"ReduceScatter", []string{"tree", "direct", "star"}},
	{"Allgather", []string{"tree", "direct", "star"}},
	{"Allgatherv", []string{"tree", "direct"}},
	{"Alltoall", []string{"direct", "bruck", "star"}},
	{"Gather", []string{"tree", "direct"}},
	{"Scatter", []string{"tree", "direct"}},
	{"Scan", []string{"doubling", "chain"}},
}

// chainSegment is how many bytes a chain passes on at a time.
const chainSegment = 64 << 10

// A rule says which algorithm serves up to so many ranks and bytes; 0: any number.
type rule struct {
	ranks, bytes int
	use          string
}

// table has the rules for each operation and Kind. The first that applies is chosen; the last
// one always does. Bytes are those of the whole vector for Bcast and reductions, of one rank's part
// for the others. Measured on two cores that others used, too (load 3 to 20), each the shortest
// of 9 to 15 times, with 2, 3, 4, 8 and 64 goroutine ranks and 2 and 4 processes:
//
//	go run ./internal/collective/measure -ranks 8
//	mpicxrun -n 4 measure
//
// More goroutine ranks than 64 are not measured: a star serves up to 512 of them, since its root's
// memory grows with their number.
//
// More processes than 4 have the crossovers of goroutine ranks. Hosts have what processes of one
// machine have, but for direct messages where a tree or halving has fewer at a time. Measured between
// two network namespaces, with ranks placed by host and alternating (internal/scripts/two-hosts measure),
// the two placements differ by no more than their noise. So algorithms that know the machines are not
// here. Rabenseifner's begins with neighbours: by host, the least part of the vector leaves the machine. Rings, pairwise exchange and Bruck's Allgather were slower, or no faster,
// everywhere, and are not here.
var table = [operations][kinds][]rule{
	barrier: {
		{{use: "tree"}},
		{{use: "doubling"}},
		{{use: "doubling"}},
	},
	bcast: {
		{
			{ranks: 512, bytes: 1 << 10, use: "star"}, {bytes: 512 << 10, use: "tree"}, {ranks: 2, use: "chain"}, {ranks: 8, use: "scatter"},
			{use: "tree"},
		},
		{{use: "tree"}},
		{{use: "tree"}},
	},
	reduce: {
		{{ranks: 2, bytes: 8 << 10, use: "star"}, {bytes: 512 << 10, use: "tree"}, {ranks: 2, use: "chain"}, {use: "tree"}},
		{{use: "tree"}},
		{{use: "tree"}},
	},
	allreduce: {
		{
			{ranks: 2, bytes: 2 << 10, use: "doubling"}, {ranks: 512, bytes: 4 << 10, use: "star"}, {bytes: 128 << 10, use: "tree"}, {ranks: 2, use: "parts"},
			{bytes: 512 << 10, use: "tree"}, {ranks: 3, use: "parts"}, {ranks: 16, use: "rabenseifner"}, {use: "tree"},
		},
		{{bytes: 8 << 10, use: "doubling"}, {ranks: 8, use: "parts"}, {use: "rabenseifner"}},
		{{bytes: 8 << 10, use: "doubling"}, {use: "rabenseifner"}},
	},
	reduceScatter: {
		{
			{ranks: 2, use: "direct"}, {ranks: 512, bytes: 2 << 10, use: "star"}, {bytes: 128 << 10, use: "tree"}, {ranks: 8, use: "direct"},
			{use: "tree"},
		},
		{{ranks: 8, use: "direct"}, {bytes: 128 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 128 << 10, use: "tree"}, {use: "direct"}},
	},
	allgather: {
		{
			{ranks: 8, bytes: 16 << 10, use: "star"}, {ranks: 512, bytes: 256, use: "star"}, {bytes: 1 << 10, use: "tree"},
			{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"},
		},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
	},
	allgatherv: {
		{{ranks: 2, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 8 << 10, use: "tree"}, {use: "direct"}},
	},
	alltoall: {
		{{ranks: 2, use: "direct"}, {ranks: 64, bytes: 1 << 10, use: "star"}, {ranks: 512, bytes: 64, use: "star"}, {bytes: 512, use: "bruck"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 512, use: "bruck"}, {use: "direct"}},
		{{ranks: 8, use: "direct"}, {bytes: 512, use: "bruck"}, {use: "direct"}},
	},
	gather: {
		{{ranks: 2, use: "direct"}, {bytes: 1 << 10, use: "tree"}, {use: "direct"}},
		{{bytes: 4 << 10, use: "tree"}, {use: "direct"}},
		{{bytes: 4 << 10, use: "tree"}, {use: "direct"}},
	},
	scatter: {
		{{use: "direct"}},
		{{use: "direct"}},
		{{bytes: 4 << 10, use: "tree"}, {use: "direct"}},
	},
	scan: {
		{{use: "chain"}},
		{{ranks: 4, use: "chain"}, {use: "doubling"}},
		{{use: "doubling"}},
	},
}
