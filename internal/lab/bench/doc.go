// Command bench measures mpicx against what its users would write otherwise, and prints tables. In
// each row both sides are measured in turn, many times, in one run of the program, and the ratio is
// that of the medians. So it is valid even on a machine that runs other programs.
//
//	go -C internal/lab run ./bench                     # everything, some minutes
//	go -C internal/lab run ./bench -rows 'Figure 2'    # rows whose name matches
//	go -C internal/lab run ./bench -rows 'Bcast of'    # of the tables of collectives, each cell has such a name
//	go -C internal/lab run ./bench -plot ../../docs          # figures like the papers'
//	go -C internal/lab run ./bench -quick              # only checks that everything runs
//	go -C internal/lab run ./bench many-ranks 1000000  # a million ranks: start, barrier, signal, barrier, end
//
// The code that it measures must never know of it.
package main
