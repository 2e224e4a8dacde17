//go:build native && !(mpi && ulfm)

package hook

// MPI's own revoke and agree are for -tags "mpi ulfm native".
var _ = tag_native_needs_the_tags_mpi_and_ulfm
