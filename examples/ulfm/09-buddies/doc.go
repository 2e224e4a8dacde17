// Lesson 9: buddies.
//
//	go run -tags ulfm ./examples/ulfm/09-buddies
//
// Jacobi's method for u″ = 0 between 0 and 1; each rank has a block of the cells. At regular
// intervals each rank keeps a copy of its blocks, and gives another copy to the next rank, its
// buddy. A rank is killed. The others go back to the last version that all have, and the buddy
// takes over the blocks of the dead. In the end u is, bit by bit, the same as without a death. What
// it teaches:
//
//   - A version is made while the program runs, so a rank may die when only some have made it. Keep
//     the previous version until all have the new one: the Agree after each save says so. After a
//     death, all go back to the newest version that all have.
//   - The ranks need not exchange who is dead: the blocks that no rank has are those of the dead,
//     and the rank that holds a copy of them adopts it.
//   - The ring of buddies then has a gap, which an immediate save closes. If the adopter dies
//     before that, the blocks are lost: the program reports that, and gives no wrong result.
//
// Package checkpoint does this with more copies or an erasure code, on other machines and in files,
// and recovery.Run is the loop around it.
//
// Try next: count the bytes that a save sends; save in a file as well; have spares.
//
// A lesson must use only the public interface of mpicx.
package main
