// Package examples contains programs that use mpicx as its users do: minimal first, then the
// lessons of ulfm, then solve, heat, lanczos and krylov. Its test compiles a copy of each in
// another module. They must never use packages that are internal to this module.
package examples
