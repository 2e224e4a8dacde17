// Minimal is Listing 1 of Engwer, Altenbernd, Dreier and Göddeke, "A high-level C++
// approach to manage local errors, asynchrony and faults in an MPI application",
// in Go: rank 0 sends a number to rank 1, and three layers around it catch what
// may go wrong. It runs twice, the second time with a fault at rank 0, and prints
// what each rank sees.
//
//	go run ./examples/minimal
//	go build -tags mpi ./examples/minimal && mpirun -n 2 ./minimal
//
// The listing's parts and their names here:
//
//	MPICXX::initialize, mpi.comm_world()       mpicx.Run, which hands out the world
//	MPICXX::Future f; f = comm.send(…)         f := mpicx.Send(world, …)
//	f.wait()                                   f.MustWait(ctx): it throws, too
//	catch (std::exception&), signal_error      Try: what its function throws, all ranks get
//	catch (MPICXX::Propagated_exception&)      errors.AsType[*mpicx.PropagatedError]
//	catch (MPICXX::Comm_corrupted_exception&)  errors.AsType[*mpicx.CommCorruptedError]
//
// It must use only the public interface of mpicx.
package main
