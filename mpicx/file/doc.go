// Package file has files that all ranks of a communicator read and write: MPI's file operations
// (MPI 4.1, chapter 14) on POSIX files.
//
//	f, err := file.Open(ctx, world, "u.dat", os.O_CREATE|os.O_RDWR, 0o666)
//	defer f.Release()
//	f.SetView(file.View{Sizes: []int{ny, nx}, Subsizes: []int{rows, nx}, Starts: []int{first, 0}})
//	file.WriteAll(f, 0, block)
//	err = f.Sync().Wait(ctx) // what all ranks have written is on the disk, or all get the same error
//
// Write and Read involve no other rank. A write may be buffered, and reports no death. [File.Sync]
// reports what has happened since the last one, and does so uniformly (paper 001, section 1.2.4):
// an error of the file system at one rank, such as a full disk, is an [*Error] at all of them,
// with that rank's text. After a death all living ranks get the error of a death.
//
// The operations of a rank on a file are carried out one after another, in the order of its calls,
// while the program continues. After an error of the communicator nothing is written any more that
// was begun before, and no buffer is read. What the system has taken by then may still reach the
// disk.
//
// It must never know what the bytes mean.
package file
