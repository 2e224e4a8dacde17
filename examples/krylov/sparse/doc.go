// Package sparse has what a parallel Krylov solver needs to know of sparse
// matrices: reading them from Matrix Market files, dividing their rows among
// ranks, the product with its halo, and an ILU(0) preconditioner.
//
// It must never know how numbers travel between ranks: it says which ones have
// to, and the caller sends them.
//
// A rank of a parallel solver prepares itself so:
//
//	m, err := sparse.ReadFile("poisson2d-128.mtx.gz")
//	local, err := sparse.Localize(m, sparse.Partition(m, ranks), rank)
//
// and computes y = A·x, each rank holding its own part of x and y, so:
//
//	for each nb of local.Neighbours:
//		start to receive into ghosts[nb.RecvLo:nb.RecvHi], unless that is empty
//		nb.Pack(buf, x) and start to send buf, unless nb.Send is empty
//	local.MulInterior(y, x) while the messages are under way
//	wait for the messages
//	local.MulBoundary(y, ghosts)
package sparse
