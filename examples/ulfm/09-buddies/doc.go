// Lesson 9: buddies.
//
//	go run -tags ulfm ./examples/ulfm/09-buddies
//
// Jacobi's method for u” = 0 between 0 and 1; each rank has a block of the cells. From time to
// time each keeps a copy of its blocks, and gives one to the next rank, its buddy. A rank is
// killed. The others go back to the last version that all have, the buddy takes the blocks of
// the dead over, and in the end u is, bit by bit, what it is without a death. What is learnt:
//
//   - A version is made while the program runs, so a death may find it made by some only. Keep
//     the one before until all have the new one: the Agree behind each save says so. After a
//     death, all go back to the least of the newest.
//   - Who is dead need not be told: the blocks that nobody has are those of the dead, and who
//     holds a copy of them adopts it.
//   - The ring of buddies has a gap then. The next save, at once, closes it. Until then another
//     death, of the adopter, is one too many: that is said, and no wrong result comes of it.
//
// Package checkpoint does this with more copies, or with a code, on other machines and in files,
// and recovery.Run is the loop around it.
//
// Try next: count the bytes that a save sends; save in a file as well; have spares.
//
// A lesson must never know more of mpicx than its face.
package main
