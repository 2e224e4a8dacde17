// Package detector finds out which ranks have died, for transports that do not
// know it at once. It follows Bosilca, Bouteiller, Guermouche, Herault, Robert,
// Sens, Dongarra, "Failure Detection and Propagation in HPC systems", SC'16:
//
//   - The ranks form a ring. Each sends a heartbeat a period to its observer, the
//     next rank that it believes alive, and observes its emitter, the one before.
//   - A rank that has not heard its emitter for a timeout holds it for dead. It
//     asks the rank before that one to be its emitter, and gives it twice the time.
//   - Deaths flood the binomial graph, where the neighbours of a rank r
//     of n are r±2^k mod n. A rank passes on what is news to it, once.
//
// A graph of fixed neighbours falls apart once as many have died as a rank has
// neighbours, and the paper's bound holds for fewer. Here a dead neighbour's place
// is taken by the next rank beyond it that lives, and a new neighbour is told of
// all deaths so far. So the graph stays connected and its paths logarithmic
// whatever dies, down to the last rank: bound_test.go has the time it takes, and
// why. The ring is the neighbours at distance 1.
//
// While all live that is one message a rank and period. A death costs a rank at
// most 2⌈log2 n⌉ notices, and for each neighbour that it replaces one for each run
// of consecutive ranks that are dead. It keeps its neighbours and those runs.
//
// A rank may be held for dead that lives, if messages take longer than the timeout
// allows for. To be declared dead is to be dead: it is told, by those that were its
// neighbours and by whomever it writes to, and falls silent. So the survivors agree
// in the end in any case, and every rank that goes on is a survivor.
//
// A network that falls apart has several sides that go on, each without the others. When
// it is whole again, the greatest has the others fall silent. While it falls
// apart, or becomes whole, for longer than a timeout, more may, and perhaps all.
//
// Beside the ring one rank, the watchman, may ping all others once a period, as in Shahzad,
// Kreutzer, Zeiser, Machado, Pieper, Hager, Wellein, "Building a fault tolerant application using
// the GASPI communication layer", 2015: [Config.Ping]. It finds out any number of deaths within one
// timeout. The ring is four times as slow then, and there to find out the watchman's own death.
//
// [Machine] is that protocol without I/O or clock. Its caller must
//
//  1. call Tick when Deadline has come, Step for each message, and, if it has other
//     news of deaths, Lose; and after each carry out Output in order;
//  2. deliver messages reliably between ranks that live, those from one rank to
//     another in order; to a dead rank they may be lost, or wait for ever;
//  3. start all ranks within a timeout, and keep what comes for one before;
//  4. place the ranks of one machine apart in the ring, if it can: a run of j that
//     die together is found out one after the other, in (2j - 1)·Timeout.
//
// The package must never know what died: a process, a machine or a goroutine.
package detector
